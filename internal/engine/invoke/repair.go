package invoke

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/kit/json5"
)

// repair adapts the arguments of a call to the schema and returns a list of the
// changes. It changes only what is unambiguous: other spellings of names, numbers
// and objects that were written as strings, and small mistakes in JSON. If the
// arguments cannot be parsed, the error is written for the model.
func (a *arguments) repair(c llm.ToolCall, aliases map[string]string) (json.RawMessage, []string, error) {
	r := repairer{}
	args := bytes.TrimSpace(c.Args)
	if c.Raw != "" {
		fixed, err := fixJSON(c.Raw)
		if err != nil {
			return nil, nil, err
		}
		args = fixed
		r.note("malformed JSON")
	}
	if len(args) == 0 || string(args) == "null" {
		args = []byte("{}")
	}
	v, err := decode(args)
	if err != nil {
		return nil, nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	if text, ok := v.(string); ok {
		if in, err := decode([]byte(text)); err == nil {
			v = in
			r.note("JSON in a string")
		}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return args, r.notes, nil // validation describes the problem
	}
	r.names(a.top, m, aliases)
	r.object("", a.top, m)
	if len(r.notes) == 0 {
		return args, nil, nil
	}
	out, err := json.Marshal(m)
	if err != nil {
		return nil, nil, fmt.Errorf("the arguments cannot be encoded: %w", err)
	}
	return out, r.notes, nil
}

// repairer changes arguments and lists the changes.
type repairer struct{ notes []string }

func (r *repairer) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// names renames arguments to the names in the schema: by the tool's aliases, then
// ignoring case, dashes and underscores, then by common alternatives. It renames
// nothing if the name is in use or if two arguments match it.
func (r *repairer) names(s *jsonschema.Schema, m map[string]any, aliases map[string]string) {
	wants := make(map[string][]string) // name in the schema → arguments that mean it
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, ok := s.Properties[name]; ok {
			continue
		}
		if target, ok := resolveName(s, name, aliases); ok {
			wants[target] = append(wants[target], name)
		}
	}
	for target, names := range wants {
		if _, taken := m[target]; taken || len(names) > 1 {
			continue
		}
		m[target] = m[names[0]]
		delete(m, names[0])
		r.note("%s → %s", names[0], target)
	}
	slices.Sort(r.notes)
}

// resolveName returns the only name of the schema that matches name.
func resolveName(s *jsonschema.Schema, name string, aliases map[string]string) (string, bool) {
	if t, ok := aliases[name]; ok {
		return t, s.Properties[t] != nil
	}
	var found []string
	for alias, t := range aliases {
		if fold(alias) == fold(name) && s.Properties[t] != nil && !slices.Contains(found, t) {
			found = append(found, t)
		}
	}
	for p := range s.Properties {
		if fold(p) == fold(name) && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return commonName(s, name)
	case 1:
		return found[0], true
	}
	return "", false
}

// fold returns a name in the form in which names are compared.
func fold(name string) string { return schema.Fold(name) }

// object repairs the values of an object in place.
func (r *repairer) object(at string, s *jsonschema.Schema, m map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p := s.Properties[name]
		if p == nil {
			continue
		}
		if m[name] == nil && !slices.Contains(s.Required, name) && len(types(p)) > 0 && !fits(types(p), nil) {
			delete(m, name)
			r.note("%s%s: null removed", at, name)
			continue
		}
		m[name] = r.value(at+name, p, m[name])
	}
}

// value converts v to the type of p if that is unambiguous.
func (r *repairer) value(at string, p *jsonschema.Schema, v any) any {
	if want := types(p); len(want) == 1 && !fits(want, v) {
		if w, ok := coerce(want[0], v); ok {
			r.note("%s: %s → %s", at, typeOf(v), want[0])
			v = w
		}
	}
	if n, ok := v.(json.Number); ok && slices.Contains(types(p), "integer") {
		if whole := integer(n); whole != n {
			r.note("%s: %s → %s", at, n, whole)
			v = whole
		}
	}
	switch v := v.(type) {
	case map[string]any:
		r.object(at+".", p, v)
	case []any:
		if p.Items == nil {
			break
		}
		for i := range v {
			v[i] = r.value(fmt.Sprintf("%s[%d]", at, i), p.Items, v[i])
		}
	}
	return v
}

// integer rewrites forms such as 5.0 and 5e3 as Go's decoder accepts integers.
func integer(n json.Number) json.Number {
	f, err := n.Float64()
	if _, isInt := n.Int64(); isInt == nil || err != nil || !isInteger(n) || math.Abs(f) >= 1<<53 {
		return n
	}
	return json.Number(strconv.FormatInt(int64(f), 10))
}

// coerce converts v to the type.
func coerce(want string, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return parse(want, strings.TrimSpace(v))
	case json.Number:
		return v.String(), want == "string"
	case bool:
		return fmt.Sprint(v), want == "string"
	}
	return nil, false
}

// parse parses a string as a value of the type.
func parse(want, text string) (any, bool) {
	switch want {
	case "boolean":
		text = strings.ToLower(text)
		return text == "true", text == "true" || text == "false"
	case "integer", "number", "object", "array":
		w, err := decode([]byte(text))
		return w, err == nil && fits([]string{want}, w)
	}
	return nil, false
}

// errTruncated says that arguments end inside a value, so that the rest is
// unknown.
var errTruncated = errors.New(
	"the arguments were cut off inside a value; send them again completely, in smaller pieces if they are long")

// fixJSON converts malformed JSON of a model to JSON. It removes a code fence,
// escapes line breaks in strings, adds missing brackets at the end, and accepts
// JSON5 (trailing commas, single quotes, unquoted names).
func fixJSON(raw string) (json.RawMessage, error) {
	text := unfence(raw)
	if rest, ok := strings.CutPrefix(text, "{}"); ok && strings.HasPrefix(rest, "{") {
		text = rest // the empty object that starts a stream
	}
	text, err := closed(text)
	if err != nil {
		return nil, err
	}
	out, err := json5.ToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the arguments are not JSON (%w); send one JSON object", err)
	}
	return out, nil
}

// unfence returns the content of a Markdown code fence.
func unfence(s string) string {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "```") {
		return s
	}
	_, s, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), "```"))
}

// closed escapes line breaks in strings and adds the brackets that are missing at
// the end.
func closed(text string) (string, error) {
	var b strings.Builder
	var open []byte
	var quote, last byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case quote != 0 && (c == '\n' || c == '\r' || c == '\t'):
			b.WriteString(map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}[c])
			continue
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			open = append(open, '}')
		case c == '[':
			open = append(open, ']')
		case (c == '}' || c == ']') && len(open) > 0 && open[len(open)-1] == c:
			open = open[:len(open)-1]
		}
		if c > ' ' {
			last = c
		}
		b.WriteByte(c)
	}
	if len(open) == 0 && quote == 0 {
		return b.String(), nil
	}
	// After a complete string, object, array or comma no part of a value is missing.
	if quote != 0 || !strings.ContainsRune(`"'}],`, rune(last)) {
		return "", errTruncated
	}
	slices.Reverse(open)
	b.Write(open)
	return b.String(), nil
}
