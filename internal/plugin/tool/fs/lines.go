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

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// line is the beginning of a line of a file, without the line break.
type line struct {
	text    string
	cut     bool // the text is not the whole line
	endless bool // the line break was not found within maxSkip
}

// lines reads a file line by line. It holds only the beginning of a line in
// memory.
type lines struct {
	r   *bufio.Reader
	max int // bytes retained of a line
	n   int // number of lines read
}

// readHead reads the first bytes of a file, from which its type is
// determined. It returns a reader for the rest, or nil if there is none.
func readHead(f io.Reader, size int64) (head []byte, rest io.Reader, err error) {
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

// newLines returns the lines of a file whose beginning was read by readHead.
func newLines(head []byte, rest io.Reader) *lines {
	if rest == nil {
		return &lines{r: bufio.NewReaderSize(bytes.NewReader(head), len(head)), max: maxLine}
	}
	return &lines{r: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), rest), 64<<10), max: maxLine}
}

// next returns the next line, or io.EOF.
func (l *lines) next(ctx context.Context) (line, error) { return l.read(ctx, l.max, maxSkip) }

// skip skips a line of any length.
func (l *lines) skip(ctx context.Context) error {
	_, err := l.read(ctx, 0, math.MaxInt)
	return err
}

// read reads a line. It retains at most maxText bytes, and searches at most
// maxScan bytes for the line break.
func (l *lines) read(ctx context.Context, maxText, maxScan int) (line, error) {
	var ln line
	var text []byte
	scanned := 0
	if l.n++; l.n%1024 == 0 && ctx.Err() != nil {
		return line{}, ctx.Err()
	}
	for {
		part, err := l.r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && scanned == 0 && len(part) == 0 {
			return line{}, io.EOF
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return line{}, err
		}
		scanned += len(part)
		if err == nil {
			part = part[:len(part)-1]
		}
		head := part[:min(len(part), maxText-len(text))]
		text = append(text, head...)
		ln.cut = ln.cut || len(head) < len(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		if ctx.Err() != nil {
			return line{}, ctx.Err()
		}
		if scanned > maxScan {
			ln.cut, ln.endless = true, true
			break
		}
	}
	if ln.cut {
		text = humanize.TrimPartial(text)
	}
	ln.text = string(text)
	return ln, nil
}

// printable replaces characters that a model or a store may not accept:
// invalid UTF-8 and control characters other than tab.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r // the symbol for the control character
		case r == utf8.RuneError || r == 0x7f || unicode.Is(unicode.Cc, r):
			return utf8.RuneError
		}
		return r
	}, s)
}
