package llm

import (
	"slices"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	c := Catalog{
		Models: []Model{
			{Provider: "anthropic", ID: "claude-x"}, {Provider: "openrouter", ID: "moonshotai/kimi-k2"},
			{Provider: "openai", ID: "gpt-5"}, {Provider: "azure", ID: "gpt-5"}, {Provider: "groq", ID: "openai/oss"},
		},
		Aliases: map[string]string{"best": "anthropic/claude-x", "bare": "claude-x", "gone": "lab/old"},
	}
	for _, tt := range []struct{ in, want, err string }{
		{"best", "anthropic/claude-x", ""},
		{" BEST ", "anthropic/claude-x", ""},
		{"bare", "anthropic/claude-x", ""},
		{"gone", "lab/old", ""},
		{"Anthropic/Claude-X", "anthropic/claude-x", ""},
		{"claude-x", "anthropic/claude-x", ""},
		{"moonshotai/kimi-k2", "openrouter/moonshotai/kimi-k2", ""},
		{"openrouter/moonshotai/kimi-k2", "openrouter/moonshotai/kimi-k2", ""},
		{"MODEL/a/B", "model/a/B", ""},
		{"gpt-5", "", "openai/gpt-5, azure/gpt-5"},
		{"claud-x", "", "similar: anthropic/claude-x"},
		{"bast", "", "similar: best"},
		{"kimi", "", "openrouter/moonshotai/kimi-k2"},
		{"zzzzzzzzzz", "", "unknown: want"},
		{"", "", "want provider/model"},
		{"/x", "", "want provider/model"},
		{"x/", "", "want provider/model"},
	} {
		m, err := c.Resolve(tt.in)
		switch {
		case tt.err == "" && (err != nil || m.Ref() != tt.want):
			t.Errorf("Resolve(%q) = %q, %v; want %q", tt.in, m.Ref(), err, tt.want)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("Resolve(%q) = %v; want an error with %q", tt.in, err, tt.err)
		}
	}
	t.Run("MODEL-06 a reference is split at its first slash", func(t *testing.T) {
		m, err := c.Resolve("openrouter/a/b")
		if err != nil || m.Provider != "openrouter" || m.ID != "a/b" {
			t.Errorf("Resolve = %+v, %v", m, err)
		}
	})
	t.Run("an unlisted model has no price", func(t *testing.T) {
		if m, _ := c.Resolve("lab/new"); m.Price != nil || m.Context != 0 {
			t.Errorf("Resolve = %+v", m)
		}
	})
}

func TestKnown(t *testing.T) {
	t.Parallel()
	c := Known()
	seen := map[string]bool{}
	for _, m := range c.Models {
		ref := strings.ToLower(m.Ref())
		if seen[ref] || m.Provider == "" || m.ID == "" || m.Name == "" {
			t.Errorf("%s: duplicate, or without a name", ref)
		}
		seen[ref] = true
		if m.MaxOutput > m.Context && m.Context > 0 {
			t.Errorf("%s: output %d, context %d", ref, m.MaxOutput, m.Context)
		}
		if !slices.IsSortedFunc(m.Levels, func(a, b Level) int {
			return slices.Index(Levels[:], a) - slices.Index(Levels[:], b)
		}) {
			t.Errorf("%s: levels %v are not ascending", ref, m.Levels)
		}
		if p := m.Price; p != nil && (p.Output < p.Input || p.CacheRead > p.Input || p.CacheWrite < p.Input) {
			t.Errorf("%s: price %+v is implausible", ref, *p)
		}
	}
	for alias, ref := range c.Aliases {
		if alias != strings.ToLower(alias) || !seen[ref] {
			t.Errorf("alias %s → %s: not lower case, or not in the catalog", alias, ref)
		}
	}
}

func BenchmarkKnown(b *testing.B) {
	for b.Loop() {
		Known()
	}
}

func BenchmarkResolve(b *testing.B) {
	c := Known()
	for b.Loop() {
		_, _ = c.Resolve("openrouter/openai/gpt-5-mini")
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	c := Catalog{
		Models: []Model{{Provider: "a", ID: "one"}, {Provider: "a", ID: "two"}, {Provider: "b", ID: "x/y"},
			{Provider: "b", ID: "z"}},
		Aliases: map[string]string{"quick": "a/two"},
	}
	for _, tt := range []struct {
		allow []string
		want  string // allowed models of "a/one", "quick", "b/x/y", "b/z", "c/new"
	}{
		{nil, "a/one a/two b/x/y b/z c/new"},
		{[]string{"A/One"}, "a/one"},
		{[]string{"quick"}, "a/two"},
		{[]string{"b/*"}, "b/x/y b/z"},
		{[]string{"B/X/*"}, "b/x/y"},
		{[]string{"*"}, "a/one a/two b/x/y b/z c/new"},
		{[]string{"nonsense", "c/new"}, "c/new"},
	} {
		var got []string
		for _, ref := range []string{"a/one", "quick", "b/x/y", "b/z", "c/new"} {
			m, err := (Catalog{Models: c.Models, Aliases: c.Aliases, Allow: tt.allow}).Choose(ref)
			if err == nil {
				got = append(got, m.Ref())
			} else if !strings.Contains(err.Error(), "agents.defaults.modelPolicy.allow") {
				t.Errorf("%v: %s: %v", tt.allow, ref, err)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%v: %q, want %q", tt.allow, got, tt.want)
		}
	}
}
