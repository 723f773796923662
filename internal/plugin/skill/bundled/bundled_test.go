package bundled_test

import (
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/plugin/skill/bundled"
)

func TestSkills(t *testing.T) {
	t.Parallel()
	all, err := skill.ParseBundled(bundled.Skills)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 12 {
		t.Errorf("%d skills", len(all))
	}
	for _, s := range all {
		text, err := fs.ReadFile(bundled.Skills, strings.TrimPrefix(s.File, skill.BundledPath))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > 60 {
			t.Errorf("%s has %d lines, at most 60", s.Name, n)
		}
		if s.File != skill.BundledPath+s.Name+"/SKILL.md" {
			t.Errorf("%s is in %s", s.Name, s.File)
		}
		if n := utf8.RuneCountInString(s.Description); n > 110 {
			t.Errorf("the description of %s has %d characters, which every prompt has", s.Name, n)
		}
		for _, f := range skill.ScanText(s.File, text) {
			if f.Severity != skill.Info {
				t.Errorf("%v", f)
			}
		}
	}
	if n := len((&skill.Config{}).Prompt(all, "")); n > 3000 {
		t.Errorf("the list of all skills has %d bytes, which every prompt has", n)
	}
}
