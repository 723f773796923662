package openai

import (
	"strings"
	"testing"
)

// split returns the thinking and the text of the pieces.
func split(pieces ...string) (thought, text string) {
	var t tags
	for _, p := range pieces {
		th, tx := t.take(p)
		thought, text = thought+th, text+tx
	}
	th, tx := t.flush()
	return thought + th, text + tx
}

func TestTags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, thought, text string }{
		{"plain", "", "plain"},
		{"<think>hm</think>yes", "hm", "yes"},
		{" \n<think>\nhm\n</think>\n\nyes\n", "hm\n", "yes\n"},
		{"<thinking>a < b</thinking>c", "a < b", "c"},
		{"<thought>x</think>y</thought>z", "x</think>y", "z"},
		{"<think>never ends </thi", "never ends </thi", ""},
		{"<think></think>x", "", "x"},
		{"<thin ice>", "", "<thin ice>"},
		{"<th", "", "<th"},
		{"  ", "", "  "},
		{"a <think>b</think>", "", "a <think>b</think>"},
		{"<think>a</think>b<think>c</think>", "a", "b<think>c</think>"},
	} {
		if thought, text := split(tt.in); thought != tt.thought || text != tt.text {
			t.Errorf("%q: %q, %q; want %q, %q", tt.in, thought, text, tt.thought, tt.text)
		}
	}
}

// FuzzTags checks that the result does not depend on how the text is split, and
// that only the tags and the white space around them are removed.
func FuzzTags(f *testing.F) {
	f.Add("<think>hm</think>yes", 3, 5)
	f.Add(" <thinking>\n</thinkin</thinking>\n\n", 1, 1)
	f.Add("<th", 1, 2)
	f.Fuzz(func(t *testing.T, s string, a, b int) {
		thought, text := split(s)
		cut := func(n int) int { return min(max(n, 0), len(s)) }
		a, b = min(cut(a), cut(b)), max(cut(a), cut(b))
		if th, tx := split(s[:a], s[a:b], s[b:]); th != thought || tx != text {
			t.Errorf("%q split at %d and %d: %q, %q; whole: %q, %q", s, a, b, th, tx, thought, text)
		}
		if th, tx := split(strings.Split(s, "")...); th != thought || tx != text {
			t.Errorf("%q character by character: %q, %q; whole: %q, %q", s, th, tx, thought, text)
		}
		if thought == "" && !strings.Contains(s, "</") && text != s &&
			!strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "<") {
			t.Errorf("%q became %q", s, text)
		}
	})
}
