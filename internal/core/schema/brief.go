package schema

import (
	"encoding/json"
	"maps"
	"slices"
)

// Brief returns an object schema as a model is sent it if its arguments are validated
// anyway: without lengths, ranges, patterns, the prohibition of other properties, and
// optional properties that are deprecated. An object that requires all its properties
// keeps the prohibition, which strict mode needs. A schema that cannot be read is
// returned unchanged.
func Brief(schema json.RawMessage) json.RawMessage {
	m, _, err := decode(schema)
	if err != nil {
		return schema
	}
	short, err := orderOf(schema).encode(brief(m, maxDepth))
	if err != nil {
		return schema
	}
	return short
}

// validated are the keywords that Brief leaves out.
var validated = [...]string{"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"minItems", "maxItems", "pattern"}

func brief(m node, levels int) node {
	if levels == 0 {
		return m
	}
	out := withoutDeprecated(m)
	for _, k := range validated {
		delete(out, k)
	}
	properties, ok := out["properties"].(node)
	if ok {
		properties = maps.Clone(properties)
		for name, v := range properties {
			if p, ok := v.(node); ok {
				properties[name] = brief(p, levels-1)
			}
		}
		out["properties"] = properties
	}
	if out["additionalProperties"] == false &&
		(!ok || len(properties) != len(slices.Compact(slices.Sorted(slices.Values(names(m["required"])))))) {
		delete(out, "additionalProperties")
	}
	if items, ok := out["items"].(node); ok {
		out["items"] = brief(items, levels-1)
	}
	return out
}
