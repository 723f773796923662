package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Profiles: what kinds of services support.
const (
	Full     = "full"     // all of JSON Schema, below an object without a union, with restricted names: Anthropic
	OpenAI   = "openai"   // the same, and arrays need items
	Gemini   = "gemini"   // a small subset, from OpenAPI
	DeepSeek = "deepseek" // no unions
	LlamaCPP = "llamacpp" // what can be converted to a grammar
	XAI      = "xai"      // no minContains and maxContains
)

// Profiles returns the names of the profiles.
func Profiles() []string { return []string{Full, OpenAI, Gemini, DeepSeek, LlamaCPP, XAI} }

// Rules are the limits of a service. The zero Rules are those of [Full].
type Rules struct {
	Profile string   // one of the profiles
	Without []string // further unsupported keywords
}

// Equal reports whether r and o are the same rules.
func (r Rules) Equal(o Rules) bool {
	return r.Profile == o.Profile && slices.Equal(r.Without, o.Without)
}

// Apply returns the schema converted for a service with these rules, or the
// schema itself if nothing has to change. It fails if the schema cannot be
// converted.
func (r Rules) Apply(schema json.RawMessage) (json.RawMessage, error) {
	if plain, common := inspect(schema); plain && common && r.common() {
		return schema, nil
	}
	return r.apply(schema)
}

// common reports whether the service accepts common schemas unchanged.
func (r Rules) common() bool {
	return len(r.Without) == 0 && r.Profile != Gemini && r.Profile != LlamaCPP
}

func (r Rules) apply(schema json.RawMessage) (json.RawMessage, error) {
	m, asIs, err := decode(schema)
	if err != nil {
		return nil, err
	}
	c := &cleaner{Rules: r, doc: index(m), inlines: r.inlines()}
	top, err := c.top(m)
	if err == nil && !c.inlines && c.doc.refs && !index(top).complete(top, "") {
		c = &cleaner{Rules: r, doc: c.doc, inlines: true}
		top, err = c.top(m)
	}
	switch {
	case err != nil:
		return nil, err
	case asIs && reflect.DeepEqual(top, m):
		return schema, nil
	}
	return orderOf(schema).encode(top)
}

// supports reports whether the service supports the keyword with that value.
func (r Rules) supports(keyword string, v any) bool {
	if keyword == "type" || keyword == "properties" {
		return true
	}
	if slices.Contains(r.Without, keyword) {
		return false
	}
	switch r.Profile {
	case Gemini:
		switch keyword {
		case "title", "description", "default", "enum", "items", "required", "nullable":
			return true
		}
		return false
	case DeepSeek:
		return keyword != "anyOf" && keyword != "oneOf"
	case LlamaCPP:
		return keyword != "pattern" && (keyword != "maxLength" || !long(v))
	case XAI:
		return keyword != "minContains" && keyword != "maxContains"
	}
	return true
}

// long reports whether a length is too large for a grammar.
func long(v any) bool {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return ok && (err != nil || f >= 2000)
}

// inlines reports whether references are unsupported.
func (r Rules) inlines() bool {
	return !r.supports("$ref", nil) || !r.supports("$defs", nil) || !r.supports("definitions", nil)
}

// singleType reports whether lists of types are unsupported.
func (r Rules) singleType() bool { return r.Profile == Gemini }

// requiresItems reports whether arrays must have items.
func (r Rules) requiresItems() bool {
	return r.Profile == OpenAI || r.Profile == XAI || r.Profile == Gemini
}

// cleaner applies rules to one schema.
type cleaner struct {
	Rules
	doc     *doc
	inlines bool     // references are replaced by their targets
	nodes   int      // visited so far
	open    []string // references being expanded
}

// top returns the converted schema: an object without a union or reference at
// the top level.
func (c *cleaner) top(m node) (node, error) {
	m, err := c.flattenTop(m, "", 0)
	if err != nil {
		return nil, err
	}
	if notObject(m) {
		return nil, errors.New("its arguments are not an object")
	}
	m["type"] = "object" // m is a copy
	if m["properties"] == nil {
		m["properties"] = node{}
	}
	v, err := c.clean(m, "", 0)
	if err != nil {
		return nil, err
	}
	out := v.(node)
	switch c.Profile {
	case OpenAI, XAI:
		for _, k := range []string{"enum", "const", "not"} {
			delete(out, k)
		}
	case Gemini:
		addTypes(out)
	case Full, "":
		return renameProperties(out)
	}
	return out, nil
}

// clean returns the converted schema.
func (c *cleaner) clean(s any, base string, depth int) (any, error) {
	if c.nodes++; c.nodes > maxNodes {
		return nil, errNodes
	}
	if depth > maxDepth {
		return nil, errDepth
	}
	m, ok := s.(node)
	switch b, isBool := s.(bool); {
	case !ok && !isBool:
		return nil, fmt.Errorf("%s instead of a schema", kindOf(s))
	case isBool && c.Profile == Gemini:
		m = node{} // Gemini requires objects
		if !b {
			m["description"] = "Leave this out."
		}
	case isBool:
		return b, nil
	}
	if err := validate(m); err != nil {
		return nil, err
	}
	if _, ok := m["$ref"]; ok && c.inlines {
		return c.inline(m, base, depth)
	}
	base = rebase(m, base)
	out := withoutDeprecated(m)
	null := c.withoutNull(out)
	err := each(out, func(keyword string, s any) (any, error) {
		supported := c.supports(keyword, s)
		if !supported && positionOf(keyword) != schemaList {
			return s, nil // finish or unions removes it
		}
		if part, ok := s.(node); ok && !supported && part["$ref"] != nil && validate(part) == nil {
			return c.inline(part, base, depth+1) // part of a union that will be merged
		}
		return c.clean(s, base, depth+1)
	})
	if err != nil {
		return nil, err
	}
	if out = c.unions(out); null && !c.singleType() {
		out = addNull(out)
	}
	return c.finish(out), nil
}

