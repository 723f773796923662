package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Outline returns the configuration of the files without what could tell about people, for
// others to read. It keeps the names of known keys, true and false, numbers and times of
// keys that want them, and strings of keys that have a fixed set of them. names is what is
// kept besides: names of channels and model providers. All else is replaced by its kind.
func (t *Tree) Outline(names []string) json.RawMessage {
	return encode(outliner{t.known, names}.value(t.raw, nil, t.known))
}

type outliner struct {
	root  *node
	names []string
}

func (o outliner) value(v any, path []string, n *node) any {
	switch v := v.(type) {
	case map[string]any:
		out, hidden := map[string]any{}, 0
		for _, k := range sortedKeys(v) {
			at := join(path, k)
			next := o.root.at(at)
			name := k
			if n == nil || n.kids[k] == nil && !slices.Contains(o.names, k) {
				hidden++
				name = fmt.Sprintf("[name %d]", hidden)
			}
			if n != nil && n.free() {
				next = nil
			}
			out[name] = o.value(v[k], at, next)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var next *node
			if n != nil {
				next = n.elem
			}
			out[i] = o.value(e, join(path, itoa(i)), next)
		}
		return out
	case bool, nil:
		return v
	}
	if n != nil && n.key != nil {
		if kept, ok := o.scalar(v, n.key); ok {
			return kept
		}
	}
	if _, number := v.(json.Number); number {
		return "[number]"
	}
	return "[text]"
}

// scalar returns the form in which a text or a number of a known key is shown; false if it
// must not be shown.
func (o outliner) scalar(v any, k *Key) (any, bool) {
	s, isText := v.(string)
	switch k.Kind {
	case Secret:
		return "[secret]", true
	case Int, Number, Seconds, Millis, Bytes:
		_, ok := k.check(v)
		return v, ok
	case Text:
		return v, isText && slices.Contains(k.Values, s)
	case Model:
		provider, _, ok := strings.Cut(s, "/")
		return provider + "/[model]", ok && slices.Contains(o.names, provider)
	}
	return nil, false
}
