package schema

import (
	"net/url"
	"strconv"
	"strings"
)

// doc is the index of a schema's reference targets. References to other
// documents are not fetched and cannot be resolved.
type doc struct {
	byID    map[string]any      // by URI, without a fragment
	anchors map[string]any      // by URI#name
	dynamic map[string][]target // by name
	refs    bool                // the schema has a reference
}

// target is the target of a reference.
type target struct {
	schema any
	base   string // base URI of references in it
	key    string // identifies the target
}

// index returns the index of root.
func index(root any) *doc {
	d := &doc{byID: map[string]any{"": root}, anchors: map[string]any{}, dynamic: map[string][]target{}}
	d.add(root, "")
	return d
}

func (d *doc) add(s any, base string) {
	m, ok := s.(node)
	if !ok {
		return
	}
	if b := rebase(m, base); b != base {
		base = b
		d.byID[base] = m
	}
	if name, ok := m["$anchor"].(string); ok {
		d.anchors[base+"#"+name] = m
	}
	if name, ok := m["$dynamicAnchor"].(string); ok {
		d.anchors[base+"#"+name] = m
		d.dynamic[name] = append(d.dynamic[name], target{schema: m, base: base})
	}
	_, static := m["$ref"]
	_, dynamic := m["$dynamicRef"]
	d.refs = d.refs || static || dynamic
	_ = each(m, func(_ string, s any) (any, error) { d.add(s, base); return s, nil }) // no error
}

// complete reports whether every reference in s can be resolved.
func (d *doc) complete(s any, base string) bool {
	m, ok := s.(node)
	if !ok {
		return true
	}
	base = rebase(m, base)
	for _, k := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := m[k].(string); ok {
			if _, ok := d.find(ref, base); !ok {
				return false
			}
		}
	}
	whole := true
	_ = each(m, func(_ string, s any) (any, error) { whole = whole && d.complete(s, base); return s, nil }) // no error
	return whole
}

// rebase returns the base URI of references in m.
func rebase(m node, base string) string {
	id, ok := m["$id"].(string)
	if !ok || strings.HasPrefix(id, "#") {
		return base
	}
	u, err := absolute(base, id)
	if err != nil {
		return base
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

func absolute(base, ref string) (*url.URL, error) {
	b, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	return b.Parse(ref)
}

// find resolves ref against base.
func (d *doc) find(ref, base string) (target, bool) {
	u, err := absolute(base, ref)
	if err != nil {
		return target{}, false
	}
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	t := target{base: u.String()}
	t.key = t.base + "#" + fragment
	if fragment != "" && fragment[0] != '/' {
		s, ok := d.anchors[t.key]
		t.schema = s
		return t, ok
	}
	s, ok := d.byID[t.base]
	if !ok {
		return target{}, false
	}
	t.schema = s
	return t.follow(fragment)
}

// follow resolves a JSON pointer.
func (t target) follow(pointer string) (target, bool) {
	if pointer == "" {
		return t, true
	}
	for i, step := range strings.Split(pointer[1:], "/") {
		if m, ok := t.schema.(node); ok && i > 0 {
			t.base = rebase(m, t.base)
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v := t.schema.(type) {
		case node:
			s, ok := v[step]
			if !ok {
				return target{}, false
			}
			t.schema = s
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(v) {
				return target{}, false
			}
			t.schema = v[n]
		default:
			return target{}, false
		}
	}
	return t, isSchema(t.schema)
}

// targets returns all schemas that the references of m can refer to.
func (d *doc) targets(m node, base string) []target {
	var ts []target
	for _, k := range []string{"$ref", "$dynamicRef"} {
		ref, ok := m[k].(string)
		if !ok {
			continue
		}
		if t, ok := d.find(ref, base); ok {
			ts = append(ts, t)
		}
		if _, name, ok := strings.Cut(ref, "#"); ok && k == "$dynamicRef" {
			ts = append(ts, d.dynamic[name]...)
		}
	}
	return ts
}
