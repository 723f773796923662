package shell

import (
	"strconv"
	"strings"
	"unicode"
)

// Text returns the plan for people: the command as it was written, line by
// line, and under it, when that says more, one line for each segment. Nothing
// is cut; what is not printable is escaped.
func (p Plan) Text() string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(p.Command, "\n"), "\n") {
		b.WriteString("  " + Escape(line) + "\n")
	}
	return b.String()
}

// Escape writes a text as one line in which every character can be seen:
// control, bidi and other characters without a picture are escaped.
func Escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) && r != '\t' {
			q := strconv.QuoteToASCII(s[i : i+max(1, runeLen(s[i:]))])
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}
