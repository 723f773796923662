package approval

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/chela"
)

// maxText bounds what a person is asked to read, in bytes.
const maxText = 64 << 10

// Show returns a plan as it is shown to people, on every surface: whole, and
// with everything escaped that could not be seen or would change how the rest
// reads. A plan that is too long for that is nothing to decide about: an error
// of code [chela.CodeInvalid].
func Show(plan string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(plan) && b.Len() <= maxText; {
		r, n := utf8.DecodeRuneInString(plan[i:])
		if r == '\n' || seen(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(plan[i : i+n])
		} else {
			q := strconv.QuoteToASCII(plan[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	if b.Len() > maxText {
		return "", chela.Errorf(chela.CodeInvalid, "the plan is too long to be shown whole (%d bytes; at most %d can be shown)", max(len(plan), b.Len()), maxText)
	}
	return b.String(), nil
}

// seen reports whether r has a picture of its own.
func seen(r rune) bool {
	return unicode.IsPrint(r) && r != '\u2800' && // a braille cell without dots
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && !unicode.Is(unicode.Variation_Selector, r)
}
