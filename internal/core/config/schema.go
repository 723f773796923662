package config

import (
	"encoding/json"
	"slices"
	"strings"
)

// find returns the node at a path of keys and the formatted path; nil if the path is
// unknown. The path may contain the index of an element or the wildcard.
func find(path string) (*node, string) {
	steps, err := ParsePath(strings.ReplaceAll(strings.Trim(path, "./"), "/", "."))
	if err != nil {
		return nil, ""
	}
	n := known()
	for _, step := range steps {
		switch {
		case n.kids[step] != nil:
			n = n.kids[step]
		case n.elem != nil && (isIndex(step) || step == "*"):
			n = n.elem
		case n.wild != nil:
			n = n.wild
		default:
			return nil, ""
		}
	}
	return n, FormatPath(steps)
}

// sortedNames returns the names below a node; * stands for any name or for each
// element.
func sortedNames(n *node) []string {
	var names []string
	for name := range n.kids {
		names = append(names, name)
	}
	slices.Sort(names)
	if n.wild != nil || n.elem != nil {
		names = append(names, "*")
	}
	return names
}

func (n *node) kid(name string) *node {
	switch {
	case n.kids[name] != nil:
		return n.kids[name]
	case n.elem != nil:
		return n.elem
	}
	return n.wild
}

// Schema returns a JSON Schema of the known keys. Unlike Load, it accepts any string
// where a number can be written as a string.
func Schema() json.RawMessage {
	s := known().schema()
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["title"] = "Chela"
	return encode(s)
}

// own returns a JSON Schema of the value, without the keys below it.
func (n *node) own() map[string]any {
	if n.key == nil {
		return map[string]any{"type": "object"}
	}
	return n.key.schema()
}

// types returns the JSON types of the value.
func (n *node) types() []string {
	if n.key == nil {
		return []string{"object"}
	}
	return n.key.Kind.types()
}

func (n *node) schema() map[string]any {
	s := n.own()
	if n.elem != nil {
		s["items"] = n.elem.schema()
	}
	if n.kids == nil && n.wild == nil {
		return s
	}
	props := map[string]any{}
	for name, kid := range n.kids {
		props[name] = kid.schema()
	}
	if len(props) > 0 {
		s["properties"] = props
	}
	if n.wild != nil {
		s["additionalProperties"] = n.wild.schema()
	}
	return s
}

// schema returns a JSON Schema of the key's own value.
func (k *Key) schema() map[string]any {
	s := map[string]any{}
	switch types := k.Kind.types(); len(types) {
	case 0:
	case 1:
		s["type"] = types[0]
	default:
		s["type"] = types
	}
	if k.Kind == Texts {
		s["items"] = map[string]any{"type": []string{"string", "number"}}
	}
	if k.Values != nil {
		s["enum"] = k.Values
	}
	if k.Default != "" {
		s["default"] = json.RawMessage(k.Default)
	}
	if k.Doc != "" {
		s["description"] = k.Doc
	}
	return s
}

// types returns the JSON types of a kind; nil: all.
func (k Kind) types() []string {
	return [...][]string{
		Any: nil, Text: {"string"}, Secret: {"string", "object"}, Bool: {"boolean"}, Int: {"integer"}, Number: {"number"},
		Seconds: {"number", "string"}, Millis: {"number", "string"}, Bytes: {"number", "string"}, Texts: {"array", "string"},
		List: {"array"}, Object: {"object"}, Model: {"string", "object"},
	}[k]
}
