package json5

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of a source.
const (
	MaxSize  = 16 << 20 // bytes
	MaxDepth = 200      // nested arrays and objects
)

// scanner reads tokens of a source. Its methods panic with an *Error, which
// Parse recovers.
type scanner struct {
	src     []byte
	pos     int
	depth   int
	nonJSON *Node // see Document
}

func (s *scanner) fail(off int, format string, args ...any) {
	panic(errorAt(s.src, off, format, args...))
}

// rune returns the character at the current position and its size. The size is
// 0 at the end.
func (s *scanner) rune() (rune, int) {
	if s.pos >= len(s.src) {
		return 0, 0
	}
	if c := s.src[s.pos]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRune(s.src[s.pos:])
}

// peek returns the byte n bytes ahead, or 0 at the end.
func (s *scanner) peek(n int) byte {
	if s.pos+n < len(s.src) {
		return s.src[s.pos+n]
	}
	return 0
}

// blanks skips white space and comments.
func (s *scanner) blanks() {
	for s.pos < len(s.src) {
		r, n := s.rune()
		switch {
		case isBlank(r):
			s.pos += n
		case r == '/' && s.peek(1) == '/':
			s.pos += lineComment(s.src[s.pos:])
		case r == '/' && s.peek(1) == '*':
			n := blockComment(s.src[s.pos:])
			if n < 0 {
				s.fail(s.pos, "this comment is never closed")
			}
			s.pos += n
		default:
			return
		}
	}
}

func isBlank(r rune) bool {
	switch r {
	case ' ', '\t', '\n', '\r', '\v', '\f', 0xa0, 0xfeff, 0x2028, 0x2029:
		return true
	}
	return r > 0x7f && unicode.Is(unicode.Zs, r)
}

// newlines end a line comment, and may be escaped in a string.
const newlines = "\n\r\u2028\u2029"

// lineComment returns the length of the line comment that begins b, without the
// newline.
func lineComment(b []byte) int {
	if i := bytes.IndexAny(b, newlines); i >= 0 {
		return i
	}
	return len(b)
}

// blockComment returns the length of the block comment that begins b, or -1 if
// it is not closed.
func blockComment(b []byte) int {
	if i := bytes.Index(b[2:], []byte("*/")); i >= 0 {
		return i + 4
	}
	return -1
}

func isIdentStart(r rune) bool {
	return r == '$' || r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r)
}

func isIdentPart(r rune) bool {
	return isIdentStart(r) || r == 0x200c || r == 0x200d ||
		unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc)
}

// ident reads an identifier. It returns "" if there is none.
func (s *scanner) ident() string {
	var b strings.Builder
	for {
		start := s.pos
		r, n := s.rune()
		if r == '\\' {
			if s.peek(1) != 'u' {
				s.fail(start, "only \\u escapes are allowed in a key without quotes")
			}
			s.pos += 2
			r, n = s.hex(4), 0
		}
		if ok := isIdentStart(r) || b.Len() > 0 && isIdentPart(r); !ok {
			if start != s.pos {
				s.fail(start, "%q is not allowed in a key without quotes", r)
			}
			return b.String()
		}
		s.pos += n
		b.WriteRune(r)
	}
}

// hex reads n hexadecimal digits.
func (s *scanner) hex(n int) rune {
	start := s.pos
	s.pos = min(start+n, len(s.src))
	v, err := strconv.ParseUint(string(s.src[start:s.pos]), 16, 32)
	if err != nil || s.pos < start+n {
		s.fail(start, "want %d hexadecimal digits here", n)
	}
	return rune(v)
}

// quoted reads a string with its quotes.
func (s *scanner) quoted() string {
	start, quote := s.pos, rune(s.src[s.pos])
	s.pos++
	var b strings.Builder
	for {
		r, n := s.rune()
		switch {
		case n == 0:
			s.fail(start, "this string is never closed")
		case r == quote:
			s.pos++
			return b.String()
		case r == '\\':
			s.escape(&b)
		case r == '\n' || r == '\r':
			s.fail(start, "this string is not closed in its line")
		default:
			b.WriteRune(r)
			s.pos += n
		}
	}
}

// escapes are the single-letter escapes, each followed by its character.
const escapes = "b\bf\fn\nr\rt\tv\v"

// escape reads an escape sequence.
func (s *scanner) escape(b *strings.Builder) {
	start := s.pos
	s.pos++
	r, n := s.rune()
	s.pos += n
	switch {
	case n == 0:
		s.fail(start, "this string is never closed")
	case r == 'u':
		b.WriteRune(s.surrogate(s.hex(4)))
	case r == 'x':
		b.WriteRune(s.hex(2))
	case strings.ContainsRune(newlines, r):
		if r == '\r' && s.peek(0) == '\n' {
			s.pos++
		}
	case r == '0' && (s.peek(0) < '0' || s.peek(0) > '9'):
		b.WriteByte(0)
	case r >= '0' && r <= '9':
		s.fail(start, "unknown escape \\%c", r)
	default:
		if i := strings.IndexRune(escapes, r); i >= 0 && i%2 == 0 {
			r = rune(escapes[i+1])
		}
		b.WriteRune(r)
	}
}

// surrogate combines r with the following escape if they form a surrogate pair.
// An unpaired half becomes U+FFFD.
func (s *scanner) surrogate(r rune) rune {
	if !utf16.IsSurrogate(r) {
		return r
	}
	if back := s.pos; s.peek(0) == '\\' && s.peek(1) == 'u' {
		s.pos += 2
		if pair := utf16.DecodeRune(r, s.hex(4)); pair != utf8.RuneError {
			return pair
		}
		s.pos = back
	}
	return utf8.RuneError
}
