package schema

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// flattenTop returns m without a reference or union at the top level: it merges
// the target of a reference and the parts of allOf, and makes one object of
// alternatives.
func (c *cleaner) flattenTop(m node, base string, depth int) (node, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	if c.nodes++; c.nodes > maxNodes {
		return nil, errNodes
	}
	if err := validate(m); err != nil {
		return nil, err
	}
	out := maps.Clone(m)
	if ref, ok := m["$ref"].(string); ok {
		t, ok := c.doc.find(ref, base)
		s, isNode := t.schema.(node)
		switch {
		case !ok:
			return nil, fmt.Errorf("its reference %q is not in the schema", ref)
		case !isNode || t.base != base:
			return nil, fmt.Errorf("its reference %q cannot be followed", ref)
		}
		h, err := c.flattenTop(s, base, depth+1)
		if err != nil {
			return nil, err
		}
		delete(out, "$ref")
		out = merge(h, out)
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
				out = merge(h, out)
			}
			continue
		}
		if hoisted = slices.DeleteFunc(hoisted, notObject); len(hoisted) == 0 {
			return nil, errors.New("its arguments are not an object")
		}
		out = merge(c.union(hoisted, true), out)
	}
	return out, nil
}

// parts returns the flattened parts of a union at the top level.
func (c *cleaner) parts(parts []any, base string, depth int) ([]node, error) {
	var out []node
	for _, p := range parts {
		m, ok := p.(node)
		if !ok {
			if p == true {
				out = append(out, node{})
			}
			continue // false: not an alternative
		}
		h, err := c.flattenTop(m, base, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

func notObject(m node) bool {
	ts := typesOf(m)
	return len(ts) > 0 && !slices.Contains(ts, "object")
}

// unions replaces unsupported unions of m. Everything below m is already
// converted.
func (c *cleaner) unions(m node) node {
	if parts, ok := m["allOf"].([]any); ok && !c.supports("allOf", parts) {
		delete(m, "allOf")
		for _, p := range nodes(parts) {
			m = merge(p, m)
		}
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		parts, ok := m[k].([]any)
		if !ok || c.supports(k, parts) {
			continue
		}
		delete(m, k)
		if _, has := m["anyOf"]; k == "oneOf" && !has && c.supports("anyOf", parts) {
			m["anyOf"] = parts
			continue
		}
		m = merge(c.union(nodes(parts), false), m)
	}
	return m
}

// withoutNull removes null from unsupported unions of m. It reports whether
// there was one.
func (c *cleaner) withoutNull(m node) bool {
	null := false
	for _, k := range []string{"anyOf", "oneOf"} {
		parts, ok := m[k].([]any)
		if !ok || c.supports(k, parts) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(parts), func(p any) bool { s, ok := p.(node); return ok && isNull(s) })
		if len(rest) > 0 && len(rest) < len(parts) {
			m[k], null = rest, true
		}
	}
	return null
}

// nodes returns the parts as nodes; true becomes an empty one.
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

// merge returns a schema that requires both a and b. b's value is used for
// conflicting keywords.
func merge(a, b node) node {
	out := maps.Clone(a)
	for k, v := range b {
		switch k {
		case "properties", "$defs", "definitions":
			out[k] = mergeNamed(out[k], v)
		case "required":
			out[k] = list(uniq(append(names(out[k]), names(v)...)))
		default:
			out[k] = v
		}
	}
	return out
}

func mergeNamed(a, b any) any {
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
			v = merge(x, y)
		}
		out[name] = v
	}
	return out
}

func uniq(ss []string) []string {
	slices.Sort(ss)
	return slices.Compact(ss)
}

// union returns one schema that approximately accepts what any alternative
// accepts: an object with the properties of all alternatives and the
// requirements they share; an enum of all their values; otherwise their common
// keywords. If the alternatives are raw, that is not yet converted, properties
// may become unions.
func (c *cleaner) union(alts []node, raw bool) node {
	full := len(alts)
	alts = slices.DeleteFunc(slices.Clone(alts), isNull)
	null := len(alts) < full
	if len(alts) == 0 {
		return node{}
	}
	out := alts[0]
	if len(alts) > 1 {
		out = c.commonParts(alts, raw)
	}
	if null && !c.singleType() {
		out = addNull(out)
	}
	return out
}

// commonParts returns the common keywords of several alternatives.
func (c *cleaner) commonParts(alts []node, raw bool) node {
	out := node{}
	for k, v := range alts[0] {
		if !slices.ContainsFunc(alts[1:], func(a node) bool { return !reflect.DeepEqual(a[k], v) }) {
			out[k] = v
		}
	}
	delete(out, "const") // it becomes part of the enum
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

// objects adds the properties of the alternatives to out.
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
		case literals(ms) != nil || !raw && !c.supports("anyOf", nil):
			properties[name] = c.union(ms, raw)
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

// literals returns the distinct values of alternatives that are all enums or
// constants.
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

// allTypes returns the types of the alternatives, or none if one of them
// accepts any type.
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

// isNull reports whether m accepts only null.
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

// addNull returns a schema that also accepts null.
func addNull(m node) node {
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
