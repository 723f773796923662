package ansi

import (
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/escape"
)

// Clean returns s without escape sequences, control characters, and characters
// that reorder or hide text. It keeps line ends and replaces each tab by four
// spaces.
func Clean(s string) string {
	if harmless(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
		case r == 0x1b || r == 0x9b || r == 0x9d || r == 0x90 || r == 0x9e || r == 0x9f || r == 0x98:
			n += sequence(r, s[i+n:])
		case r == '\t':
			b.WriteString("    ")
		case r == '\r' && strings.HasPrefix(s[i+n:], "\n"):
		case r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029: // so that words are not joined
			b.WriteByte('\n')
		case r == '\n' || !hidden(r):
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// Line returns s cleaned and on one line.
func Line(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// harmless reports whether s consists of printable ASCII and line ends.
func harmless(s string) bool {
	for i := range len(s) {
		if c := s[i]; c != '\n' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// sequence returns the number of bytes of s that belong to the escape sequence
// introduced by r. A sequence ends at the end of the line, so that the following
// lines are still shown.
func sequence(r rune, s string) int {
	line, _, _ := strings.Cut(s[:min(len(s), escape.MaxText)], "\n")
	if r != 0x1b {
		n, _ := escape.Len(byte(r-0x40), []byte(line))
		return n
	}
	if line == "" || line[0] < 0x20 || line[0] > 0x7e {
		return 0
	}
	n, _ := escape.Len(line[0], []byte(line[1:]))
	return 1 + n
}

// hidden reports whether r is a control character or one that reorders or
// hides text.
func hidden(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f:
		return true
	case r == 0xad, r == 0x61c, r == 0x180e, r == 0xfeff:
		return true
	case r >= 0x200b && r <= 0x200f && r != 0x200d: // zero-width joiners are part of emoji
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}
