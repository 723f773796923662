package memory

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, note string
		from, n    int
		want       Window
	}{
		{"all", "a\nb\nc\n", 0, 0, Window{"a\nb\nc", 1, 3, 3, false}},
		{"some", "a\nb\nc\n", 2, 1, Window{"b", 2, 2, 3, false}},
		{"after the end", "a\nb\n", 7, 3, Window{"", 3, 2, 2, false}},
		{"an empty note", "", 0, 0, Window{"", 1, 1, 1, false}},
		{"more than there are", "a\nb", 2, math.MaxInt, Window{"b", 2, 2, 2, false}},
		{"a long line", strings.Repeat("x", MaxWindow+1) + "\nb", 0, 0,
			Window{strings.Repeat("x", MaxWindow), 1, 1, 2, true}},
		{"long lines", strings.Repeat(strings.Repeat("x", 999)+"\n", 20), 0, 0,
			Window{strings.TrimSuffix(strings.Repeat(strings.Repeat("x", 999)+"\n", 12), "\n"), 1, 12, 20, false}},
		{"invalid UTF-8", strings.Repeat("\xffa\n", 7000), 0, 7000,
			Window{strings.TrimSuffix(strings.Repeat("\uFFFDa\n", 2400), "\n"), 1, 2400, 7000, false}},
	} {
		if got := Lines([]byte(c.note), c.from, c.n); got != c.want {
			t.Errorf("%s: %.60q, lines %d to %d of %d, cut %v", c.name, got.Text, got.First, got.Last, got.Total, got.Cut)
		}
	}
}

// FuzzLines: the windows of a note, one after the other, are the note, except what is cut
// from long lines.
func FuzzLines(f *testing.F) {
	f.Add("a\nb\n\xff\n", 2)
	f.Add(strings.Repeat("空调\n", 9000), 100000)
	f.Fuzz(func(t *testing.T, note string, n int) {
		var all []string
		for from := 1; ; {
			w := Lines([]byte(note), from, n)
			if len(w.Text) > MaxWindow || !utf8.ValidString(w.Text) || w.First != from || w.Last < w.First || w.Last > w.Total {
				t.Fatalf("%d bytes, lines %d to %d of %d", len(w.Text), w.First, w.Last, w.Total)
			}
			if w.Cut {
				return
			}
			all = append(all, w.Text)
			if from = w.Last + 1; from > w.Total {
				break
			}
		}
		if got, want := strings.Join(all, "\n"), strings.TrimSuffix(strings.ToValidUTF8(note, "\uFFFD"), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
