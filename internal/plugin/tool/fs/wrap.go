package fs

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf8"
)

// wrapAt is the number of bytes after which a line of an output is broken. It is shorter
// than maxLine, so that all of a long line can be read.
const wrapAt = maxLine - utf8.UTFMax

// wrappedLines returns the lines of an output whose beginning was read by readHead. Long
// lines are broken, because an output may have only one.
func wrappedLines(head []byte, rest io.Reader) *lines {
	var r io.Reader = bytes.NewReader(head)
	if rest != nil {
		r = io.MultiReader(r, rest)
	}
	return &lines{r: bufio.NewReaderSize(&wrapper{r: r}, 64<<10), max: maxLine}
}

// wrapper reads a text with additional line breaks.
type wrapper struct {
	r   io.Reader
	col int // bytes since the last line break
	buf []byte
}

// Read implements io.Reader.
func (w *wrapper) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	if n := len(p) / 2; len(w.buf) < n {
		w.buf = make([]byte, n)
	}
	n, err := w.r.Read(w.buf[:len(p)/2])
	out := 0
	for _, b := range w.buf[:n] {
		if w.col >= wrapAt && utf8.RuneStart(b) && b != '\n' {
			p[out] = '\n'
			out, w.col = out+1, 0
		}
		p[out] = b
		out, w.col = out+1, w.col+1
		if b == '\n' {
			w.col = 0
		}
	}
	return out, err
}
