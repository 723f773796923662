package json5

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error says where a source is no JSON5, and why.
type Error struct {
	Offset int    // in bytes
	Line   int    // from 1
	Column int    // from 1, in characters
	Reason string // what is wrong
	Text   string // the line it stands in, at most 120 characters around it
	Caret  int    // position of the error in Text, in characters
}

// Error returns "line L, column C: reason".
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Excerpt returns the line of the error and a second one with a caret below
// the place.
func (e *Error) Excerpt() string {
	return e.Text + "\n" + strings.Repeat(" ", e.Caret) + "^"
}

// errorAt returns the error at an offset of src.
func errorAt(src []byte, off int, format string, args ...any) *Error {
	off = min(max(off, 0), len(src))
	start := bytes.LastIndexByte(src[:off], '\n') + 1
	end := len(src)
	if i := bytes.IndexByte(src[off:], '\n'); i >= 0 {
		end = off + i
	}
	e := &Error{
		Offset: off,
		Line:   bytes.Count(src[:start], []byte("\n")) + 1,
		Column: utf8.RuneCount(src[start:off]) + 1,
		Reason: fmt.Sprintf(format, args...),
	}
	before := []rune(string(src[start:off]))
	after := []rune(strings.TrimRight(string(src[off:end]), "\r"))
	before = before[max(0, len(before)-80):]
	after = after[:min(len(after), 120-len(before))]
	e.Text = printable(before) + printable(after)
	e.Caret = len(before)
	return e
}

// printable replaces what would move the cursor, one character for one.
func printable(rs []rune) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfeff || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, string(rs))
}
