package fs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// line is the beginning of a line of a file, without its end.
type line struct {
	text    string
	cut     bool // there is more
	endless bool // its end was not found within maxSkip
}

// lines reads a file line by line and holds no more than the beginning of one.
type lines struct {
	r   *bufio.Reader
	max int // bytes that are kept
	n   int // lines that were read
}

// beginning reads the first bytes of a file of a size, by which its kind is
// told, and returns what is left to read; nil: it ends there.
func beginning(f io.Reader, size int64) (head []byte, rest io.Reader, err error) {
	head = make([]byte, min(headSize, size+1))
	n, err := io.ReadFull(f, head)
	switch {
	case err == nil:
		return head, f, nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return head[:n], nil, nil
	}
	return nil, nil, err
}

// newLines reads the lines of a file of which beginning was read.
func newLines(head []byte, rest io.Reader) *lines {
	if rest == nil {
		return &lines{r: bufio.NewReaderSize(bytes.NewReader(head), len(head)), max: maxLine}
	}
	return &lines{r: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), rest), 64<<10), max: maxLine}
}

// next returns the next line, or io.EOF.
func (l *lines) next(ctx context.Context) (line, error) { return l.read(ctx, l.max, maxSkip) }

// skip passes over a line, however long it is.
func (l *lines) skip(ctx context.Context) error {
	_, err := l.read(ctx, 0, math.MaxInt)
	return err
}

// read reads a line of which it keeps no more than most bytes, and whose end it
// looks for within far bytes.
func (l *lines) read(ctx context.Context, most, far int) (line, error) {
	var ln line
	var text []byte
	passed := 0
	if l.n++; l.n%1024 == 0 && ctx.Err() != nil {
		return line{}, ctx.Err()
	}
	for {
		part, err := l.r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && passed == 0 && len(part) == 0 {
			return line{}, io.EOF
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return line{}, err
		}
		passed += len(part)
		if err == nil {
			part = part[:len(part)-1]
		}
		keep := part[:min(len(part), most-len(text))]
		text = append(text, keep...)
		ln.cut = ln.cut || len(keep) < len(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		if ctx.Err() != nil {
			return line{}, ctx.Err()
		}
		if passed > far {
			ln.cut, ln.endless = true, true
			break
		}
	}
	if ln.cut {
		text = whole(text)
	}
	ln.text = string(text)
	return ln, nil
}

// whole returns b without a rune that was cut at its end.
func whole(b []byte) []byte {
	for i := 1; i <= min(3, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// printable replaces what would not survive on the way to a model: bytes that
// are no UTF-8 and control characters other than tab.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r // the picture of the character
		case r == utf8.RuneError || r == 0x7f || unicode.Is(unicode.Cc, r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// binary reports whether the beginning of a file is no text. A run of NUL at
// the end of it does not count: it is a hole.
func binary(head []byte) bool {
	for len(head) > 0 && head[len(head)-1] == 0 {
		head = head[:len(head)-1]
	}
	if len(head) == 0 {
		return true
	}
	odd := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		bad := r == utf8.RuneError && n == 1 && utf8.FullRune(head[i:])
		if bad || r < 0x20 && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != 0x1b && r != '\b' {
			odd++
		}
		i += n
	}
	return odd*10 > len(head)
}
