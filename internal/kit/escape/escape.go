// Package escape finds the ends of terminal escape sequences.
package escape

import "bytes"

// Limits in bytes. Longer sequences are invalid.
const (
	MaxControl = 256  // of a control sequence
	MaxText    = 4096 // of a command string
)

// Len returns the number of bytes of b that belong to the escape sequence whose
// introducer, such as ESC [, is before b. kind is the character after ESC. complete
// reports whether the sequence ends in b. An invalid sequence ends before its first
// invalid byte.
func Len(kind byte, b []byte) (n int, complete bool) {
	switch {
	case kind == '[':
		return end(b, 0x40)
	case kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_':
		return text(b)
	case kind >= 0x20 && kind <= 0x2f:
		return end(b, 0x30)
	}
	return 0, true
}

// end returns the end of a sequence whose final byte is at least first.
func end(b []byte, first byte) (int, bool) {
	for i, c := range b {
		switch {
		case c >= first && c <= 0x7e:
			return i + 1, true
		case c < 0x20 || c >= 0x7f || i == MaxControl:
			return i, true
		}
	}
	return len(b), false
}

// text returns the end of a command string, which BEL or ST terminates.
func text(b []byte) (int, bool) {
	for i, c := range b {
		switch {
		case c == 7:
			return i + 1, true
		case bytes.HasPrefix(b[i:], []byte("\x1b\\")) || bytes.HasPrefix(b[i:], []byte("\u009c")):
			return i + 2, true
		case i == MaxText || c == 0x1b && i+1 < len(b):
			return i, true
		}
	}
	return len(b), false
}
