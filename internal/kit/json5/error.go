package json5

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Error is a syntax error with its position.
type Error struct {
	Line   int    // from 1
	Column int    // from 1, in characters
	Reason string // what is wrong
}

// Error returns "line L, column C: reason".
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// errorAt returns the error at an offset of src.
func errorAt(src []byte, off int, format string, args ...any) *Error {
	before := src[:min(off, len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Error{
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Column: utf8.RuneCount(before[start:]) + 1,
		Reason: fmt.Sprintf(format, args...),
	}
}
