package approval

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, plan, want string }{
		{"plain text", "rm -rf x\n  in /tmp", "rm -rf x\n  in /tmp"},
		{"letters of any script", "echo 你好 é", "echo 你好 é"},
		{"terminal control sequences", "echo \x1b[2J\x07", `echo \x1b[2J\a`},
		{"carriage return", "rm x\recho hello", `rm x\recho hello`},
		{"bidirectional controls", "echo \u202e hello \u2066", `echo \u202e hello \u2066`},
		{"invisible characters", "a\u200bb\u3164c\u2800d\ufe0fe\U000e0041f", `a\u200bb\u3164c\u2800d\ufe0fe\U000e0041f`},
		{"no-break space", "rm\u00a0x", `rm\u00a0x`},
		{"other line separators", "a\u2028b\u0085c", `a\u2028b\u0085c`},
		{"invalid UTF-8", "a\xffb", `a\xffb`},
		{"a tab", "a\tb", `a\tb`},
	} {
		if got, err := Escape(tt.plan); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	for name, plan := range map[string]string{
		"too long": strings.Repeat("x", maxText+1), "too long after escaping": strings.Repeat("\x01", maxText/3),
	} {
		if got, err := Escape(plan); chela.CodeOf(err) != chela.CodeInvalid || got != "" ||
			!strings.Contains(err.Error(), "too long to be shown whole") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"ls", "a\x1b[31mb", "\u202e", "\xff\xfe", "a\nb", `\u202e`, "\u3164"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Escape(s)
		if err != nil {
			if len(s) < maxText/10 {
				t.Fatalf("%d bytes were refused", len(s))
			}
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not valid UTF-8", got)
		}
		for _, r := range got {
			if r != '\n' && !visible(r) {
				t.Fatalf("%q contains %U", got, r)
			}
		}
		if again, err := Escape(got); err != nil || again != got {
			t.Fatalf("escaped twice: %q, %v; once: %q", again, err, got)
		}
		if strings.Count(got, "\n") != strings.Count(s, "\n") {
			t.Fatalf("the lines of %q and %q differ", got, s)
		}
	})
}

func FuzzParseDecision(f *testing.F) {
	for _, s := range []string{"allow-once", "always", " NO ", "deny", "expired", "withdrawn", "",
		"allow-onceX", "ALLOW-ALWAYS"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := ParseDecision(s)
		if ok != (d == AllowOnce || d == AllowAlways || d == Deny) {
			t.Fatalf("%q is %q, %v", s, d, ok)
		}
		if again, ok2 := ParseDecision(strings.ToUpper(" " + string(d) + " ")); ok && (!ok2 || again != d) {
			t.Fatalf("%q, the decision of %q, is parsed as %q", d, s, again)
		}
		if ok && d.Allows() && strings.ContainsAny(strings.ToLower(s), "dx") {
			t.Fatalf("%q allows", s) // no allowing word contains these letters, so a mistyped deny never allows
		}
	})
}
