package config

import (
	"bytes"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Merge prepares a merge patch: objects are merged, null removes a key, and other
// values replace the present ones. Arrays whose elements have ids are merged by id.
// The patch is refused when an array would lose an element, unless replace contains
// its path, such as "tools.allow" or "agents.list[].tools.allow"; then the array is
// replaced.
func (t *Tree) Merge(patch []byte, replace []string) (*Draft, error) {
	if t.broken != nil {
		return nil, broken(t.broken)
	}
	p, err := decodeObject(patch)
	if err != nil {
		return nil, err
	}
	m := &merger{replace: replaced(replace)}
	v, err := t.restore(m.merge(Clone(t.raw), p, ""), nil)
	if err != nil {
		return nil, err
	}
	if m.twice != "" {
		return nil, chela.Errorf(chela.CodeInvalid, "the id %s occurs twice in the array", m.twice)
	}
	if len(m.lost) > 0 {
		return nil, chela.Errorf(chela.CodeInvalid,
			"config.patch would remove entries from array path(s): %s; pass replacePaths with the exact path(s) when this is intended", strings.Join(m.lost, ", "))
	}
	return t.becoming(v)
}

// element matches the index of an array element in a path.
var element = pattern(`\[\d+\]`)

// replaced returns paths of arrays in the form of merger.lost.
func replaced(paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimSuffix(element().ReplaceAllString(strings.TrimSpace(p), "[]"), "[]"))
	}
	return out
}

// merger merges a patch into a configuration.
type merger struct {
	replace []string // paths of arrays that may lose elements
	lost    []string // paths of other arrays that would lose elements
	twice   string   // an id that occurs twice in an array of the patch
}

// merge applies the patch to base and returns the result.
func (m *merger) merge(base, patch any, path string) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	b, ok := base.(map[string]any)
	if !ok {
		b = map[string]any{}
	}
	for _, k := range sortedKeys(p) {
		at := strings.TrimPrefix(path+"."+k, ".")
		old, had := b[k]
		switch v := p[k].(type) {
		case nil:
			m.loses(old, at)
			delete(b, k)
		case []any:
			b[k] = m.array(old, v, at)
		case map[string]any:
			if _, isObject := old.(map[string]any); had && !isObject {
				m.loses(old, at)
			}
			b[k] = m.merge(old, v, at)
		default:
			m.loses(old, at)
			b[k] = v
		}
	}
	return b
}

// array applies an array of the patch to the present value.
func (m *merger) array(old any, patch []any, path string) any {
	list, ok := old.([]any)
	if !ok || slices.Contains(m.replace, path) {
		if !ok {
			m.loses(old, path)
		}
		return patch
	}
	if len(list) == 0 || slices.ContainsFunc(list, func(e any) bool { return idOf(e) == "" }) {
		if !containsAll(patch, list) {
			m.lost = append(m.lost, path)
		}
		return patch
	}
	out, seen := slices.Clone(list), map[string]bool{}
	for _, e := range patch {
		id := idOf(e)
		if id != "" && seen[id] {
			m.twice = id
		}
		seen[id] = true
		at := slices.IndexFunc(out, func(o any) bool { return id != "" && idOf(o) == id })
		if at < 0 {
			out = append(out, e)
			continue
		}
		out[at] = m.merge(out[at], e, path+"[]")
	}
	return out
}

// loses records the arrays of a value that is removed.
func (m *merger) loses(v any, path string) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 && !slices.Contains(m.replace, path) {
			m.lost = append(m.lost, path)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			m.loses(v[k], path+"."+k)
		}
	}
}

// containsAll reports whether list contains each of the elements.
func containsAll(list, elements []any) bool {
	rest := slices.Clone(list)
	for _, e := range elements {
		b := encode(e)
		at := slices.IndexFunc(rest, func(r any) bool { return bytes.Equal(encode(r), b) })
		if at < 0 {
			return false
		}
		rest = slices.Delete(rest, at, at+1)
	}
	return true
}
