package approval

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/chela"
)

func TestShow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, plan, want string }{
		{"as it is", "rm -rf x\n  in /tmp", "rm -rf x\n  in /tmp"},
		{"letters of any script", "echo 你好 é", "echo 你好 é"},
		{"a terminal is not told anything", "echo \x1b[2J\x07", `echo \x1b[2J\a`},
		{"a line is not written over", "rm x\recho hello", `rm x\recho hello`},
		{"text is not reordered", "echo \u202e hello \u2066", `echo \u202e hello \u2066`},
		{"nothing is hidden", "a\u200bb\u3164c\u2800d\ufe0fe\U000e0041f", `a\u200bb\u3164c\u2800d\ufe0fe\U000e0041f`},
		{"another blank is no blank", "rm\u00a0x", `rm\u00a0x`},
		{"another line end is none", "a\u2028b\u0085c", `a\u2028b\u0085c`},
		{"no UTF-8", "a\xffb", `a\xffb`},
		{"a tab", "a\tb", `a\tb`},
	} {
		if got, err := Show(tt.plan); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	for name, plan := range map[string]string{
		"too long": strings.Repeat("x", maxText+1), "too long when it can be seen": strings.Repeat("\x01", maxText/3),
	} {
		if got, err := Show(plan); chela.CodeOf(err) != chela.CodeInvalid || got != "" || !strings.Contains(err.Error(), "too long to be shown whole") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func FuzzShow(f *testing.F) {
	for _, s := range []string{"ls", "a\x1b[31mb", "\u202e", "\xff\xfe", "a\nb", `\u202e`, "\u3164"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Show(s)
		if err != nil {
			if len(s) < maxText/10 {
				t.Fatalf("%d bytes are too long", len(s))
			}
			return
		}
		if !utf8.ValidString(got) {
			t.Fatalf("%q is no text", got)
		}
		for _, r := range got {
			if r != '\n' && !seen(r) {
				t.Fatalf("%q has %U", got, r)
			}
		}
		if again, err := Show(got); err != nil || again != got {
			t.Fatalf("shown twice %q, %v, once %q", again, err, got)
		}
		if strings.Count(got, "\n") != strings.Count(s, "\n") {
			t.Fatalf("%q has other lines than %q", got, s)
		}
	})
}

func FuzzParseDecision(f *testing.F) {
	for _, s := range []string{"allow-once", "always", " NO ", "deny", "expired", "withdrawn", "", "allow-onceX", "ALLOW-ALWAYS"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := ParseDecision(s)
		if ok != (d == AllowOnce || d == AllowAlways || d == Deny) {
			t.Fatalf("%q is %q, %v", s, d, ok)
		}
		if again, ok2 := ParseDecision(strings.ToUpper(" " + string(d) + " ")); ok && (!ok2 || again != d) {
			t.Fatalf("%q, which %q means, means %q", d, s, again)
		}
		if ok && d.Allows() && strings.ContainsAny(strings.ToLower(s), "dx") {
			t.Fatalf("%q allows", s) // no word that allows has them: one that is near deny does not
		}
	})
}
