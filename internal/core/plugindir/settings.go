package plugindir

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/chela-ai/chela/internal/core/schema"
)

// Limits of the configuration of a plug-in.
const (
	maxConfig   = 100 << 10 // bytes; programs get it in a variable
	maxSteps    = 20_000    // of a validation
	maxProblems = 8         // that are listed
)

// settings validates configurations.
type settings struct {
	top      *jsonschema.Schema
	compiled *jsonschema.Resolved
	doc      *schema.Doc
}

// newSettings returns the validator of a schema.
func newSettings(text json.RawMessage) (*settings, error) {
	text, err := schema.Relax(text)
	if err != nil {
		return nil, err
	}
	s := &settings{top: new(jsonschema.Schema)}
	if s.doc, err = schema.Read(text); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, s.top); err != nil {
		return nil, err
	}
	s.compiled, err = s.top.Resolve(nil) // remote schemas are not fetched
	return s, err
}

// checkSchema returns why a schema cannot be used. nil can.
func checkSchema(text json.RawMessage) error {
	if text == nil {
		return nil
	}
	if _, err := newSettings(text); err != nil {
		return fmt.Errorf("configSchema: %w", err)
	}
	return nil
}

// complete returns a configuration with the defaults of the schema, and what is wrong
// with it. path is that of the configuration.
func (s *settings) complete(config json.RawMessage, path string) (json.RawMessage, []string) {
	m := map[string]any{}
	if len(config) > 0 && string(config) != "null" {
		if err := json.Unmarshal(config, &m); err != nil {
			return nil, []string{path + ": want an object"}
		}
	}
	left := maxSteps
	defaults(s.top, m, &left)
	var w problems
	if !s.doc.WithinSteps(m, maxSteps) {
		w.add(path, "it is nested too deeply")
	} else if err := s.compiled.Validate(m); err != nil {
		if w.object(path, s.top, m); len(w) == 0 {
			w.other(path, err)
		}
	}
	if more := len(w) - maxProblems; more > 0 {
		w = append(w[:maxProblems], fmt.Sprintf("%s: there are %d more problems", path, more))
	}
	out, err := json.Marshal(m)
	if err != nil {
		w.add(path, err.Error())
	} else if len(out) > maxConfig {
		w.add(path, fmt.Sprintf("it has more than %d bytes", maxConfig))
	}
	return out, w
}

// defaults adds the defaults of missing properties.
func defaults(s *jsonschema.Schema, m map[string]any, left *int) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if *left--; *left < 0 {
			return
		}
		p := s.Properties[name]
		if p == nil {
			continue
		}
		v, ok := m[name]
		if !ok && p.Default != nil && json.Unmarshal(p.Default, &v) == nil {
			m[name] = v
		}
		if !ok && p.Default == nil && len(p.Properties) > 0 { // a missing object may have defaults
			in := map[string]any{}
			if defaults(p, in, left); len(in) > 0 {
				m[name] = in
			}
			continue
		}
		if in, ok := v.(map[string]any); ok {
			defaults(p, in, left)
		}
	}
}

// problems are descriptions of invalid values, without the values, which may be secret.
type problems []string

func (w *problems) add(at, text string) { *w = append(*w, at+": "+text) }

// object adds what is missing, unknown or invalid in an object.
func (w *problems) object(at string, s *jsonschema.Schema, m map[string]any) {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			w.add(at+"."+plainText(name, 100), "it is required")
		}
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && len(s.PatternProperties) == 0
	for _, name := range slices.Sorted(maps.Keys(m)) {
		where := at + "." + plainText(name, 100)
		switch p := s.Properties[name]; {
		case p != nil:
			w.value(where, p, m[name])
		case closed:
			w.add(where, "the plug-in has no such key")
		}
	}
}

// value adds what is wrong with a value.
func (w *problems) value(at string, s *jsonschema.Schema, v any) {
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isType(t, v) }) {
		w.add(at, "want "+strings.Join(types, " or "))
		return
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return jsonschema.Equal(e, v) }) {
		list, err := json.Marshal(s.Enum)
		if err == nil {
			w.add(at, "want one of "+plainText(strings.Trim(string(list), "[]"), 200))
		}
		return
	}
	switch v := v.(type) {
	case map[string]any:
		w.object(at, s, v)
	case []any:
		for i, e := range v {
			if s.Items != nil && len(s.PrefixItems) == 0 && len(*w) <= maxProblems {
				w.value(fmt.Sprintf("%s[%d]", at, i), s.Items, e)
			}
		}
	}
}

// isType reports whether a value has a type of JSON Schema.
func isType(t string, v any) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case float64:
		return t == "number" || t == "integer" && v == float64(int64(v))
	case []any:
		return t == "array"
	}
	return t == "object"
}

// other adds the error of the validator, of which it takes the place in the schema and
// the keyword.
func (w *problems) other(at string, err error) {
	text, pointer := err.Error(), ""
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		where, inner, more := strings.Cut(rest, ": ")
		if !ok || !more {
			break
		}
		if text = inner; strings.HasPrefix(where, "/") {
			pointer = where
		}
	}
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := 0; i+1 < len(steps); i++ {
		if steps[i] == "properties" {
			at, i = at+"."+plainText(steps[i+1], 100), i+1
		}
	}
	keyword, _, _ := strings.Cut(text, ":")
	w.add(at, fmt.Sprintf("it does not satisfy %s of the plug-in's schema", plainText(keyword, 40)))
}
