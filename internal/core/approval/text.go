package approval

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
)

// maxText is the maximum size of an escaped plan in bytes.
const maxText = 64 << 10

// Escape returns a plan in the form in which every surface displays it: not
// truncated, with invisible characters, control characters and characters that
// reorder text escaped. If the result is too long, Escape returns an error with the
// code [chela.CodeInvalid].
func Escape(plan string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(plan) && b.Len() <= maxText; {
		r, n := utf8.DecodeRuneInString(plan[i:])
		if r == '\n' || visible(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(plan[i : i+n])
		} else {
			q := strconv.QuoteToASCII(plan[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	if b.Len() > maxText {
		return "", chela.Errorf(chela.CodeInvalid,
			"the plan is too long to be shown whole (%d bytes; at most %d can be shown)", max(len(plan), b.Len()), maxText)
	}
	return b.String(), nil
}

// visible reports whether r has a visible glyph.
func visible(r rune) bool {
	return unicode.IsPrint(r) && r != '\u2800' && // the blank braille pattern
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.Variation_Selector, r)
}
