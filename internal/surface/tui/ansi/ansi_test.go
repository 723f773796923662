package ansi

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/test/chelatest/naughty"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain text", "hello\nworld", "hello\nworld"},
		{"wide and joined characters", "你好 👩‍👩‍👧 é", "你好 👩‍👩‍👧 é"},
		{"colors", "\x1b[31mred\x1b[0m", "red"},
		{"window title", "a\x1b]0;owned\x07b", "ab"},
		{"window title ended by ST", "a\x1b]0;owned\x1b\\b", "ab"},
		{"hyperlink", "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"clipboard", "\x1b]52;c;aGk=\x07ok", "ok"},
		{"C1 controls", "a\u009b31mb\u009d0;x\u009cc", "abc"},
		{"all C1 strings", "a\u0090q#0\u009cb\u0098x\u009cc\u009ey\u009cd\u009fz\u009ce", "abcde"},
		{"cursor movement", "a\x1b[2J\x1b[1;1Hb", "ab"},
		{"an unterminated sequence ends at the end of the line", "a\x1b]0;never ended\nb", "a\nb"},
		{"an incomplete sequence at the end", "a\x1b", "a"},
		{"an incomplete parameter at the end", "a\x1b[3", "a"},
		{"device control", "a\x1bPq#0\x1b\\b", "ab"},
		{"character sets", "a\x1b(0b", "ab"},
		{"bell and backspace", "a\a\b\x7fb", "ab"},
		{"bidirectional marks", "a\u202eb\u2066c\u200f", "abc"},
		{"hidden characters", "a\u200b\ufeff\u00ad\U000e0041b", "ab"},
		{"line ends of other systems", "a\r\nb\rc\u2028d\ve\ff\u0085g", "a\nb\nc\nd\ne\nf\ng"},
		{"tabs", "a\tb", "a    b"},
		{"invalid UTF-8", "a\xffb", "a\ufffdb"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(tt.in); got != tt.want {
				t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a", "\x1b[31mx", "\x1b]8;;u\x1b\\t", "\u009b1m", "\r\n\r", "\x1b\x1b\x1b[", "\xc2",
		"a\u202eb", "\x1bP\x9c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) {
			t.Fatalf("Clean(%q) = %q is not valid", s, got)
		}
		for _, r := range got {
			if r != '\n' && hidden(r) {
				t.Fatalf("Clean(%q) = %q holds %U", s, got, r)
			}
		}
		if again := Clean(got); again != got {
			t.Fatalf("Clean of %q is not stable: %q", got, again)
		}
	})
}

func TestStyle(t *testing.T) {
	t.Parallel()
	if got, want := Style("1").Over("31").Paint("a\nb"), "\x1b[31;1ma\x1b[m\n\x1b[31;1mb\x1b[m"; got != want {
		t.Errorf("Paint = %q, want %q", got, want)
	}
	if got := Style("").Paint("a"); got != "a" {
		t.Errorf("Paint without a style = %q", got)
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"}, {"longer", 5, "long…"}, {"你好世界", 5, "你好…"}, {"x", 0, ""}, {"xy", 1, "…"},
		{"whole words are kept", 14, "whole words…"}, {"whole words are kept", 12, "whole words…"},
		{"whole words are kept", 11, "whole…"},
		{"a verylongwordwithoutspaces", 20, "a verylongwordwitho…"}, {"two  gaps", 5, "two…"},
	} {
		if got := Truncate(tt.in, tt.n); got != tt.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	got := Wrap(Style("1").Paint("eins zwei drei"), 9)
	for l := range strings.SplitSeq(got, "\n") {
		if Width(l) > 9 || !strings.HasPrefix(l, "\x1b[1m") {
			t.Errorf("line %q of %q", l, got)
		}
	}
}

func TestWrapAtHyphens(t *testing.T) {
	t.Parallel()
	for _, in := range []string{strings.Repeat("0", 39) + "-", Style("1").Paint(strings.Repeat("你", 19)+"a-") + "b"} {
		if got := Wrap(in, 39); Width(got) > 39 || strings.ReplaceAll(Clean(got), "\n", "") != Clean(in) {
			t.Errorf("Wrap(%q) = %q", in, got)
		}
	}
}

// TestWrapAtFlags checks that no line is empty: the end of a line before a flag is a blank
// after the last column.
func TestWrapAtFlags(t *testing.T) {
	t.Parallel()
	const in = "the chat that was used last, or where --channel and --to say. It is one of --at, --every or --cron."
	for width := 20; width < 60; width++ {
		got := Wrap(in, width)
		if Width(got) > width ||
			slices.ContainsFunc(strings.Split(got, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" }) {
			t.Errorf("%d columns: %q", width, got)
		}
	}
}

// TestWrapKeepsWords checks that what is to be typed or copied is not broken at a hyphen.
func TestWrapKeepsWords(t *testing.T) {
	t.Parallel()
	const in = "at a TIME like 2026-03-01T09:00, with --light-context, (--to) or ~/my-notes.txt, a well-known step-by-step way"
	for width := 21; width < 60; width++ {
		got := Wrap(in, width)
		for _, word := range []string{"2026-03-01T09:00,", "--light-context,", "(--to)", "~/my-notes.txt,"} {
			if !strings.Contains(got, word) {
				t.Errorf("%d columns: %q is broken in %q", width, word, got)
			}
		}
		if Width(got) > width {
			t.Errorf("%d columns: %q", width, got)
		}
	}
	if got := Wrap("a well-known way", 8); got != "a well-\nknown\nway" {
		t.Errorf("%q: words of letters are broken at hyphens", got)
	}
}

func TestNaughty(t *testing.T) {
	t.Parallel()
	for _, s := range naughty.Strings(t) {
		if got := Clean(s); naughty.Hides(got) || Clean(got) != got {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		if got := Line(s); naughty.Hides(got) || strings.Contains(got, "\n") {
			t.Errorf("Line(%q) = %q", s, got)
		}
		for line := range strings.SplitSeq(Wrap(s, 10), "\n") {
			if Width(line) > 10 {
				t.Errorf("Wrap(%q): %q is %d wide", s, line, Width(line))
			}
		}
	}
}
