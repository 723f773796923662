package markup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/chela-ai/chela/internal/kit/chunk"
)

// styled returns the characters of a text, without white space, each with its styles.
func styled(md string) []string {
	text, spans := Signal(md)
	units := utf16.Encode([]rune(text))
	var out []string
	for i, u := range units {
		if unicode.IsSpace(rune(u)) {
			continue
		}
		c := fmt.Sprintf("%x", u)
		var styles []string
		for _, s := range spans {
			if i >= s.Start && i < s.Start+s.Length {
				styles = append(styles, fmt.Sprint(s.Style))
			}
		}
		slices.Sort(styles)
		out = append(out, c+" "+strings.Join(slices.Compact(styles), "+"))
	}
	return out
}

// TestPieces compares the pieces of a text with the whole: each character keeps its styles.
func TestPieces(t *testing.T) {
	t.Parallel()
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for name, md := range map[string]string{
		"STREAM-08 bold":       "**" + words(300) + "**",
		"bold in a sentence":   "Before " + words(20) + " **" + words(100) + "** and after.",
		"bold and italic":      "***" + words(100) + "***",
		"nested":               "**" + words(30) + " _" + words(60) + "_ " + words(30) + "**",
		"struck":               "~~" + words(100) + "~~",
		"code":                 "a `" + words(100) + "` b",
		"Chinese":              "**" + strings.Repeat("汉字没有空格。", 60) + "**后面" + strings.Repeat("没有", 40),
		"stars that are none":  words(30) + " 2 * 3 * 4 " + words(60) + " *" + words(40),
		"names with _":         strings.Repeat("snake_case_name ", 60),
		"lists":                strings.Repeat("* item **with "+words(4)+"** in it\n", 40),
		"two paragraphs":       "**" + words(40) + "\n\n" + words(40) + "**",
		"beside code":          "**" + words(20) + "**\n```\n**" + words(60) + "\n```\n*" + words(60) + "*",
		"escaped":              `\*\*` + words(100) + `\*\*`,
		"marker at the border": strings.Repeat("**a** *b* ", 80),
	} {
		for _, limit := range []int{80, 133, 400} {
			var got []string
			pieces := chunk.Split(md, chunk.Options{Limit: limit})
			for _, p := range pieces {
				got = append(got, styled(p)...)
			}
			if want := styled(md); !slices.Equal(got, want) {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Errorf("%s, limit %d: character %d is %q, want %q, of the pieces\n%s", name, limit, i, got[i], want[i],
							strings.Join(pieces, "\n---\n"))
						break
					}
				}
				if len(got) != len(want) {
					t.Errorf("%s, limit %d: %d characters, want %d", name, limit, len(got), len(want))
				}
			}
		}
	}
}

// TestRandomPieces is TestPieces for texts in which spans are closed before others begin or end.
func TestRandomPieces(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		var b strings.Builder
		plain := func() string {
			return strings.TrimSpace(strings.Repeat([]string{"word ", "End. ", "多字", "a, b "}[r.IntN(4)], 1+r.IntN(12)))
		}
		for range 1 + r.IntN(12) {
			mark := []string{"", "**", "*", "_", "~~", "`", "***"}[r.IntN(7)]
			inner := plain()
			if mark == "**" && r.IntN(2) == 0 {
				inner += " _" + plain() + "_ " + plain()
			}
			b.WriteString(mark + inner + mark)
			b.WriteString([]string{" ", " ", "\n", "\n\n", "\n- "}[r.IntN(5)])
		}
		md, limit := b.String()+"end", 70+r.IntN(150)
		var got []string
		pieces := chunk.Split(md, chunk.Options{Limit: limit})
		for _, p := range pieces {
			got = append(got, styled(p)...)
		}
		if want := styled(md); !slices.Equal(got, want) {
			t.Fatalf("seed %d, limit %d: the pieces\n%s\nof\n%s", seed, limit, strings.Join(pieces, "\n---\n"), md)
		}
	}
}
