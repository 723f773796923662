package webhook

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	payload := decode(t,
		`{"a": [{"b": "x"}, {"b": 12345678901234567890}], "o": {"k": true}, "0": "zero", "n": null, "s": "{{a}}"}`)
	for in, want := range map[string]string{
		"":                     "",
		"plain":                "plain",
		"{{a[0].b}}":           "x",
		"{{ a[1].b }}!":        "12345678901234567890!",
		"{{a.0.b}}":            "x",
		"{{o}}":                `{"k":true}`,
		"{{o.k}}":              "true",
		"{{a[9].b}}":           "",
		"{{a.b}}":              "",
		"{{n}}":                "",
		"{{0}}":                "zero",
		"{{missing.x[2]}}":     "",
		"{{s}}":                "{{a}}",
		"a }} b":               "a }} b",
		"{{a[0].b}}{{a[0].b}}": "xx",

		"{{payload}}":  "",
		"é{{a[0].b}}é": "éxé",
	} {
		tm, err := ParseTemplate(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got, err := tm.Render(func(p []string) any { return lookup(payload, p) }); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{"{{", "{{a", "{{}}", "{{ }}", "{{.a}}", "{{a.}}", "{{a..b}}", "{{a[}}", "{{a[x]}}",
		"{{a[-1]}}", "{{a[1]b}}", "{{[0]}}", "{{a b}}", "{{a | upper}}", `{{a["b"]}}`, "{{{a}}}",
		"{{" + strings.Repeat("a.", 40) + "a}}", strings.Repeat("x", maxTemplate+1)} {
		if tm, err := ParseTemplate(bad); err == nil {
			t.Errorf("%q is accepted as %q", clip(bad, 60), tm.parts)
		}
	}
	big, err := ParseTemplate(strings.Repeat("{{s}}", 100))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := big.Render(func([]string) any { return strings.Repeat("x", 100<<10) }); err == nil {
		t.Error("the result is not limited")
	}
}

// TestForeign checks which part of a text is labeled.
func TestForeign(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]rendered{
		"only mine":                {before: "only mine"},
		"{{v}}":                    {foreign: "V\nW"},
		"mine\n{{v}}\nmine too":    {before: "mine\n", foreign: "V\nW", after: "\nmine too"},
		"mine\nsubject: {{v}} end": {before: "mine\n", foreign: "subject: V\nW end"},
		"{{v}} and\nmiddle\n{{v}}": {foreign: "V\nW and\nmiddle\nV\nW"},
	} {
		tm, err := ParseTemplate(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tm.render(func([]string) any { return "V\nW" }); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", in, got, err, want)
		}
	}
}

// FuzzTemplate checks that a template with any payload ends, is limited, keeps the value
// within the foreign part, and is the same text in parts and as a whole.
func FuzzTemplate(f *testing.F) {
	f.Add("New mail from {{messages[0].from}}\n{{messages[0].body}}\nEnd",
		[]byte(`{"messages":[{"from":"a","body":"b"}]}`))
	f.Add("{{a}}{{b.0}}", []byte(`{"a":"{{b}}","b":[1]}`))
	f.Add("{{payload.x}} {{headers.x-y}}", []byte(`{}`))
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		tm, err := ParseTemplate(text)
		if err != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		var payload any
		if dec.Decode(&payload) != nil {
			payload = nil
		}
		values := func(p []string) any { return lookup(payload, p) }
		r, err := tm.render(values)
		whole, werr := tm.Render(values)
		if (err == nil) != (werr == nil) || err == nil && (whole != r.String() || len(whole) > maxRendered) {
			t.Errorf("%q %v and %q %v", r, err, whole, werr)
		}
		marked, err := tm.render(func([]string) any { return "\x00" })
		if err == nil && (strings.Contains(marked.before+marked.after, "\x00") && !strings.Contains(text, "\x00")) {
			t.Errorf("a value is outside of the foreign part: %q", marked)
		}
		if tm.Constant() && (r.foreign != "" || r.String() != text) {
			t.Errorf("a constant is foreign: %q", r)
		}
	})
}
