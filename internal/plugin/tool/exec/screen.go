package exec

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/escape"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	esc     = 0x1b
	maxCol  = 4096 // columns of a line
	maxMove = 240  // maximum column that the cursor is moved to
)

// plain returns what a terminal would show for b, as lines of text. Escape
// sequences that change the current line are applied, all others are dropped.
// Characters that make text look different from what it is are spelled out.
func plain(b []byte) string {
	if !bytes.ContainsFunc(b, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == utf8.RuneError || r >= 0x7f && r < 0xa0 || deceptive(r)
	}) {
		return string(b)
	}
	var s screen
	for len(b) > 0 {
		if b[0] == esc {
			n, complete := escapeLen(b)
			if !complete {
				break
			}
			s.apply(b[:n])
			b = b[n:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		if deceptive(r) {
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

// deceptive reports whether a character reorders the text around it, or is
// invisible text.
func deceptive(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe0fff
}

// screen is the current line of a terminal, and the text above it.
type screen struct {
	text strings.Builder
	line []rune
	col  int
}

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.newLine()
	case r == '\r':
		s.col = 0
	case r == '\b':
		s.col = max(0, s.col-1)
	case r != '\t' && r < ' ', r >= 0x7f && r < 0xa0:
	default:
		if s.col >= maxCol {
			s.newLine()
		}
		s.pad(s.col)
		if s.col == len(s.line) {
			s.line = append(s.line, r)
		} else {
			s.line[s.col] = r
		}
		s.col++
	}
}

// pad extends the line to a column with blanks.
func (s *screen) pad(col int) {
	for len(s.line) < col {
		s.line = append(s.line, ' ')
	}
}

// newLine begins a new line.
func (s *screen) newLine() {
	s.text.WriteString(string(s.line))
	s.text.WriteByte('\n')
	s.line, s.col = s.line[:0], 0
}

// endLine begins a new line unless the current one is empty.
func (s *screen) endLine() {
	if len(s.line) > 0 {
		s.newLine()
	}
	s.col = 0
}

// apply applies an escape sequence.
func (s *screen) apply(b []byte) {
	if len(b) < 2 || b[1] == '[' && len(b) < 3 {
		return // it is incomplete
	}
	if b[1] != '[' {
		if b[1] == 'E' || b[1] == 'D' || b[1] == 'c' {
			s.endLine()
		}
		return
	}
	n, given := firstNumber(b[2 : len(b)-1])
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
			s.endLine()
		} else {
			s.erase(0)
		}
	case 'A', 'B', 'E', 'F', 'H', 'f', 'd':
		s.endLine()
	}
}

// erase erases to the end of the line (0), to its beginning (1) or all of it
// (2).
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

// firstNumber returns the first parameter of an escape sequence.
func firstNumber(b []byte) (n int, given bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n, given = min(10*n+int(c-'0'), maxCol), true
	}
	return n, given
}

// escapeLen returns the length of the escape sequence at the beginning of b,
// and whether it is complete.
func escapeLen(b []byte) (n int, complete bool) {
	switch {
	case len(b) < 2:
		return len(b), false
	case b[1] < 0x20 || b[1] >= 0x7f:
		return 1, true
	}
	n, complete = escape.Len(b[1], b[2:])
	return 2 + n, complete
}

// unfinished returns the length of an incomplete character or escape sequence
// at the end of b.
func unfinished(b []byte) int {
	if i := bytes.LastIndexByte(b, esc); i >= 0 && len(b)-i < escape.MaxControl {
		if _, complete := escapeLen(b[i:]); !complete {
			return len(b) - i
		}
	}
	return len(b) - len(humanize.TrimPartial(b))
}

// modes are the terminal modes, set by the program, that affect what keys
// send.
type modes struct {
	arrows bool // cursor keys in application mode
	paste  bool // pasted text in brackets
	tail   []byte
}

// scan finds mode changes in the program's output, and returns how often the
// program queries the cursor position. Some programs wait for the answer.
func (m *modes) scan(p []byte) (queries int) {
	if len(m.tail) == 0 && bytes.IndexByte(p, esc) < 0 {
		return 0
	}
	p = p[max(0, len(p)-64<<10):]
	b := append(m.tail, p...)
	const query = "\x1b[6n"
	queries = bytes.Count(b, []byte(query)) - bytes.Count(m.tail, []byte(query))
	for _, x := range [...]struct {
		prefix string
		flag   *bool
	}{{"\x1b[?1", &m.arrows}, {"\x1b[?2004", &m.paste}} {
		on, off := bytes.LastIndex(b, []byte(x.prefix+"h")), bytes.LastIndex(b, []byte(x.prefix+"l"))
		if on != off {
			*x.flag = on > off
		}
	}
	m.tail = append([]byte(nil), b[max(0, len(b)-8):]...)
	return queries
}
