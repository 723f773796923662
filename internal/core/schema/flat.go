package schema

import (
	"encoding/json"
	"maps"
	"strings"
)

// Object returns the object schema of a tool's definition: the definition
// itself, or an object schema for a flat definition, which consists only of
// parameters by name. A parameter of a flat definition is required unless it
// has "required": false or "optional": true. In other objects a property may
// have "required": true, as in the oldest drafts.
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

// fromFlat converts a flat definition to a schema and reports whether m is one.
// Otherwise it returns m.
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

// liftRequired moves "required": true of properties to the required lists of
// their objects and drops null keywords. It reports whether it changed
// anything.
func liftRequired(m node) bool {
	moved := dropNull(m)
	_ = each(m, func(_ string, s any) (any, error) {
		if sub, ok := s.(node); ok {
			moved = liftRequired(sub) || moved
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

// dropNull drops keywords whose value null has no meaning. It reports whether
// there were any.
func dropNull(m node) bool {
	n := len(m)
	maps.DeleteFunc(m, func(k string, v any) bool {
		return v == nil && k != "const" && k != "default"
	})
	return len(m) < n
}

// isFlat reports whether m is a flat definition: all its values are objects
// with a type, and no name is a keyword with an object schema as its value.
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
