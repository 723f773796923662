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

// Bounds of a schema.
const (
	maxSize  = 256 << 10 // bytes, as it is given and as it is sent
	maxDepth = 64        // levels of schemas, and of references in one another
	maxNodes = 20_000    // schemas, with what references put in
)

var (
	errSize  = fmt.Errorf("it is larger than %d KB", maxSize>>10)
	errDepth = fmt.Errorf("it is deeper than %d levels", maxDepth)
	errNodes = errors.New("it is too large when its references are put in")
)

// node is a schema that is an object.
type node = map[string]any

// place says where schemas stand in the value of a keyword.
type place int

const (
	nowhere place = iota
	itself        // it is one, or (in older drafts) a list of them
	listed        // it is a list of them
	named         // it is an object whose values are schemas
)

func placeOf(keyword string) place {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return named
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return listed
	case "items", "additionalItems", "additionalProperties", "propertyNames", "contains", "contentSchema",
		"not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties":
		return itself
	}
	return nowhere
}

// each calls f with every schema that stands right below m and puts what f
// returns in its place. It goes by the names of keywords, sorted.
func each(m node, f func(keyword string, s any) (any, error)) error {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		var err error
		switch at := placeOf(k); v := m[k].(type) {
		case []any:
			if at == itself || at == listed {
				m[k], err = eachOf(k, v, f)
			}
		case node:
			switch at {
			case itself:
				m[k], err = f(k, v)
			case named:
				m[k], err = eachNamed(k, v, f)
			}
		case bool:
			if at == itself {
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

// decode reads a tool's definition as the schema that it means, and reports
// whether the definition is that schema already.
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
		return nil, false, fmt.Errorf("it is no JSON: %w", err)
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
		if !shallow(v, 4*maxDepth) {
			return nil, false, errDepth
		}
		m, flat := fromFlat(v)
		return m, !lift(m) && !flat && utf8.Valid(raw), nil
	}
	return nil, false, errors.New("it is no object")
}

// shallow reports whether v has at most so many levels.
func shallow(v any, levels int) bool {
	if levels < 0 {
		return false
	}
	switch v := v.(type) {
	case node:
		for _, w := range v {
			if !shallow(w, levels-1) {
				return false
			}
		}
	case []any:
		for _, w := range v {
			if !shallow(w, levels-1) {
				return false
			}
		}
	}
	return true
}

// sane reports what no service would take of m: a keyword whose value is not
// of its kind.
func sane(m node) error {
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
		case placeOf(k) == named:
			_, ok = v.(node)
		case placeOf(k) == listed:
			l, is := v.([]any)
			ok = is && len(l) > 0
		case placeOf(k) == itself:
			_, isList := v.([]any)
			ok = isSchema(v) || isList && k == "items"
		}
		if !ok {
			return fmt.Errorf("%s has a value that it cannot have", k)
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

// names returns the texts of a list.
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

// isType reports whether there is such a type.
func isType(t string) bool {
	switch t {
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return true
	}
	return false
}

// typesOf returns the types that m names; none when it names none, or one that
// there is not.
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

// setTypes says which types m allows.
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
