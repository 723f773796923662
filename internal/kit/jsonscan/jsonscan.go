// Package jsonscan reads JSON without reflection or allocation of a tree. It
// accepts the simple subset that model services stream and that tool schemas
// use. On any other input, and on invalid JSON, the scan fails and the caller
// uses encoding/json instead.
package jsonscan

import (
	"encoding/json"
	"unicode/utf8"
)

// Scanner is a position in a JSON text. Its methods read the next value or
// token; after the first failure they do nothing.
//
//	for s.Enter('{'); s.More('}'); {
//		switch string(s.Key()) {
//		case "text":
//			text = s.Text()
//		default:
//			s.Skip()
//		}
//	}
//	if s.Done() { … }
type Scanner struct {
	data  []byte
	off   int
	depth int
	first bool // at the start of an object or array
	fail  bool
}

// New returns a scanner at the beginning of data.
func New(data []byte) Scanner { return Scanner{data: data} }

// Done reports whether all of the input was read without failure.
func (s *Scanner) Done() bool {
	s.space()
	return !s.fail && s.off == len(s.data)
}

// Fail makes the scan fail.
func (s *Scanner) Fail() { s.fail = true }

func (s *Scanner) space() {
	for s.off < len(s.data) && (s.data[s.off] == ' ' || s.data[s.off] == '\n' || s.data[s.off] == '\t' || s.data[s.off] == '\r') {
		s.off++
	}
}

// eat consumes b if it is the next character.
func (s *Scanner) eat(b byte) bool {
	s.space()
	if s.off < len(s.data) && s.data[s.off] == b {
		s.off++
		return true
	}
	return false
}

// maxDepth is the maximum nesting of objects and arrays.
const maxDepth = 32

// Enter reads the opening bracket of an object or array.
func (s *Scanner) Enter(open byte) {
	s.depth++
	if !s.eat(open) || s.depth > maxDepth {
		s.fail = true
	}
	s.first = true
}

// More reports whether another member follows. Otherwise it reads the closing
// bracket.
func (s *Scanner) More(end byte) bool {
	if s.fail {
		return false
	}
	if s.eat(end) {
		s.first = false
		s.depth--
		return false
	}
	if !s.first && !s.eat(',') {
		s.fail = true
	}
	s.first = false
	return !s.fail
}

// Key reads a member name that is matched with a struct field. It fails on
// names with upper-case or non-ASCII letters, which encoding/json matches
// regardless of case.
func (s *Scanner) Key() []byte {
	raw := s.Name()
	for _, b := range raw {
		if b >= 'A' && b <= 'Z' || b >= utf8.RuneSelf {
			s.fail = true
		}
	}
	return raw
}

// Name reads any member name.
func (s *Scanner) Name() []byte {
	raw, plain := s.quoted()
	if !plain || !s.eat(':') {
		s.fail = true
	}
	return raw
}

// Next returns the first character of the next token, or 0 at the end.
func (s *Scanner) Next() byte {
	s.space()
	if s.fail || s.off == len(s.data) {
		return 0
	}
	return s.data[s.off]
}

// quoted reads a string and returns the bytes between its quotes. plain reports
// whether they are the text without any decoding.
func (s *Scanner) quoted() (raw []byte, plain bool) {
	if s.fail || !s.eat('"') {
		s.fail = true
		return nil, false
	}
	plain = true
	for i := s.off; i < len(s.data); i++ {
		switch b := s.data[i]; {
		case b == '"':
			raw = s.data[s.off:i]
			s.off = i + 1
			return raw, plain
		case b == '\\':
			plain = false
			i++
		case b < ' ':
			s.fail = true
			return nil, false
		case b >= utf8.RuneSelf && plain:
			r, n := utf8.DecodeRune(s.data[i:])
			plain = r != utf8.RuneError || n > 1
			i += n - 1
		}
	}
	s.fail = true
	return nil, false
}

// Text reads a string.
func (s *Scanner) Text() string {
	s.space()
	from := s.off
	raw, plain := s.quoted()
	if plain || s.fail {
		return string(raw)
	}
	var text string
	if json.Unmarshal(s.data[from:s.off], &text) != nil {
		s.fail = true
	}
	return text
}

// Null reads null, if it is next.
func (s *Scanner) Null() bool { return s.word("null") }

func (s *Scanner) word(w string) bool {
	s.space()
	if len(s.data)-s.off < len(w) || string(s.data[s.off:s.off+len(w)]) != w {
		return false
	}
	s.off += len(w)
	return true
}

// Int reads a number of at most nine digits, without sign, fraction or
// exponent.
func (s *Scanner) Int() int {
	s.space()
	from, n := s.off, 0
	for s.off < len(s.data) && s.data[s.off] >= '0' && s.data[s.off] <= '9' {
		n = n*10 + int(s.data[s.off]-'0')
		s.off++
	}
	if digits := s.off - from; digits == 0 || digits > 9 || digits > 1 && s.data[from] == '0' {
		s.fail = true
	}
	return n
}

// Skip reads any value.
func (s *Scanner) Skip() {
	s.space()
	if s.fail || s.off == len(s.data) {
		s.fail = true
		return
	}
	switch b := s.data[s.off]; {
	case b == '"':
		s.skipText()
	case b == '{':
		for s.Enter('{'); s.More('}'); {
			s.Key()
			s.Skip()
		}
	case b == '[':
		for s.Enter('['); s.More(']'); {
			s.Skip()
		}
	case !s.word("null") && !s.word("true") && !s.word("false"):
		s.number()
	}
}

func (s *Scanner) skipText() {
	from := s.off
	if _, plain := s.quoted(); !plain && !s.fail {
		s.fail = !json.Valid(s.data[from:s.off])
	}
}

func (s *Scanner) number() {
	from := s.off
	for s.off < len(s.data) {
		b := s.data[s.off]
		if !(b >= '0' && b <= '9' || b == '-' || b == '+' || b == '.' || b == 'e' || b == 'E') {
			break
		}
		s.off++
	}
	if s.off == from || !json.Valid(s.data[from:s.off]) {
		s.fail = true
	}
}
