package index

import (
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/estimate"
)

// FuzzChunks: the chunks of any note have all its lines, in order, and bounded sizes.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{
		"", "# A\n\ntext\n## B\nmore\n# C\n", "```\n# no heading\n```\n# yes", "#", "####### seven", "\r\n\r\n# x\r\n",
		"# \n# \n", "a\n\n\n\nb", "~~~\n```\n~~~",
		strings.Repeat("long ", 2000), strings.Repeat("line\n", 1000), strings.Repeat("空调", 3000),
		"# " + strings.Repeat("h", 5000) + "\ntext",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, note string) {
		note = strings.ToValidUTF8(note, "\uFFFD")
		lines := strings.Split(strings.TrimSuffix(note, "\n"), "\n")
		all := chunks([]byte(note))
		seen := map[int]bool{}
		last := 0
		for _, c := range all {
			if c.first < 1 || c.last < c.first || c.last > len(lines) || c.first < last {
				t.Fatalf("lines %d to %d of %d, after one from %d", c.first, c.last, len(lines), last)
			}
			if len(c.text) > 2*chunkTokens*estimate.BytesPerToken+overlapTokens*estimate.BytesPerToken ||
				!utf8.ValidString(c.text) {
				t.Fatalf("a chunk of %d bytes", len(c.text))
			}
			for i := c.first; i <= c.last; i++ {
				seen[i] = true
			}
			last = c.first
		}
		for i, line := range lines {
			if strings.TrimSpace(line) != "" && !seen[i+1] && headingLevel(strings.TrimRight(line, "\r")) == 0 {
				t.Fatalf("line %d %q is in no chunk", i+1, line)
			}
		}
	})
}

// FuzzTerms: terms are what the full-text index takes as one word, and a question about a
// text in its own words asks for terms that the text has.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"", "The routers' NAS", "空调 router 13800138000", "naïve Ångström don’t", "\u202ea\u2066b",
		"ﬁx", strings.Repeat("x", 1000), "日本語カタカナ 한국어 ไทย", "a\x00b", "İ", "家里的", "\u200b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := newSpeller()
		terms := s.terms(text)
		for _, term := range terms {
			if term == "" || len(term) > maxWord || !utf8.ValidString(term) ||
				strings.ContainsFunc(term,
					func(r rune) bool { return r < 128 && !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z') }) {
				t.Fatalf("%q: term %q", text, term)
			}
		}
		for _, c := range s.cells(text) {
			if !slices.ContainsFunc(c.terms, func(term string) bool { return slices.Contains(terms, term) }) {
				t.Fatalf("%q: the text has none of the terms %q", text, c.terms)
			}
		}
	})
}

// FuzzVector: a packed vector has nearly the direction of the original.
func FuzzVector(f *testing.F) {
	f.Add([]byte{1, 2, 3, 250}, []byte{4, 0, 0, 9})
	f.Add([]byte{0, 0, 0, 1}, []byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		n := min(len(a), len(b))
		v, w := make([]float32, n), make([]float32, n)
		dot, vv, ww := 0.0, 0.0, 0.0
		for i := range n {
			v[i], w[i] = float32(int8(a[i]))/7, float32(int8(b[i]))*1e6
			dot, vv, ww = dot+float64(v[i])*float64(w[i]), vv+float64(v[i])*float64(v[i]), ww+float64(w[i])*float64(w[i])
		}
		if vv == 0 || ww == 0 {
			return // embedders return none of these
		}
		p, q := pack(v), pack(w)
		want := dot / math.Sqrt(vv*ww)
		if got := cosine(p, q); math.Abs(got-want) > 0.02*math.Sqrt(float64(n)) || dimension(p) != n {
			t.Errorf("cosine %v, want %v", got, want)
		}
		if d := different(signs(p), signs(p)); d != 0 {
			t.Errorf("%d signs differ from themselves", d)
		}
	})
}
