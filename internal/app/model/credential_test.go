package model

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	o := on(t, map[string]string{"GROQ_API_KEY": "env"}, nil)
	write(t, filepath.Join(o.Keys, "groq.work.key"), "w")
	m, err := begin(t,
		conf{"models": two, "agents.defaults": `{"model": {"primary": "one/m1", "fallbacks": ["groq/llama"]}}`}, o)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][]string{
		"groq":    {"groq:GROQ_API_KEY groq/llama", "groq:work groq/llama saved"},
		"one":     {"one:config one/m1"},
		"two":     {"two:config two/m2"},
		"offline": {"offline offline/assistant"},
		"openai":  nil,
		"nobody":  nil,
	} {
		var got []string
		for _, w := range m.Credentials(id) {
			line := w.Key + " " + w.Model.Ref()
			if w.Saved {
				line += " saved"
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", id, diff)
		}
	}
}

func TestRemoveKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"", "work", "home"} {
		if err := SaveKey(dir, "groq", name, "k"+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := SaveKey(dir, "groqqy", "", "other"); err != nil {
		t.Fatal(err)
	}
	if gone, err := RemoveKeys(dir, "groq", []string{"groq:work", "groq:../groqqy"}); err == nil || gone != nil {
		t.Errorf("an unknown key: %v, %v", gone, err)
	}
	for _, tt := range []struct{ ids, want []string }{
		{[]string{"groq:work", "groq:work"}, []string{"groq:work"}}, {nil, []string{"groq:default", "groq:home"}},
		{nil, []string{}},
	} {
		got, err := RemoveKeys(dir, "groq", tt.ids)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%v: %v\n%s", tt.ids, err, diff)
		}
	}
	if left := savedIn(dir); len(left) != 1 || len(left["groqqy"]) != 1 {
		t.Errorf("left: %v", left)
	}
}
