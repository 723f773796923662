package config

import (
	"encoding/json"
	"regexp"
	"sync"
)

// modelPath matches the paths of the models that answer.
var modelPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(agents\.(defaults|list\[\d+\]|entries\.[^.]+)\.` +
		`((model|imageModel|subagents\.model)(\.primary|\.fallbacks(\[\d+\])?)?|(heartbeat|compaction|compaction\.memoryFlush)\.model)` +
		`|budget\.model|hooks\.(gmail|mappings\[\d+\])\.model)$`)
})

// Models returns the names of the models that a configuration chooses, by path.
func (t *Tree) Models() map[string]string { return modelsIn(t.root, nil) }

// Models returns the names of the models that a value at a path would choose, by path.
func Models(path string, value json.RawMessage) map[string]string {
	v, err := decodeJSON(value)
	if err != nil {
		return nil
	}
	steps, err := ParsePath(path)
	if err != nil {
		return nil
	}
	return modelsIn(v, steps)
}

func modelsIn(v any, steps []string) map[string]string {
	out := map[string]string{}
	var walk func(v any, steps []string)
	walk = func(v any, steps []string) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				walk(e, join(steps, k))
			}
		case []any:
			for i, e := range v {
				walk(e, join(steps, itoa(i)))
			}
		case string:
			if path := FormatPath(steps); v != "" && modelPath().MatchString(path) {
				out[path] = v
			}
		}
	}
	walk(v, steps)
	return out
}
