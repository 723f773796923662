package webhook

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Template is a text with values of a request in it: {{a.b[0].c}}. The values are those
// of the payload; path, now, headers.NAME and query.NAME are others. A value that is not
// there is empty, and one that is not a text is JSON.
type Template struct{ parts []part }

// part is a literal text, or the path of a value.
type part struct {
	text string
	path []string // nil: a literal
}

// Limits of templates.
const (
	maxTemplate = 64 << 10 // bytes
	maxRendered = 1 << 20  // bytes of the result
	maxSteps    = 32       // names and indexes of a path
)

// ParseTemplate parses a template.
func ParseTemplate(s string) (Template, error) {
	var t Template
	if len(s) > maxTemplate {
		return t, fmt.Errorf("template: %d bytes, at most %d", len(s), maxTemplate)
	}
	for rest := s; rest != ""; {
		text, after, found := strings.Cut(rest, "{{")
		if text != "" {
			t.parts = append(t.parts, part{text: text})
		}
		if !found {
			break
		}
		expr, next, closed := strings.Cut(after, "}}")
		if !closed {
			return Template{}, fmt.Errorf("template: %q has no end }}", clip("{{"+after, 40))
		}
		path, err := parsePath(strings.TrimSpace(expr))
		if err != nil {
			return Template{}, fmt.Errorf("template: {{%s}}: %w", clip(expr, 40), err)
		}
		t.parts, rest = append(t.parts, part{path: path}), next
	}
	return t, nil
}

// parsePath parses the path of a value: a.b[0].c or a.b.0.c.
func parsePath(s string) ([]string, error) {
	var path []string
	for i := 0; i < len(s) || i == 0; {
		switch {
		case i < len(s) && s[i] == '[' && i > 0:
			n := strings.IndexByte(s[i:], ']')
			if n < 0 {
				return nil, fmt.Errorf("[ has no end ]")
			}
			index := s[i+1 : i+n]
			if _, err := strconv.ParseUint(index, 10, 31); err != nil {
				return nil, fmt.Errorf("[%s] is no number", index)
			}
			path, i = append(path, index), i+n+1
		default:
			if i > 0 {
				if s[i] != '.' {
					return nil, fmt.Errorf("want . or [ before %q", s[i:])
				}
				i++
			}
			n := strings.IndexAny(s[i:]+".", ".[")
			name := s[i : i+n]
			if name == "" ||
				strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || strings.ContainsRune("{}]\"'|", r) }) {
				return nil, fmt.Errorf("%q is no name", name)
			}
			path, i = append(path, name), i+n
		}
		if len(path) > maxSteps {
			return nil, fmt.Errorf("more than %d names", maxSteps)
		}
	}
	return path, nil
}

// IsZero reports whether the template is empty.
func (t Template) IsZero() bool { return len(t.parts) == 0 }

// Constant reports whether the template contains no values.
func (t Template) Constant() bool {
	for _, p := range t.parts {
		if p.path != nil {
			return false
		}
	}
	return true
}

// Values is what a template reads. It returns nil for a value that is not there.
type Values func(path []string) any

// Render returns the text with the values.
func (t Template) Render(v Values) (string, error) {
	r, err := t.render(v)
	return r.String(), err
}

// rendered is a rendered template. Only the lines with values are foreign.
type rendered struct{ before, foreign, after string }

// String returns the whole text.
func (r rendered) String() string { return r.before + r.foreign + r.after }

// render returns the text in three parts: the lines before the first value, those from
// there to the last value, and those after it.
func (t Template) render(v Values) (rendered, error) {
	first, last := -1, -1
	for i, p := range t.parts {
		if p.path != nil {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	var before, foreign, after strings.Builder
	for i, p := range t.parts {
		switch {
		case p.path != nil:
			foreign.WriteString(valueText(v(p.path)))
		case first < 0:
			before.WriteString(p.text)
		case i < first:
			n := strings.LastIndexByte(p.text, '\n') + 1
			before.WriteString(p.text[:n])
			foreign.WriteString(p.text[n:])
		case i > last:
			n := strings.IndexByte(p.text, '\n')
			if n < 0 {
				n = len(p.text)
			}
			foreign.WriteString(p.text[:n])
			after.WriteString(p.text[n:])
		default:
			foreign.WriteString(p.text)
		}
		if before.Len()+foreign.Len()+after.Len() > maxRendered {
			return rendered{}, fmt.Errorf("the text has more than %d bytes", maxRendered)
		}
	}
	return rendered{before.String(), foreign.String(), after.String()}, nil
}

// valueText returns a value as a text.
func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// lookup returns the value at a path of decoded JSON; nil: there is none.
func lookup(v any, path []string) any {
	for _, step := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			i, err := strconv.ParseUint(step, 10, 31)
			if err != nil || i >= uint64(len(in)) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// clip returns the beginning of a text, for an error.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
