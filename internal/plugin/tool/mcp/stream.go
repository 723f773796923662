package mcp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxInput = 32 << 20 // bytes that a program has not read
	maxTail  = 4 << 10  // bytes kept of what a program printed
	maxLine  = 300      // bytes of a line in an error
)

var errInput = errors.New("it does not read its input")

// input is the standard input of a program. A Write does not wait for the program.
type input struct {
	mu     sync.Mutex
	more   sync.Cond
	b      []byte
	closed bool
}

func newInput() *input {
	in := &input{}
	in.more.L = &in.mu
	return in
}

// Write implements io.Writer.
func (in *input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return 0, io.ErrClosedPipe
	case len(in.b)+len(p) > maxInput:
		return 0, errInput
	}
	in.b = append(in.b, p...)
	in.more.Signal()
	return len(p), nil
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.b) == 0 && !in.closed {
		in.more.Wait()
	}
	if len(in.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, in.b)
	if in.b = in.b[n:]; len(in.b) == 0 {
		in.b = nil
	}
	return n, nil
}

// Close ends the input.
func (in *input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.more.Broadcast()
	return nil
}

// output is the standard output of a program. It passes on the lines that can be
// messages, which are JSON objects. Many servers print other lines too, such as a
// banner: these go to other.
type output struct {
	messages io.Writer
	other    io.Writer

	line byte // what the current line is: 0, message or text
}

const (
	message = 'm'
	text    = 't'
)

// Write implements io.Writer. It is not safe for concurrent use.
func (o *output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if o.line == 0 {
			if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
				break
			}
			if o.line = text; rest[0] == '{' {
				o.line = message
			}
		}
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		rest = rest[len(line):]
		to := o.other
		if o.line == message {
			to = o.messages
		}
		if _, err := to.Write(line); err != nil {
			return 0, err
		}
		if line[len(line)-1] == '\n' {
			o.line = 0
		}
	}
	return len(p), nil
}

// tail keeps the end of a text. It is safe for concurrent use.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-maxTail):]...)
	if len(t.b) > 2*maxTail {
		t.b = append(t.b[:0], t.b[len(t.b)-maxTail:]...)
	}
	return len(p), nil
}

// lastLine returns the last line that is not empty.
func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(string(t.b))
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// clean returns a text from a server as one line without control characters.
func clean(s string, n int) string {
	return humanize.TruncateBytes(humanize.OneLine(strings.ToValidUTF8(s, "?")), n)
}

// printable returns a text from a server without characters that are invisible.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(s, "?"))
}
