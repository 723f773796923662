package schema

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// hoist returns m without a reference or union at its top: what it refers to
// and what all its parts say is put together, and of alternatives one object is
// made.
func (c *cleaner) hoist(m node, base string, depth int) (node, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	if c.nodes++; c.nodes > maxNodes {
		return nil, errNodes
	}
	if err := sane(m); err != nil {
		return nil, err
	}
	out := maps.Clone(m)
	if ref, ok := m["$ref"].(string); ok {
		t, ok := c.doc.find(ref, base)
		s, isNode := t.schema.(node)
		switch {
		case !ok:
			return nil, fmt.Errorf("its reference %q leads nowhere in it", ref)
		case !isNode || t.base != base:
			return nil, fmt.Errorf("its reference %q cannot be followed", ref)
		}
		h, err := c.hoist(s, base, depth+1)
		if err != nil {
			return nil, err
		}
		delete(out, "$ref")
		out = both(h, out)
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		parts, ok := out[k].([]any)
		if !ok {
			continue
		}
		delete(out, k)
		hoisted, err := c.parts(parts, base, depth)
		if err != nil {
			return nil, err
		}
		if k == "allOf" {
			for _, h := range hoisted {
				out = both(h, out)
			}
			continue
		}
		if hoisted = slices.DeleteFunc(hoisted, noObject); len(hoisted) == 0 {
			return nil, errors.New("its arguments are no object")
		}
		out = both(c.unite(hoisted, true), out)
	}
	return out, nil
}

