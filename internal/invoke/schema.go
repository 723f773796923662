package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/chela-ai/chela/internal/tool"
)

// schemas keeps compiled schemas by their text.
type schemas struct {
	mu   sync.Mutex
	kept map[string]*schema
}

// schema is a tool's schema, compiled.
type schema struct {
	top      *jsonschema.Schema
	compiled *jsonschema.Resolved
}

// schemaOf returns the tool's schema; one that has none takes any object.
func schemaOf(spec tool.Spec) json.RawMessage {
	if len(spec.Schema) == 0 {
		return json.RawMessage(`{"properties":{},"type":"object"}`)
	}
	return spec.Schema
}

// of returns the compiled schema of a tool.
func (ss *schemas) of(spec tool.Spec) (*schema, error) {
	text := string(schemaOf(spec))
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.kept[text]; s != nil {
		return s, nil
	}
	s := &schema{top: new(jsonschema.Schema)}
	err := json.Unmarshal([]byte(text), s.top)
	if err == nil {
		s.compiled, err = s.top.Resolve(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("the schema of tool %s cannot be used: %w", spec.Name, err)
	}
	if ss.kept == nil {
		ss.kept = make(map[string]*schema)
	}
	ss.kept[text] = s
	return s, nil
}

// validate reports what is wrong with the arguments, for the model: the field,
// what is expected there, and which fields there are.
func (s *schema) validate(args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return fmt.Errorf("the arguments are no JSON: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("the arguments are %s, want an object. %s", typeOf(v), s.fields())
	}
	err := s.compiled.Validate(m)
	if err == nil {
		return nil
	}
	wrong := s.explain(m)
	if len(wrong) == 0 {
		wrong = []string{strings.TrimPrefix(err.Error(), "validating root: ")}
	}
	return errors.New("invalid arguments: " + strings.Join(wrong, "; ") + ". " + s.fields())
}

// explain names the fields at the top that are missing, unknown or of another
// type, which is nearly always what is wrong.
func (s *schema) explain(m map[string]any) []string {
	var wrong []string
	for _, name := range s.top.Required {
		if _, ok := m[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%q is missing (%s)", name, typeName(s.top.Properties[name])))
		}
	}
	closed := s.top.AdditionalProperties != nil && s.top.AdditionalProperties.Not != nil
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p := s.top.Properties[name]
		switch {
		case p == nil && closed && len(s.top.PatternProperties) == 0:
			wrong = append(wrong, fmt.Sprintf("%q is not a field of it", name))
		case p != nil && len(types(p)) > 0 && !fits(types(p), m[name]):
			wrong = append(wrong, fmt.Sprintf("%q is %s, want %s", name, typeOf(m[name]), typeName(p)))
		case p != nil && len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(e any) bool { return jsonschema.Equal(e, m[name]) }):
			wrong = append(wrong, fmt.Sprintf("%q is %v, want one of %s", name, m[name], list(p.Enum)))
		}
	}
	return wrong
}

// fields lists the fields that there are.
func (s *schema) fields() string {
	if len(s.top.Properties) == 0 {
		return "It takes no fields."
	}
	var fs []string
	for _, name := range slices.Sorted(maps.Keys(s.top.Properties)) {
		f := name + " (" + typeName(s.top.Properties[name])
		if slices.Contains(s.top.Required, name) {
			f += ", required"
		}
		fs = append(fs, f+")")
	}
	return "Its fields are: " + strings.Join(fs, ", ")
}

// types returns the types that p allows; none: any.
func types(p *jsonschema.Schema) []string {
	if p == nil {
		return nil
	}
	if p.Type != "" {
		return []string{p.Type}
	}
	return p.Types
}

// typeName says in words what p allows.
func typeName(p *jsonschema.Schema) string {
	switch {
	case p == nil:
		return "any"
	case len(types(p)) > 0:
		return strings.Join(types(p), " or ")
	case len(p.Enum) > 0:
		return "one of " + list(p.Enum)
	}
	return "any"
}

func list(vs []any) string {
	b, err := json.Marshal(vs)
	if err != nil {
		return fmt.Sprint(vs)
	}
	return string(b)
}

// typeOf returns the JSON type of a decoded value.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case json.Number:
		if isInteger(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// isInteger reports whether n is a whole number, also as 5.0 or 5e3.
func isInteger(n json.Number) bool {
	if _, err := n.Int64(); err == nil {
		return true
	}
	f, err := n.Float64()
	return err == nil && f == float64(int64(f))
}

// fits reports whether v has one of the types.
func fits(types []string, v any) bool {
	t := typeOf(v)
	return slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

// decode reads one JSON value, with its numbers as they are written.
func decode(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return v, nil
}
