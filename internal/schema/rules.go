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

// The profiles: what kinds of services take.
const (
	Full     = "full"     // all of JSON Schema, below an object without a union, with plain names: Anthropic
	OpenAI   = "openai"   // the same, and arrays say what they hold
	Gemini   = "gemini"   // a small part of OpenAPI's schemas
	DeepSeek = "deepseek" // no unions
	LlamaCPP = "llamacpp" // what it can make a grammar of
	XAI      = "xai"      // no counting of what an array contains
)

// Profiles returns the names of the profiles.
func Profiles() []string { return []string{Full, OpenAI, Gemini, DeepSeek, LlamaCPP, XAI} }

// Rules say what a service takes. The zero Rules are those of [Full].
type Rules struct {
	Profile string   // one of the profiles
	Without []string // keywords that are not taken either
}

// Equal reports whether r and o are the same rules.
func (r Rules) Equal(o Rules) bool {
	return r.Profile == o.Profile && slices.Equal(r.Without, o.Without)
}

// Apply returns the schema as a service with these rules takes it, which is
// the given one itself where nothing has to be changed. The error says why
// there is none.
func (r Rules) Apply(schema json.RawMessage) (json.RawMessage, error) {
	if plain, common := look(schema); plain && common && r.common() {
		return schema, nil
	}
	return r.apply(schema)
}

// common reports whether the service takes what is common.
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
	if err == nil && !c.inlines && c.doc.refs && !index(top).whole(top, "") {
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

// takes reports whether the service takes the keyword with that value.
func (r Rules) takes(keyword string, v any) bool {
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

// long reports whether a length is more than a grammar can count.
func long(v any) bool {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return ok && (err != nil || f >= 2000)
}

// inlines reports whether references are not taken.
func (r Rules) inlines() bool {
	return !r.takes("$ref", nil) || !r.takes("$defs", nil) || !r.takes("definitions", nil)
}

// oneType reports whether a list of types is refused.
func (r Rules) oneType() bool { return r.Profile == Gemini }

// holds reports whether arrays must say what they hold.
func (r Rules) holds() bool { return r.Profile == OpenAI || r.Profile == XAI || r.Profile == Gemini }

// cleaner applies rules to one schema.
type cleaner struct {
	Rules
	doc     *doc
	inlines bool     // references are replaced by what they mean
	nodes   int      // so far
	open    []string // references that are being put in
}

// top returns the whole schema: an object without a union or reference at its
// top.
func (c *cleaner) top(m node) (node, error) {
	m, err := c.hoist(m, "", 0)
	if err != nil {
		return nil, err
	}
	if ts := typesOf(m); m["type"] != nil && len(ts) > 0 && !slices.Contains(ts, "object") {
		return nil, errors.New("its arguments are no object")
	}
	m = maps.Clone(m)
	m["type"] = "object"
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
		typed(out)
	case Full, "":
		return renamed(out)
	}
	return out, nil
}

// clean returns a schema as the service takes it.
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
		return nil, fmt.Errorf("%s stands where a schema belongs", kindOf(s))
	case isBool && c.Profile == Gemini:
		m = node{} // it knows only objects
		if !b {
			m["description"] = "Leave this out."
		}
	case isBool:
		return b, nil
	}
	if err := sane(m); err != nil {
		return nil, err
	}
	if _, ok := m["$ref"]; ok && c.inlines {
		return c.inline(m, base, depth)
	}
	base = rebase(m, base)
	out := maps.Clone(m)
	null := c.withoutNull(out)
	err := each(out, func(keyword string, s any) (any, error) {
		taken := c.takes(keyword, s)
		if !taken && placeOf(keyword) != listed {
			return s, nil // it is taken off below
		}
		if part, ok := s.(node); ok && !taken && part["$ref"] != nil && sane(part) == nil {
			return c.inline(part, base, depth+1) // of a union, to be made one with the others
		}
		return c.clean(s, base, depth+1)
	})
	if err != nil {
		return nil, err
	}
	if out = c.unions(out); null && !c.oneType() {
		out = orNull(out)
	}
	return c.words(out), nil
}

// inline returns what a reference means, with what stands beside it. In itself
// it is cut: there only its type is left.
func (c *cleaner) inline(m node, base string, depth int) (any, error) {
	ref := m["$ref"].(string)
	t, ok := c.doc.find(ref, base)
	if !ok {
		return nil, fmt.Errorf("its reference %q leads nowhere in it", ref)
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
		out = c.words(out)
	case isNode:
		c.open = append(c.open, t.key)
		v, err := c.clean(s, t.base, depth+1)
		c.open = c.open[:len(c.open)-1]
		if err != nil {
			return nil, err
		}
		out, _ = v.(node)
	}
	return both(out, beside.(node)), nil
}

// words puts right what m itself says, when what is below it is done.
func (c *cleaner) words(m node) node {
	if v, ok := m["const"]; ok && !c.takes("const", v) {
		delete(m, "const")
		if _, has := m["enum"]; !has {
			m["enum"] = []any{v}
		}
	}
	if c.oneType() {
		c.plain(m)
	}
	if m["type"] == "array" && c.holds() && m["items"] == nil && (m["prefixItems"] == nil || !c.takes("prefixItems", nil)) {
		m["items"] = node{}
	}
	for k, v := range m {
		if !c.takes(k, v) {
			delete(m, k)
		}
	}
	return m
}

// plain makes of m what can be said with one type, with texts to choose from,
// and with properties that are there.
func (c *cleaner) plain(m node) {
	ts := slices.DeleteFunc(typesOf(m), func(t string) bool { return t == "null" })
	if len(ts) > 0 {
		m["type"] = ts[0]
	} else if m["type"] != nil {
		delete(m, "type") // null: there is no such type
	}
	choose(m)
	if tuple, ok := m["items"].([]any); ok {
		m["items"] = c.unite(nodes(tuple), false)
	}
	properties, isObject := m["properties"].(node)
	switch {
	case m["type"] != nil: // it is said
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

// choose keeps an enum that has only texts; another one is said in words.
func choose(m node) {
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
	said, _ := m["description"].(string)
	m["description"] = strings.TrimSpace(said + " One of: " + strings.Trim(string(text), "[]") + ".")
}

// kinds returns the type that all the values have; none when they differ.
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
