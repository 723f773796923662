package schema

import (
	"encoding/json"
	"slices"
)

// Strict reports whether a service can enforce the schema in strict mode: each
// object requires all its properties and allows no others, and only supported
// keywords are used.
func Strict(schema json.RawMessage) bool {
	m, _, err := decode(schema)
	return err == nil && strict(m)
}

func strict(m node) bool {
	for k := range m {
		switch k {
		case "type", "title", "description", "properties", "required", "additionalProperties", "items", "enum",
			"const", "anyOf", "$ref", "$defs":
		default:
			return false
		}
	}
	ts := typesOf(m)
	_, hasRef := m["$ref"]
	if _, union := m["anyOf"]; !union && !hasRef && len(ts) == 0 {
		return false
	}
	if slices.Contains(ts, "array") && m["items"] == nil {
		return false
	}
	if slices.Contains(ts, "object") {
		properties, ok := m["properties"].(node)
		required := names(m["required"])
		if !ok || m["additionalProperties"] != false || len(uniq(required)) != len(properties) {
			return false
		}
		for name := range properties {
			if !slices.Contains(required, name) {
				return false
			}
		}
	}
	ok := true
	_ = each(m, func(k string, s any) (any, error) { // no error
		sub, isNode := s.(node)
		ok = ok && (isNode && strict(sub) || k == "additionalProperties")
		return s, nil
	})
	return ok
}
