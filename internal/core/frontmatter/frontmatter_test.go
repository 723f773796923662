package frontmatter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/frontmatter"
)

// fields are those of the tests.
type fields struct {
	Name string `yaml:"name"`
	Text string `yaml:"text"`
	More struct {
		List []string `yaml:"list"`
	} `yaml:"more"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, text, body string }{
		{"plain", "---\nname: a\ntext: b\n---\nBody\n", "b", "Body"},
		{"a colon", "---\nname: a\ntext: Use it: always\n---\nBody", "Use it: always", "Body"},
		{"a colon at the end", "---\ntext: Use it when:\nname: a\n---\nBody", "Use it when:", "Body"},
		{"a colon on the next line", "---\nname: a\ntext: Use it\n  for this: that\n---\nBody",
			"Use it for this: that", "Body"},
		{"quotes inside", "---\nname: a\ntext: \"now\" or later\n---\nBody", `"now" or later`, "Body"},
		{"a special character", "---\nname: a\ntext: @here and `there`\n---\nBody", "@here and `there`", "Body"},
		{"an asterisk", "---\nname: a\ntext: *very* good\n---\nBody", "*very* good", "Body"},
		{"blanks after the lines", "--- \nname: a\ntext: b\n---\t \nBody", "b", "Body"},
		{"no line end", "---\nname: a\ntext: b\n---", "b", ""},
		{"CRLF and blanks", "\ufeff\r\n--- \r\nname: a\r\ntext: b: c\r\n--- \r\nBody\r\n", "b: c", "Body"},
		{"tabs", "---\nname: a\nmore:\n\tlist:\n\t\t- x\ntext: b\n---\nBody", "b", "Body"},
		{"a rule in the body", "---\nname: a\ntext: b\n---\nBody\n\n---\n\nmore", "b", "Body\n\n---\n\nmore"},
		{"UTF-16", "\xff\xfe" + strings.Join(strings.Split("---\nname: a\ntext: b\n---\nBody\n", ""), "\x00") + "\x00", "b",
			"Body"},
		{"windows-1252", "---\nname: a\ntext: Gr\xfc\xdfe f\xfcr K\xf6ln\n---\nBody", "Grüße für Köln", "Body"},
		{"three dashes in a value", "---\nname: a\ntext: |\n  b\n  ---\n---\nBody", "b\n---\n", "Body"},
	} {
		var f fields
		body, err := frontmatter.Decode([]byte(tt.in), &f)
		if err != nil || f.Name != "a" || f.Text != tt.text || body != tt.body {
			t.Errorf("%s: %+v, %q, %v", tt.name, f, body, err)
		}
		if tt.name == "tabs" && len(f.More.List) != 1 {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
	for in, want := range map[string]string{
		"no front matter": "does not begin with front matter",
		"---\nname: a\n":  "begins in line 1, and no line --- ends it", "\x00\x01\x02\x03": "it is not text",
		"----\nname: a\n----\n":                                              "does not begin with front matter",
		"---\nname: a\ntext: [\n---\n":                                       "front matter: line 3: ",
		"\n\n---\nname: a\ntext: {a\n---\n":                                  "front matter: line ",
		"---\nname: a\nmore: x\n---\n":                                       "front matter: line 3: cannot unmarshal",
		"---\nname: a\nloose words\n---\n":                                   "front matter: line ",
		"---\nname: " + strings.Repeat("x", frontmatter.MaxHead) + "\n---\n": "front matter: it has ",
	} {
		var f fields
		_, err := frontmatter.Decode([]byte(in), &f)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v, want %q", in, err, want)
		}
		if none := strings.HasPrefix(want, "does not"); none != errors.Is(err, frontmatter.ErrNone) {
			t.Errorf("%.40q: %v is ErrNone: %t", in, err, !none)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"---\na: b: c\n---\n", "---\n\ta:\n\t\t- b\n---", "---\na: &a [*a]\n---\n",
		"---\n---\n", "\n--- \nx\n---"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) {
		var v map[string]any
		_, _ = frontmatter.Decode([]byte(s), &v)
	})
}