// parts returns the parts of a union at the top, hoisted.
func (c *cleaner) parts(parts []any, base string, depth int) ([]node, error) {
	var out []node
	for _, p := range parts {
		m, ok := p.(node)
		if !ok {
			if p == true {
				out = append(out, node{})
			}
			continue // false: no alternative
		}
		h, err := c.hoist(m, base, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func noObject(m node) bool {
	ts := typesOf(m)
	return len(ts) > 0 && !slices.Contains(ts, "object")
}

// unions replaces the unions of m that are not taken. What is below m is done.
func (c *cleaner) unions(m node) node {
	if parts, ok := m["allOf"].([]any); ok && !c.takes("allOf", parts) {
		delete(m, "allOf")
		for _, p := range nodes(parts) {
			m = both(p, m)
		}
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		parts, ok := m[k].([]any)
		if !ok || c.takes(k, parts) {
			continue
		}
		delete(m, k)
		if _, has := m["anyOf"]; k == "oneOf" && !has && c.takes("anyOf", parts) {
			m["anyOf"] = parts
			continue
		}
		m = both(c.unite(nodes(parts), false), m)
	}
	return m
}

// withoutNull takes null out of the unions of m that are not taken, and reports
// whether it was in one.
func (c *cleaner) withoutNull(m node) bool {
	null := false
	for _, k := range []string{"anyOf", "oneOf"} {
		parts, ok := m[k].([]any)
		if !ok || c.takes(k, parts) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(parts), func(p any) bool { s, ok := p.(node); return ok && isNull(s) })
		if len(rest) > 0 && len(rest) < len(parts) {
			m[k], null = rest, true
		}
	}
	return null
}

// nodes returns the parts that say something; true is one that says nothing.
func nodes(parts []any) []node {
	var out []node
	for _, p := range parts {
		switch p := p.(type) {
		case node:
			out = append(out, p)
		case bool:
			if p {
				out = append(out, node{})
			}
		}
	}
	return out
}

// both returns what holds where a and b do, with b's word where they differ.
func both(a, b node) node {
	out := maps.Clone(a)
	for k, v := range b {
		switch k {
		case "properties", "$defs", "definitions":
			out[k] = bothNamed(out[k], v)
		case "required":
			out[k] = list(uniq(append(names(out[k]), names(v)...)))
		default:
			out[k] = v
		}
	}
	return out
}

func bothNamed(a, b any) any {
	an, _ := a.(node)
	bn, ok := b.(node)
	if !ok {
		return b
	}
	out := make(node, len(an)+len(bn))
	maps.Copy(out, an)
	for name, v := range bn {
		x, isX := out[name].(node)
		y, isY := v.(node)
		if isX && isY && !reflect.DeepEqual(x, y) {
			v = both(x, y)
		}
		out[name] = v
	}
	return out
}

func uniq(ss []string) []string {
	slices.Sort(ss)
	return slices.Compact(ss)
}

// unite returns one schema that takes what the alternatives take, as near as
// one can: objects with the properties of all of them, of which those are
// required that all require; values to choose from of all of them; else what
// all of them say. Of alternatives that are not cleaned yet, raw ones, the
// properties may become unions.
func (c *cleaner) unite(alts []node, raw bool) node {
	full := len(alts)
	alts = slices.DeleteFunc(slices.Clone(alts), isNull)
	null := len(alts) < full
	if len(alts) == 0 {
		return node{}
	}
	out := alts[0]
	if len(alts) > 1 {
		out = c.common(alts, raw)
	}
	if null && !c.oneType() {
		out = orNull(out)
	}
	return out
}

// common returns what several alternatives say.
func (c *cleaner) common(alts []node, raw bool) node {
	out := node{}
	for k, v := range alts[0] {
		if !slices.ContainsFunc(alts[1:], func(a node) bool { return !reflect.DeepEqual(a[k], v) }) {
			out[k] = v
		}
	}
	delete(out, "const") // with an enum of the same
	setTypes(out, allTypes(alts))
	if vs := literals(alts); vs != nil {
		out["enum"] = vs
	}
	for _, k := range []string{"title", "description"} {
		for _, a := range alts {
			if out[k] == nil && a[k] != nil {
				out[k] = a[k]
			}
		}
	}
	if slices.ContainsFunc(alts, func(a node) bool { _, ok := a["properties"].(node); return ok }) {
		c.objects(out, alts, raw)
	}
	return out
}

// objects gives out the properties of the alternatives.
func (c *cleaner) objects(out node, alts []node, raw bool) {
	found := map[string][]any{}
	for _, a := range alts {
		properties, _ := a["properties"].(node)
		for name, p := range properties {
			if !slices.ContainsFunc(found[name], func(o any) bool { return reflect.DeepEqual(o, p) }) {
				found[name] = append(found[name], p)
			}
		}
	}
	properties := make(node, len(found))
	for name, ps := range found {
		ms := nodes(ps)
		switch {
		case len(ps) == 1:
			properties[name] = ps[0]
		case literals(ms) != nil || !raw && !c.takes("anyOf", nil):
			properties[name] = c.unite(ms, raw)
		default:
			properties[name] = node{"anyOf": ps}
		}
	}
	out["properties"] = properties
	required := names(alts[0]["required"])
	for _, a := range alts[1:] {
		has := names(a["required"])
		required = slices.DeleteFunc(required, func(n string) bool { return !slices.Contains(has, n) })
	}
	if delete(out, "required"); len(required) > 0 {
		out["required"] = list(uniq(required))
	}
}

// literals returns the values of alternatives that are all values to choose
// from, each once.
func literals(alts []node) []any {
	var out []any
	for _, a := range alts {
		vs, ok := a["enum"].([]any)
		if v, has := a["const"]; has {
			vs, ok = []any{v}, true
		}
		if !ok {
			return nil
		}
		for _, v := range vs {
			if !slices.ContainsFunc(out, func(o any) bool { return reflect.DeepEqual(o, v) }) {
				out = append(out, v)
			}
		}
	}
	return out
}

// allTypes returns the types that the alternatives name; none when one of them
// takes any.
func allTypes(alts []node) []string {
	var ts []string
	for _, a := range alts {
		own := typesOf(a)
		if len(own) == 0 {
			return nil
		}
		for _, t := range own {
			if !slices.Contains(ts, t) {
				ts = append(ts, t)
			}
		}
	}
	return ts
}

// isNull reports whether m takes null only.
func isNull(m node) bool {
	if v, ok := m["const"]; ok {
		return v == nil
	}
	if vs, ok := m["enum"].([]any); ok {
		return len(vs) == 1 && vs[0] == nil
	}
	ts := typesOf(m)
	return len(ts) == 1 && ts[0] == "null"
}

// orNull returns a schema that takes null too.
func orNull(m node) node {
	m = maps.Clone(m)
	if ts := typesOf(m); len(ts) > 0 && !slices.Contains(ts, "null") {
		setTypes(m, append(ts, "null"))
	}
	if v, ok := m["const"]; ok {
		delete(m, "const")
		m["enum"] = []any{v}
	}
	if vs, ok := m["enum"].([]any); ok && !slices.Contains(vs, any(nil)) {
		m["enum"] = append(slices.Clone(vs), nil)
	}
	return m
}
