package spelling_test

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/spelling"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"exec", "exec", 0},
		{"exce", "exec", 1}, {"exc", "exec", 1}, {"exxec", "exec", 1}, {"exac", "exec", 1},
		{"apply_pacth", "apply_patch", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
		{strings.Repeat("a", 81), "a", 80},
	} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := spelling.Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("exce", "exec")
	f.Add("", "模型")
	f.Fuzz(func(t *testing.T, a, b string) {
		d := spelling.Distance(a, b)
		if d != spelling.Distance(b, a) || d == 0 != (a == b || d == 0 && len(a) > 80) {
			t.Errorf("Distance(%q, %q) = %d", a, b, d)
		}
		if longer := max(len(a), len(b)); longer <= 80 && (d > longer || d < longer-min(len(a), len(b))) {
			t.Errorf("Distance(%q, %q) = %d", a, b, d)
		}
	})
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	names := []string{"openai", "openrouter", "groq", "grok"}
	for name, want := range map[string]string{
		"opnai":     "; did you mean openai?",
		"grog":      "; did you mean groq or grok?",
		"elsewhere": "",
		"groom":     "",
		"orok":      "; did you mean grok?",
	} {
		if got := spelling.DidYouMean(name, names); got != want {
			t.Errorf("DidYouMean(%q) = %q, want %q", name, got, want)
		}
	}
}
