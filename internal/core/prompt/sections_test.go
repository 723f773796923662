package prompt

import (
	"strings"
	"testing"
)

func TestSections(t *testing.T) {
	t.Parallel()
	const text = "# AGENTS.md\n\nintro\n\n## Session Startup\n\n1. Read.\n\n### Then\n\nAnswer.\n\n## Memory\n\nnotes\n\n" +
		"```md\n## Red Lines\nan example\n```\n\n## red lines ##\n\n- Private.\n"
	for _, tc := range []struct {
		name, text string
		titles     []string
		want       string
	}{
		{"two sections in the order of the titles", text, []string{"Red Lines", "Session Startup"},
			"## red lines ##\n\n- Private.\n\n## Session Startup\n\n1. Read.\n\n### Then\n\nAnswer."},
		{"CRLF", strings.ReplaceAll(text, "\n", "\r\n"), []string{"Memory"},
			"## Memory\n\nnotes\n\n```md\n## Red Lines\nan example\n```"},
		{"a level below", text, []string{"then"}, "### Then\n\nAnswer."},
		{"none", text, []string{"Elsewhere"}, ""},
		{"no titles", text, nil, ""},
		{"a fence that is never closed", "~~~\n## A\n", []string{"A"}, ""},
		{"a longer fence", "````\n```\n## A\n````\n## A\nb", []string{"A"}, "## A\nb"},
		{"older titles", "## Every Session\nx\n## Safety\ny", []string{"Session Startup", "red lines"},
			"## Every Session\nx\n\n## Safety\ny"},
		{"the first of two", "## A\n1\n## A\n2", []string{"A"}, "## A\n1"},
		{"no blank after the marks", "##A\n## B", []string{"A"}, ""},
	} {
		if got := Sections(tc.text, tc.titles); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
	for _, name := range []string{"Session Startup", "Red Lines"} {
		b, err := templates.ReadFile("files/AGENTS.md")
		if got := Sections(string(b), []string{name}); err != nil || !strings.HasPrefix(got, "## "+name+"\n") {
			t.Errorf("AGENTS.md of a new workspace has no section %s: %q, %v", name, got, err)
		}
	}
}

func FuzzSections(f *testing.F) {
	f.Add("# a\n## b\n```\n## c\n```\n", "b")
	f.Fuzz(func(t *testing.T, text, title string) {
		if got := Sections(text, []string{title}); len(got) > len(text) {
			t.Errorf("the section has %d bytes, the text %d", len(got), len(text))
		}
	})
}
