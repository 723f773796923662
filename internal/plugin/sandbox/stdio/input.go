package stdio

import (
	"errors"
	"io"
	"strings"
	"sync"
)

const (
	maxInput = 32 << 20 // bytes that a program has not read
	maxTail  = 4 << 10  // bytes kept of what a program printed
)

// ErrUnread says that a program does not read its input.
var ErrUnread = errors.New("it does not read its input")

// Input is the standard input of a program that gets messages. A Write does not wait for
// the program.
type Input struct {
	mu     sync.Mutex
	more   sync.Cond
	b      []byte
	closed bool
}

// NewInput returns an empty Input.
func NewInput() *Input {
	in := &Input{}
	in.more.L = &in.mu
	return in
}

// Write implements io.Writer.
func (in *Input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return 0, io.ErrClosedPipe
	case len(in.b)+len(p) > maxInput:
		return 0, ErrUnread
	}
	in.b = append(in.b, p...)
	in.more.Signal()
	return len(p), nil
}

// Read implements io.Reader.
func (in *Input) Read(p []byte) (int, error) {
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
func (in *Input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.more.Broadcast()
	return nil
}

// Tail keeps the end of what a program printed. It is safe for concurrent use.
type Tail struct {
	mu sync.Mutex
	b  []byte
}

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-maxTail):]...)
	if len(t.b) > 2*maxTail {
		t.b = append(t.b[:0], t.b[len(t.b)-maxTail:]...)
	}
	return len(p), nil
}

// LastLine returns the last line that is not empty.
func (t *Tail) LastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.TrimSpace(string(t.b))
	return s[strings.LastIndexByte(s, '\n')+1:]
}
