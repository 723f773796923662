package exec

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	esc      = 0x1b
	maxOrder = 256  // bytes of an order to a terminal; what is longer is none
	maxCol   = 4096 // columns of a line
	maxMove  = 240  // columns that an order moves to
)

// plain returns what a terminal would show of b as lines of text: orders are
// carried out as far as they change the line that is written, and dropped
// otherwise. What reads otherwise than it stands is spelt out.
func plain(b []byte) string {
	if !bytes.ContainsFunc(b, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == utf8.RuneError || r >= 0x7f && r < 0xa0 || disguise(r)
	}) {
		return string(b)
	}
	var s screen
	for len(b) > 0 {
		if b[0] == esc {
			n, whole := order(b)
			if !whole {
				break
			}
			s.obey(b[:n])
			b = b[n:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		if disguise(r) {
			for _, c := range fmt.Sprintf("\\u{%x}", r) {
				s.put(c)
			}
			continue
		}
		s.put(r)
	}
	s.text.WriteString(string(s.line))
	return s.text.String()
}

// disguise reports whether a character reorders the text around it, or is text
// that no person sees.
func disguise(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe0fff
}

// screen is one line of a terminal, and the text above it.
type screen struct {
	text strings.Builder
	line []rune
	col  int
}

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.feed()
	case r == '\r':
		s.col = 0
	case r == '\b':
		s.col = max(0, s.col-1)
	case r != '\t' && r < ' ', r >= 0x7f && r < 0xa0:
	default:
		if s.col >= maxCol {
			s.feed()
		}
		s.reach(s.col)
		if s.col == len(s.line) {
			s.line = append(s.line, r)
		} else {
			s.line[s.col] = r
		}
		s.col++
	}
}

// reach makes the line reach to a column.
func (s *screen) reach(col int) {
	for len(s.line) < col {
		s.line = append(s.line, ' ')
	}
}

// feed begins a new line.
func (s *screen) feed() {
	s.text.WriteString(string(s.line))
	s.text.WriteByte('\n')
	s.line, s.col = s.line[:0], 0
}

// leave begins a new line unless this one is empty.
func (s *screen) leave() {
	if len(s.line) > 0 {
		s.feed()
	}
	s.col = 0
}

// obey carries out an order.
func (s *screen) obey(b []byte) {
	if len(b) < 2 || b[1] == '[' && len(b) < 3 {
		return // it was broken off
	}
	if b[1] != '[' {
		if b[1] == 'E' || b[1] == 'D' || b[1] == 'c' {
			s.leave()
		}
		return
	}
	n, given := number(b[2 : len(b)-1])
	switch b[len(b)-1] {
	case 'C':
		s.col = max(s.col, min(s.col+max(n, 1), maxMove))
	case 'D':
		s.col = max(0, s.col-max(n, 1))
	case 'G', '`':
		s.col = min(max(n, 1)-1, maxMove)
	case 'K':
		s.erase(n)
	case 'P':
		if s.col < len(s.line) {
			s.line = slices.Delete(s.line, s.col, min(len(s.line), s.col+max(n, 1)))
		}
	case 'J':
		if given && n > 0 {
			s.leave()
		} else {
			s.erase(0)
		}
	case 'A', 'B', 'E', 'F', 'H', 'f', 'd':
		s.leave()
	}
}

// erase erases to the end of the line (0), to its beginning (1) or all (2).
func (s *screen) erase(what int) {
	switch what {
	case 0:
		s.line = s.line[:min(len(s.line), s.col)]
	case 1:
		for i := range s.line[:min(len(s.line), s.col+1)] {
			s.line[i] = ' '
		}
	case 2:
		s.line = s.line[:0]
	}
}

// number returns the first number of an order.
func number(b []byte) (n int, given bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n, given = min(10*n+int(c-'0'), maxCol), true
	}
	return n, given
}

// order returns how long the order is that b begins with, and whether it is
// whole. What is no order ends where that shows.
func order(b []byte) (n int, whole bool) {
	if len(b) < 2 {
		return len(b), false
	}
	switch c := b[1]; {
	case c == '[':
		return upTo(b, 2, func(c byte) bool { return c >= 0x40 && c <= 0x7e })
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_': // text up to BEL or ST
		for i := 2; i < len(b); i++ {
			switch {
			case i == 16*maxOrder:
				return i, true
			case b[i] == 7:
				return i + 1, true
			case b[i] == esc && i+1 < len(b):
				if b[i+1] == '\\' {
					return i + 2, true
				}
				return i, true
			}
		}
		return len(b), false
	case c >= 0x20 && c <= 0x2f:
		return upTo(b, 2, func(c byte) bool { return c >= 0x30 && c <= 0x7e })
	case c < 0x20 || c >= 0x7f:
		return 1, true
	}
	return 2, true
}

// upTo returns the end of an order whose last byte is as f says.
func upTo(b []byte, i int, f func(byte) bool) (int, bool) {
	for ; i < len(b); i++ {
		switch {
		case f(b[i]):
			return i + 1, true
		case b[i] < 0x20 || b[i] >= 0x7f || i == maxOrder:
			return i, true
		}
	}
	return i, false
}

// unfinished returns how many bytes at the end of b begin a character or an
// order that is not whole.
func unfinished(b []byte) int {
	if i := bytes.LastIndexByte(b, esc); i >= 0 && len(b)-i < maxOrder {
		if _, whole := order(b[i:]); !whole {
			return len(b) - i
		}
	}
	return partial(b)
}

// modes are what a program has asked of its terminal that changes what keys
// send.
type modes struct {
	arrows bool // cursor keys in application mode
	paste  bool // pasted text in brackets
	rest   []byte
}

// look finds the orders in what the program writes, and returns how often it
// asks where the cursor is. There are programs that wait for an answer.
func (m *modes) look(p []byte) (asked int) {
	if len(m.rest) == 0 && bytes.IndexByte(p, esc) < 0 {
		return 0
	}
	p = p[max(0, len(p)-64<<10):]
	b := append(m.rest, p...)
	const where = "\x1b[6n"
	asked = bytes.Count(b, []byte(where)) - bytes.Count(m.rest, []byte(where))
	for _, x := range [...]struct {
		order string
		flag  *bool
	}{{"\x1b[?1", &m.arrows}, {"\x1b[?2004", &m.paste}} {
		on, off := bytes.LastIndex(b, []byte(x.order+"h")), bytes.LastIndex(b, []byte(x.order+"l"))
		if on != off {
			*x.flag = on > off
		}
	}
	m.rest = append([]byte(nil), b[max(0, len(b)-8):]...)
	return asked
}
