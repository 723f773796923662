package ansi

import (
	"strings"
	"unicode/utf8"
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
		case r == '\r' || r == 0x2028 || r == 0x2029:
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
// introduced by r.
func sequence(r rune, s string) int {
	used := 0
	if r == 0x1b {
		if s == "" {
			return 0
		}
		switch s[0] {
		case '[':
			r, used = 0x9b, 1
		case ']', 'P', 'X', '^', '_':
			r, used = 0x9d, 1
		case '(', ')', '*', '+', '-', '.', '/', '#', '%', ' ':
			return min(2, len(s))
		default:
			if s[0] < 0x20 || s[0] > 0x7e {
				return 0
			}
			return 1
		}
	}
	if r == 0x9b {
		return used + control(s[used:])
	}
	return used + text(s[used:])
}

// control returns the length of the parameters and the final byte of a control
// sequence.
func control(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x7e: // truncated
			return i
		}
	}
	return len(s)
}

// text returns the length of a command string with its terminator. A string
// without a terminator ends at the end of the line, so that the following lines
// are still shown.
func text(s string) int {
	for i := range len(s) {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == '\n':
			return i
		case s[i] == 0x1b:
			if strings.HasPrefix(s[i+1:], `\`) {
				return i + 2
			}
			return i
		case strings.HasPrefix(s[i:], "\u009c"):
			return i + len("\u009c")
		}
	}
	return len(s)
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
