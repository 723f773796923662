package chunk

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// units counts UTF-16 code units and bytesOf counts UTF-8 bytes, as some platforms
// do.
func units(r rune) int   { return max(utf16.RuneLen(r), 1) }
func bytesOf(r rune) int { return max(utf8.RuneLen(r), 1) }

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		text  string
		limit int
		want  []string
	}{
		{"nothing", "", 10, nil},
		{"fits", "hello", 5, []string{"hello"}},
		{"paragraph", "one two\n\nthree four", 14, []string{"one two\n\n", "three four"}},
		{"line", "one two\nthree four", 14, []string{"one two\n", "three four"}},
		{"paragraph rather than a later line", "one two\n\nthree\nfour five", 16,
			[]string{"one two\n\n", "three\nfour five"}},
		{"sentence", "One is. Two is three", 14, []string{"One is. ", "Two is three"}},
		{"Chinese sentence", "一二三四五。六七八九十", 8, []string{"一二三四五。", "六七八九十"}},
		{"blank", "aaaa bbbb cccc", 12, []string{"aaaa bbbb ", "cccc"}},
		{"in a word", "abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"not inside a grapheme", "abcde\u0301f", 5, []string{"abcd", "e\u0301f"}},
		{"code is not split", "intro text here\n```go\na\nb\n```\nend", 24,
			[]string{"intro text here\n", "```go\na\nb\n```\nend"}},
		{"long code is closed and reopened", "```go\naaaaaaaa\nbbbbbbbb\ncccccccc\n```\nend", 32, []string{
			"```go\naaaaaaaa\nbbbbbbbb\n```", "```go\ncccccccc\n```\nend",
		}},
		{"code without an end", "```\naaaaaaaaaaaaaaaa\nbbbbbbbbbb\n", 28,
			[]string{"```\naaaaaaaaaaaaaaaa\n```", "```\nbbbbbbbbbb\n```"}},
		{"no fence is created", "aaaaaaaa ```x``` bbbbbbbb", 16, []string{"aaaaaaaa ```x```", " bbbbbbbb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Split(c.text, Options{Limit: c.limit})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	t.Run("STREAM-01 code across the limit", func(t *testing.T) {
		text := strings.Repeat("Some words in a row. ", 140) + "\n```python\n" +
			strings.Repeat("x = [1, 2, 3]  # number\n", 60) + "```\n" + strings.Repeat("And more words. ", 50)
		got := Split(text, Options{Limit: 2000})
		if len(text) < 5000 || len(got) < 3 {
			t.Fatalf("%d pieces of %d bytes", len(got), len(text))
		}
		for i, p := range got {
			if n := utf8.RuneCountInString(p); n > 2000 {
				t.Errorf("piece %d has %d runes", i, n)
			}
			if strings.Count(p, "```")%2 != 0 {
				t.Errorf("piece %d has an open fence:\n%s", i, p)
			}
		}
	})
	t.Run("STREAM-07 10 000 runes of Chinese", func(t *testing.T) {
		text := strings.Repeat("汉字没有空格", 1600) + strings.Repeat("😀", 400)
		for name, o := range map[string]Options{
			"runes": {Limit: 4096}, "UTF-16": {Limit: 4096, Size: units}, "bytes": {Limit: 510, Size: bytesOf},
		} {
			got := Split(text, o)
			if strings.Join(got, "") != text {
				t.Errorf("%s: the pieces do not join to the text", name)
			}
			for i, p := range got {
				if !utf8.ValidString(p) || o.Len(p) > o.Limit {
					t.Errorf("%s: piece %d is %d long, valid %v", name, i, o.Len(p), utf8.ValidString(p))
				}
				if i+1 < len(got) && o.Len(p) < o.Limit-3 {
					t.Errorf("%s: piece %d is too short: %d", name, i, o.Len(p))
				}
			}
		}
	})
}

// sound checks the properties that hold for every text.
func sound(t *testing.T, text string, o Options, balanced bool) {
	t.Helper()
	var b strings.Builder
	for i, p := range split(text, o) {
		b.WriteString(p.text)
		whole := p.open + p.text + p.shut
		if p.text == "" || o.Len(whole) > o.Limit && utf8.RuneCountInString(p.text) > 1 {
			t.Fatalf("limit %d: piece %d of %q is %q", o.Limit, i, text, p)
		}
		if utf8.ValidString(text) && !utf8.ValidString(whole) {
			t.Fatalf("piece %d of %q splits a rune: %q", i, text, whole)
		}
		if fs := fences(whole, 99); balanced && len(fs) > 0 {
			if f := fs[len(fs)-1]; f.closing == len(whole) {
				t.Fatalf("limit %d: piece %d of %q has an open fence: %q", o.Limit, i, text, whole)
			}
		}
	}
	if b.String() != text {
		t.Fatalf("limit %d: pieces of %q join to %q", o.Limit, text, b.String())
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	parts := []string{
		"word ", "sentence. ", "para\n\n", "line\n", "长文本。", "😀", "x", "\n```go\nfunc f() {}\n```\n", "`code` ",
		"\n~~~\n" + strings.Repeat("tilde line\n", 12) + "~~~\n", "\n```\n" + strings.Repeat("y", 90) + "\n```\n", "e\u0301",
	}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for range r.IntN(60) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		size := []func(rune) int{nil, units, bytesOf}[r.IntN(3)]
		sound(t, b.String(), Options{Limit: 40 + r.IntN(200), Size: size}, true)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("a\n```go\nb\n```\nc", 12)
	f.Add("```\n```\n```", 1)
	f.Add("汉字😀 "+strings.Repeat("`", 50), 9)
	f.Add("\xff\xfe ~~~ x\n~~~~\n  ~~~", 5)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > 5000 || len(text) > 20_000 {
			t.Skip()
		}
		sound(t, text, Options{Limit: limit}, false)
		sound(t, text, Options{Limit: limit, Size: units}, false)
	})
}

func BenchmarkSplit(b *testing.B) {
	text := strings.Repeat("Some words in a row, and a few more. ", 3000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_ = fmt.Sprint(len(Split(text, Options{})))
	}
}

func TestFenced(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"rm x":          "```\nrm x\n```",
		"a\n":           "```\na\n```",
		"a\n```\nb":     "````\na\n```\nb\n````",
		"`````\n```` x": "``````\n`````\n```` x\n``````",
	} {
		if got := Fenced(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func BenchmarkSplitMarked(b *testing.B) {
	text := strings.Repeat("Some **words** in a `row`, and a *few* more. ", 3000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_ = fmt.Sprint(len(Split(text, Options{})))
	}
}
