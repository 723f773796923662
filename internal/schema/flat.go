package schema

import (
	"encoding/json"
	"maps"
	"strings"
)

// Object returns the schema that a tool's definition means: the definition
// itself, or of a flat one, which has nothing but parameters by their names,
// an object with these properties. A parameter of a flat definition is required
// unless it says "required": false or "optional": true. Other objects may say
// "required": true in a property, as the oldest drafts did.
func Object(definition json.RawMessage) (json.RawMessage, error) {
	m, asIs, err := decode(definition)
	switch {
	case err != nil:
		return nil, err
	case asIs && len(m) > 0:
		return definition, nil
	case len(m) == 0:
		return json.RawMessage(`{"properties":{},"type":"object"}`), nil
	}
	return orderOf(definition).encode(m)
}

// fromFlat returns the schema that a flat definition means, and whether m is
// one; what is none is returned as it is.
func fromFlat(m node) (node, bool) {
	if !isFlat(m) {
		return m, false
	}
	for _, v := range m {
		p := v.(node)
		if _, has := p["required"].(bool); !has {
			p["required"] = true
		}
		if optional, ok := p["optional"].(bool); ok {
			p["required"] = p["required"] == true && !optional
			delete(p, "optional")
		}
	}
	return node{"type": "object", "properties": m}, true
}

// lift moves what properties say of being required to the lists of the objects
// that have them, takes off keywords without a value, and reports whether
// there was something to do.
func lift(m node) bool {
	moved := dropNull(m)
	_ = each(m, func(_ string, s any) (any, error) {
		if sub, ok := s.(node); ok {
			moved = lift(sub) || moved
		}
		return s, nil // no error
	})
	properties, _ := m["properties"].(node)
	var required []string
	for name, v := range properties {
		p, ok := v.(node)
		if !ok {
			continue
		}
		if needed, ok := p["required"].(bool); ok {
			moved = true
			if delete(p, "required"); needed {
				required = append(required, name)
			}
		}
	}
	if own := m["required"]; len(required) > 0 && (own == nil || isNames(own)) {
		m["required"] = list(uniq(append(required, names(own)...)))
	}
	return moved
}

// dropNull takes off keywords that are null, where null says nothing, and
// reports whether there were any.
func dropNull(m node) bool {
	n := len(m)
	maps.DeleteFunc(m, func(k string, v any) bool {
		return v == nil && k != "const" && k != "default"
	})
	return len(m) < n
}

// isFlat reports whether m is a flat definition: all its values are objects
// that name a type, and none of its names says how objects look.
func isFlat(m node) bool {
	for name, v := range m {
		p, ok := v.(node)
		if !ok || len(typesOf(p)) == 0 || strings.HasPrefix(name, "$") {
			return false
		}
		switch name {
		case "additionalProperties", "propertyNames", "unevaluatedProperties", "not", "if", "then", "else":
			return false
		}
	}
	return len(m) > 0
}
