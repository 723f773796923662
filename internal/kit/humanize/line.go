package humanize

import (
	"strings"
	"unicode"
)

// OneLine returns a text in one line: each sequence of white space, line breaks and control
// characters becomes one space, so that words stay apart. Characters that reorder the text
// around them are removed.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069', r == '\ufeff':
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

var breaks = strings.NewReplacer(
	"\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n",
)

// Breaks returns a text in which every line break is a line feed.
func Breaks(s string) string { return breaks.Replace(s) }
