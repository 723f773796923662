package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// Limits of a schema.
const (
	maxSize  = 256 << 10 // bytes, of input and output
	maxDepth = 64        // nesting of schemas and of references
	maxNodes = 20_000    // schemas, including expanded references
)

var (
	errSize  = fmt.Errorf("it is larger than %d KB", maxSize>>10)
	errDepth = fmt.Errorf("it is deeper than %d levels", maxDepth)
	errNodes = errors.New("it is too large with its references expanded")
)

// node is a schema that is an object.
type node = map[string]any

// position is where the value of a keyword contains schemas.
type position int

const (
	noSchema     position = iota
	inlineSchema          // a schema, or (in older drafts) a list of schemas
	schemaList            // a list of schemas
	schemaMap             // an object whose values are schemas
)

func positionOf(keyword string) position {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return schemaMap
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return schemaList
	case "items", "additionalItems", "additionalProperties", "propertyNames", "contains", "contentSchema",
		"not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties":
		return inlineSchema
	}
	return noSchema
}

// each replaces every schema directly below m by the result of f, in the order
// of the sorted keywords.
func each(m node, f func(keyword string, s any) (any, error)) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		var err error
		switch at := positionOf(k); v := m[k].(type) {
		case []any:
			if at == inlineSchema || at == schemaList {
				m[k], err = eachOf(k, v, f)
			}
		case node:
			switch at {
			case inlineSchema:
				m[k], err = f(k, v)
			case schemaMap:
				m[k], err = eachNamed(k, v, f)
			}
		case bool:
			if at == inlineSchema {
				m[k], err = f(k, v)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eachOf(k string, list []any, f func(string, any) (any, error)) ([]any, error) {
	out := make([]any, len(list))
	for i, s := range list {
		var err error
		if out[i], err = f(k, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func eachNamed(k string, m node, f func(string, any) (any, error)) (node, error) {
	out := make(node, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, ok := m[name].([]any); ok && k == "dependencies" {
			out[name] = m[name] // names of properties
			continue
		}
		var err error
		if out[name], err = f(k, m[name]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// decode parses a tool's definition. It returns the schema and whether the
// definition equals it.
func decode(raw json.RawMessage) (m node, asIs bool, err error) {
	if len(raw) > maxSize {
		return nil, false, errSize
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return node{}, false, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false, fmt.Errorf("invalid JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false, errors.New("it is more than one JSON value")
	}
	switch v := v.(type) {
	case nil:
		return node{}, false, nil
	case bool:
		if v {
			return node{}, false, nil
		}
	case node:
		if !withinDepth(v, 4*maxDepth) {
			return nil, false, errDepth
		}
		m, flat := fromFlat(v)
		return m, !liftRequired(m) && !flat && utf8.Valid(raw), nil
	}
	return nil, false, errors.New("it is not an object")
}

// withinDepth reports whether v has at most the given number of levels.
func withinDepth(v any, levels int) bool {
	if levels < 0 {
		return false
	}
	switch v := v.(type) {
	case node:
		for _, w := range v {
			if !withinDepth(w, levels-1) {
				return false
			}
		}
	case []any:
		for _, w := range v {
			if !withinDepth(w, levels-1) {
				return false
			}
		}
	}
	return true
}

// validate returns an error if a keyword of m has an invalid value, which every
// service would reject.
func validate(m node) error {
	for k, v := range m {
		ok := true
		switch {
		case k == "type":
			ok = len(typesOf(m)) > 0
		case k == "required":
			ok = isNames(v)
		case k == "enum":
			_, ok = v.([]any)
		case k == "description" || k == "title" || k == "$ref" || k == "pattern" || k == "format":
			_, ok = v.(string)
		case positionOf(k) == schemaMap:
			_, ok = v.(node)
		case positionOf(k) == schemaList:
			l, is := v.([]any)
			ok = is && len(l) > 0
		case positionOf(k) == inlineSchema:
			_, isList := v.([]any)
			ok = isSchema(v) || isList && k == "items"
		}
		if !ok {
			return fmt.Errorf("invalid value of %s", k)
		}
	}
	return nil
}

func isSchema(v any) bool {
	switch v.(type) {
	case node, bool:
		return true
	}
	return false
}

func isNames(v any) bool {
	l, ok := v.([]any)
	return ok && !slices.ContainsFunc(l, func(v any) bool { _, ok := v.(string); return !ok })
}

// names returns the strings of a list.
func names(v any) []string {
	l, _ := v.([]any)
	var out []string
	for _, v := range l {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func list(ss []string) []any {
	out := make([]any, len(ss))
	for i, s := range ss {
		out[i] = s
	}
	return out
}

// isType reports whether t is a JSON Schema type.
func isType(t string) bool {
	switch t {
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return true
	}
	return false
}

// typesOf returns the types of m, or none if a type is missing or invalid.
func typesOf(m node) []string {
	var ts []string
	switch t := m["type"].(type) {
	case string:
		ts = []string{t}
	case []any:
		if ts = names(t); len(ts) != len(t) {
			return nil
		}
	}
	for _, t := range ts {
		if !isType(t) {
			return nil
		}
	}
	return ts
}

// setTypes sets the types of m.
func setTypes(m node, ts []string) {
	switch len(ts) {
	case 0:
		delete(m, "type")
	case 1:
		m["type"] = ts[0]
	default:
		m["type"] = list(ts)
	}
}
