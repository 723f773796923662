package schema

import "encoding/json"

// Doc is a schema that can estimate the cost of validating a value. It is safe
// for concurrent use.
type Doc struct {
	root node
	doc  *doc
}

// Read parses a schema.
func Read(schema json.RawMessage) (*Doc, error) {
	m, _, err := decode(schema)
	if err != nil {
		return nil, err
	}
	return &Doc{root: m, doc: index(m)}, nil
}

// WithinSteps reports whether a value can be validated in at most the given
// number of steps. Without references that is always true. References can be
// cyclic, or double the work at each level.
func (d *Doc) WithinSteps(v any, steps int) bool {
	if !d.doc.refs {
		return true
	}
	w := walk{doc: d.doc, left: steps}
	w.step(d.root, "", v)
	return w.left > 0
}

// walk counts down the steps that a validator could take.
type walk struct {
	doc  *doc
	left int
}

func (w *walk) step(s any, base string, v any) {
	if w.left--; w.left <= 0 {
		return
	}
	m, ok := s.(node)
	if !ok {
		return
	}
	base = rebase(m, base)
	for _, t := range w.doc.targets(m, base) {
		w.step(t.schema, t.base, v)
	}
	for k, sub := range m {
		w.keyword(k, sub, base, v)
	}
}

func (w *walk) keyword(k string, sub any, base string, v any) {
	switch k {
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
		w.all(sub, base, v)
	case "dependentSchemas", "dependencies":
		w.values(sub, base, v)
	case "properties":
		object, _ := v.(map[string]any)
		properties, _ := sub.(node)
		for name, p := range properties {
			if in, ok := object[name]; ok {
				w.step(p, base, in)
			}
		}
	case "patternProperties":
		object, _ := v.(map[string]any)
		for _, in := range object {
			w.values(sub, base, in)
		}
	case "additionalProperties", "unevaluatedProperties":
		object, _ := v.(map[string]any)
		for _, in := range object {
			w.step(sub, base, in)
		}
	case "propertyNames":
		object, _ := v.(map[string]any)
		for name := range object {
			w.step(sub, base, name)
		}
	case "items", "additionalItems", "unevaluatedItems", "contains", "prefixItems":
		elements, _ := v.([]any)
		for _, in := range elements {
			w.all(sub, base, in)
		}
	}
}

// all visits a schema or a list of schemas.
func (w *walk) all(sub any, base string, v any) {
	parts, ok := sub.([]any)
	if !ok {
		w.step(sub, base, v)
		return
	}
	for _, p := range parts {
		w.step(p, base, v)
	}
}

// values visits a map of schemas.
func (w *walk) values(sub any, base string, v any) {
	schemas, _ := sub.(node)
	for _, s := range schemas {
		w.step(s, base, v)
	}
}
