package schema

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Relax converts the schema for validators in Go: it reduces the drafts to two
// and removes patterns that only JavaScript supports. A value that is valid for
// the schema is valid for the result.
func Relax(schema json.RawMessage) (json.RawMessage, error) {
	m, asIs, err := decode(schema)
	if err != nil {
		return nil, err
	}
	if changed, _ := relax(m); !changed && asIs {
		return schema, nil
	}
	return orderOf(schema).encode(m)
}

// relax reports whether it changed m, and whether m accepts more than before.
func relax(m node) (changed, more bool) {
	if draft, ok := m["$schema"].(string); ok {
		m["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		if strings.Contains(draft, "/draft-0") {
			m["$schema"] = "http://json-schema.org/draft-07/schema#"
		}
		changed = draft != m["$schema"]
	}
	if p, ok := m["pattern"].(string); ok && !compiles(p) {
		delete(m, "pattern")
		more = true
	}
	if ps, ok := m["patternProperties"].(node); ok {
		for p := range ps {
			if !compiles(p) { // the names that it matches are unknown
				delete(m, "patternProperties")
				delete(m, "additionalProperties")
				delete(m, "unevaluatedProperties")
				more = true
			}
		}
	}
	wider := map[string]bool{}                       // keywords whose schemas accept more
	_ = each(m, func(k string, s any) (any, error) { // no error
		if sub, ok := s.(node); ok {
			c, w := relax(sub)
			changed, wider[k] = changed || c, wider[k] || w
		}
		return s, nil
	})
	for k, w := range wider {
		if w {
			more = true
			widen(m, k)
		}
	}
	return changed || more, more
}

// widen removes or replaces a keyword that would reject more if its schemas
// accept more.
func widen(m node, keyword string) {
	switch keyword {
	case "not", "contains":
		delete(m, keyword)
	case "oneOf":
		m["allOf"] = append(asList(m["allOf"]), node{"anyOf": m["oneOf"]})
		delete(m, "oneOf")
	case "if":
		delete(m, "if")
		delete(m, "then")
		delete(m, "else")
	}
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}
