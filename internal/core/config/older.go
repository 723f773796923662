package config

import (
	"encoding/json"
	"strings"
)

// Renamed is a setting under an older name.
type Renamed struct {
	From, To string
	Edits    []Edit // that rename it
}

// renames is the settings that only have another name now: the same value means the same.
var renames = [...]struct{ from, to string }{
	{"agents.list[].agentId", "id"},
	{"agents.defaults.imageGenerationModel", "agents.defaults.mediaModels.image"},
	{"tts.providers.*.modelId", "model"},
	{"tts.providers.*.voiceId", "speakerVoiceId"},
	{"tts.providers.*.voice", "speakerVoice"},
	{"messages.tts", "tts"},
	{"channels.*.dm.policy", "dmPolicy"},
	{"channels.*.dm.allowFrom", "allowFrom"},
}

// Older returns the settings of the files that have an older name, unless the new name is
// set, too.
func (t *Tree) Older() (out []Renamed) {
	for _, r := range renames {
		steps := strings.Split(strings.ReplaceAll(r.from, "[]", ".*"), ".")
		each(t.raw, steps, nil, func(at []string, v any) {
			to, err := ParsePath(r.to)
			if err != nil {
				return
			}
			if !strings.Contains(r.to, ".") && r.to != "tts" { // a sibling
				above := at[:len(at)-1]
				if above[len(above)-1] == "dm" {
					above = above[:len(above)-1]
				}
				to = append(append([]string{}, above...), r.to)
			}
			if _, set := ValueAt(t.raw, to); set {
				return
			}
			value, err := json.Marshal(v)
			if err != nil {
				return
			}
			out = append(out, Renamed{From: FormatPath(at), To: FormatPath(to),
				Edits: []Edit{{Path: FormatPath(to), Value: value}, {Path: FormatPath(at)}}})
		})
	}
	return out
}

// each calls f with the values at the paths that match steps, in which * is any name or
// index.
func each(v any, steps, at []string, f func(at []string, v any)) {
	if len(steps) == 0 {
		f(at, v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if steps[0] == k || steps[0] == "*" {
				each(v[k], steps[1:], append(at[:len(at):len(at)], k), f)
			}
		}
	case []any:
		for i, e := range v {
			if steps[0] == "*" {
				each(e, steps[1:], append(at[:len(at):len(at)], itoa(i)), f)
			}
		}
	}
}