// withoutDeprecated returns a copy of m without the optional properties that are
// deprecated.
func withoutDeprecated(m node) node {
	out := maps.Clone(m)
	properties, ok := out["properties"].(node)
	if !ok {
		return out
	}
	required := names(m["required"])
	properties = maps.Clone(properties)
	maps.DeleteFunc(properties, func(name string, p any) bool {
		s, _ := p.(node)
		return s["deprecated"] == true && !slices.Contains(required, name)
	})
	out["properties"] = properties
	return out
}

// inline returns the target of a reference, merged with the keywords beside it.
// A recursive reference is replaced by the type of its target.
func (c *cleaner) inline(m node, base string, depth int) (any, error) {
	ref := m["$ref"].(string)
	t, ok := c.doc.find(ref, base)
	if !ok {
		return nil, fmt.Errorf("its reference %q is not in the schema", ref)
	}
	rest := maps.Clone(m)
	for _, k := range []string{"$ref", "$defs", "definitions", "$id"} {
		delete(rest, k)
	}
	beside, err := c.clean(rest, base, depth+1)
	if err != nil {
		return nil, err
	}
	out := node{}
	switch s, isNode := t.schema.(node); {
	case isNode && slices.Contains(c.open, t.key):
		if ts := typesOf(s); len(ts) > 0 {
			setTypes(out, ts)
		}
		out = c.finish(out)
	case isNode:
		c.open = append(c.open, t.key)
		v, err := c.clean(s, t.base, depth+1)
		c.open = c.open[:len(c.open)-1]
		if err != nil {
			return nil, err
		}
		out, _ = v.(node)
	}
	return merge(out, beside.(node)), nil
}

// finish adapts the keywords of m itself, after everything below it.
func (c *cleaner) finish(m node) node {
	if v, ok := m["const"]; ok && !c.supports("const", v) {
		delete(m, "const")
		if _, has := m["enum"]; !has {
			m["enum"] = []any{v}
		}
	}
	if c.singleType() {
		c.simplify(m)
	}
	if m["type"] == "array" && c.requiresItems() && m["items"] == nil &&
		(m["prefixItems"] == nil || !c.supports("prefixItems", nil)) {
		m["items"] = node{}
	}
	for k, v := range m {
		if !c.supports(k, v) {
			delete(m, k)
		}
	}
	return m
}

// simplify reduces m to one type, string enums and existing properties.
func (c *cleaner) simplify(m node) {
	ts := slices.DeleteFunc(typesOf(m), func(t string) bool { return t == "null" })
	if len(ts) > 0 {
		m["type"] = ts[0]
	} else if m["type"] != nil {
		delete(m, "type") // null, which is not supported as a type
	}
	simplifyEnum(m)
	if tuple, ok := m["items"].([]any); ok {
		m["items"] = c.union(nodes(tuple), false)
	}
	properties, isObject := m["properties"].(node)
	switch {
	case m["type"] != nil: // it has a type
	case isObject:
		m["type"] = "object"
	case m["items"] != nil:
		m["type"] = "array"
	}
	if m["type"] != "object" && m["type"] != nil {
		delete(m, "properties")
	}
	if m["type"] != "array" {
		delete(m, "items")
	}
	if m["required"] == nil {
		return
	}
	properties, _ = m["properties"].(node)
	required := slices.DeleteFunc(names(m["required"]), func(n string) bool { _, ok := properties[n]; return !ok })
	if delete(m, "required"); len(required) > 0 {
		m["required"] = list(required)
	}
}

// simplifyEnum keeps an enum of nonempty strings. It moves other enums to the
// description.
func simplifyEnum(m node) {
	values, ok := m["enum"].([]any)
	if !ok {
		return
	}
	values = slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil })
	odd := func(v any) bool { s, ok := v.(string); return !ok || s == "" }
	if m["type"] == nil {
		setTypes(m, kinds(values))
	}
	if len(values) > 0 && !slices.ContainsFunc(values, odd) && (m["type"] == nil || m["type"] == "string") {
		m["enum"], m["type"] = values, "string"
		return
	}
	delete(m, "enum")
	text, err := json.Marshal(values)
	if err != nil || len(values) == 0 {
		return
	}
	description, _ := m["description"].(string)
	m["description"] = strings.TrimSpace(description + " One of: " + strings.Trim(string(text), "[]") + ".")
}

// kinds returns the common type of the values, or none.
func kinds(values []any) []string {
	var kind string
	for _, v := range values {
		k := ""
		switch v := v.(type) {
		case string:
			k = "string"
		case bool:
			k = "boolean"
		case json.Number:
			k = "number"
			if _, err := v.Int64(); err == nil {
				k = "integer"
			}
		}
		if k == "" || kind != "" && kind != k {
			return nil
		}
		kind = k
	}
	if kind == "" {
		return nil
	}
	return []string{kind}
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case []any:
		return "a list"
	}
	return "a number"
}
