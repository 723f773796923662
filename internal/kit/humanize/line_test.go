package humanize_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                "",
		"refused\nretry":                  "refused retry",
		"refused\r\nretry":                "refused retry",
		"a\rb\vc\fd\u0085e\u2028f\u2029g": "a b c d e f g",
		" a \t\n\n b ":                    "a b",
		"a\x00b\x1b[2Jc\x7fd":             "a b [2Jc d",
		"gnp\u202eexe.\u2066x\ufeff":      "gnpexe.x",
		"👨\u200d👩\u200d👧 می\u200cخواهم": "👨\u200d👩\u200d👧 می\u200cخواهم",
		"a\xffb": "a\ufffdb",
	} {
		if got := humanize.OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBreaks(t *testing.T) {
	t.Parallel()
	if got, want := humanize.Breaks("a\r\nb\rc\nd\u2028e\u2029f\u0085g\vh\fi\n\r\nj"),
		"a\nb\nc\nd\ne\nf\ng\nh\ni\n\nj"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
