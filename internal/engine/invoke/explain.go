package invoke

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxProblems is the number of problems that are listed. The others are often
// consequences of these.
const maxProblems = 8

// explain describes why the arguments are invalid. err is the error of the
// validator, which is used for problems that explain does not find itself.
func (a *arguments) explain(m map[string]any, err error) string {
	var w problems
	w.object("", a.top, m)
	if len(w) == 0 {
		return validatorError(err)
	}
	if more := len(w) - maxProblems; more > 0 {
		w = append(w[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(w, "; ")
}

// validatorError formats an error of the validator as the field and the problem.
func validatorError(err error) string {
	if errors.Is(err, errSteps) {
		return err.Error()
	}
	text := err.Error()
	at := ""
	for {
		rest, ok := strings.CutPrefix(text, "validating ")
		pointer, inner, more := strings.Cut(rest, ": ")
		if !ok || !more {
			break
		}
		if text = inner; strings.HasPrefix(pointer, "/") {
			at = pointer
		}
	}
	var names []string
	for step := range strings.SplitSeq(at, "/") {
		switch step {
		case "", "properties", "items", "anyOf", "oneOf", "allOf", "$defs":
		default:
			names = append(names, step)
		}
	}
	if len(names) == 0 {
		return text
	}
	return fmt.Sprintf("%q: %s", strings.Join(names, "."), text)
}

// problems are descriptions of invalid fields.
type problems []string

func (w *problems) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

// object adds the fields that are missing, unknown or invalid.
func (w *problems) object(at string, s *jsonschema.Schema, m map[string]any) {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			w.add("%q is missing (%s)", at+name, typeName(s.Properties[name]))
		}
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && len(s.PatternProperties) == 0
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch p := s.Properties[name]; {
		case p != nil:
			w.value(at+name, p, m[name])
		case closed:
			w.add("%q is not a field", at+name)
		}
	}
}

// value adds the problems of the value of a field.
func (w *problems) value(at string, p *jsonschema.Schema, v any) {
	if len(types(p)) > 0 && !fits(types(p), v) {
		w.add("%q is %s, want %s", at, typeOf(v), typeName(p))
		return
	}
	equal := func(e any) bool { return jsonschema.Equal(e, v) }
	if p.Const != nil && !equal(*p.Const) {
		w.add("%q is %s, want %s", at, toJSON(v), toJSON(*p.Const))
		return
	}
	if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, equal) {
		w.add("%q is %v, want one of %s", at, v, toJSON(p.Enum))
		return
	}
	switch v := v.(type) {
	case string:
		w.text(at, p, v)
	case float64:
		w.number(at, p, v)
	case map[string]any:
		w.object(at+".", p, v)
	case []any:
		w.elements(at, p, v)
	}
}

func (w *problems) text(at string, p *jsonschema.Schema, v string) {
	n := utf8.RuneCountInString(v)
	switch {
	case p.MinLength != nil && n == 0 && *p.MinLength == 1:
		w.add("%q is empty", at)
	case p.MinLength != nil && n < *p.MinLength:
		w.add("%q has %d characters, want at least %d", at, n, *p.MinLength)
	case p.MaxLength != nil && n > *p.MaxLength:
		w.add("%q has %d characters, want at most %d", at, n, *p.MaxLength)
	}
}

func (w *problems) number(at string, p *jsonschema.Schema, v float64) {
	switch {
	case p.Minimum != nil && v < *p.Minimum:
		w.add("%q is %v, want at least %v", at, v, *p.Minimum)
	case p.Maximum != nil && v > *p.Maximum:
		w.add("%q is %v, want at most %v", at, v, *p.Maximum)
	case p.ExclusiveMinimum != nil && v <= *p.ExclusiveMinimum:
		w.add("%q is %v, want more than %v", at, v, *p.ExclusiveMinimum)
	case p.ExclusiveMaximum != nil && v >= *p.ExclusiveMaximum:
		w.add("%q is %v, want less than %v", at, v, *p.ExclusiveMaximum)
	}
}

func (w *problems) elements(at string, p *jsonschema.Schema, v []any) {
	switch n := len(v); {
	case p.MinItems != nil && n < *p.MinItems:
		w.add("%q has %d elements, want at least %d", at, n, *p.MinItems)
	case p.MaxItems != nil && n > *p.MaxItems:
		w.add("%q has %d elements, want at most %d", at, n, *p.MaxItems)
	}
	if p.Items == nil {
		return
	}
	for i, e := range v {
		if i >= len(p.PrefixItems) {
			w.value(fmt.Sprintf("%s[%d]", at, i), p.Items, e)
		}
	}
}

// fields lists the fields of the schema.
func (a *arguments) fields() string {
	if len(a.top.Properties) == 0 {
		return "The tool has no fields."
	}
	var fs []string
	for _, name := range slices.Sorted(maps.Keys(a.top.Properties)) {
		f := name + " (" + typeName(a.top.Properties[name])
		if slices.Contains(a.top.Required, name) {
			f += ", required"
		}
		fs = append(fs, f+")")
	}
	return "The fields are: " + strings.Join(fs, ", ")
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

// typeName describes the types that p allows.
func typeName(p *jsonschema.Schema) string {
	switch {
	case p == nil:
		return "any"
	case p.Type == "array" && p.Items != nil && typeName(p.Items) != "any":
		return "array of " + typeName(p.Items)
	case len(types(p)) > 0:
		return strings.Join(types(p), " or ")
	case len(p.Enum) > 0:
		return "one of " + toJSON(p.Enum)
	case p.Const != nil:
		return toJSON(*p.Const)
	case len(p.AnyOf)+len(p.OneOf) > 0:
		var names []string
		for _, o := range append(slices.Clip(p.AnyOf), p.OneOf...) {
			if n := typeName(o); !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		return strings.Join(names, " or ")
	}
	return "any"
}

// toJSON returns a value as JSON.
func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
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

// isInteger reports whether n is an integer, including forms such as 5.0 and 5e3.
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
