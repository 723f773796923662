package external

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxUnread = 64 << 20 // bytes that the program has not read
	maxPrint  = 300      // bytes of a line in the log
	maxLines  = 50       // lines in the log at once; then one for each second
)

var errUnread = errors.New("the program does not read its input")

// input is the standard input of the program. Writing does not wait for the program.
type input struct {
	mu     sync.Mutex
	more   sync.Cond
	lines  []*pending
	bytes  int
	closed bool
}

// pending is a line that the program has not read completely.
type pending struct {
	rest  []byte
	begun bool // a part of it was read
}

func newInput() *input {
	in := &input{}
	in.more.L = &in.mu
	return in
}

// put adds a line.
func (in *input) put(line []byte) (*pending, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return nil, io.ErrClosedPipe
	case in.bytes+len(line) > maxUnread:
		return nil, errUnread
	}
	p := &pending{rest: line}
	in.lines, in.bytes = append(in.lines, p), in.bytes+len(line)
	in.more.Signal()
	return p, nil
}

// withdraw removes a line, and reports whether the program has read nothing of it.
func (in *input) withdraw(p *pending) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if p.begun {
		return false
	}
	p.begun = true // it may be withdrawn twice
	for i, q := range in.lines {
		if q == p {
			in.bytes -= len(p.rest)
			in.lines = append(in.lines[:i], in.lines[i+1:]...)
			break
		}
	}
	return true
}

// Read implements io.Reader.
func (in *input) Read(b []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.lines) == 0 && !in.closed {
		in.more.Wait()
	}
	if len(in.lines) == 0 {
		return 0, io.EOF
	}
	p := in.lines[0]
	p.begun = true
	n := copy(b, p.rest)
	p.rest, in.bytes = p.rest[n:], in.bytes-n
	if len(p.rest) == 0 {
		in.lines[0] = nil
		in.lines = in.lines[1:]
	}
	return n, nil
}

// close ends the input after what was written to it.
func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.more.Broadcast()
}

// output is the standard output of the program. Lines that are JSON objects are frames;
// others, which libraries may print, go to the log.
type output struct {
	c *conn

	line []byte
	text bool // the current line goes to the log
}

// Write implements io.Writer. It is not safe for concurrent use.
func (o *output) Write(b []byte) (int, error) {
	if o.c.ctx.Err() != nil {
		return 0, io.ErrClosedPipe // the rest is discarded
	}
	for rest := b; len(rest) > 0; {
		if len(o.line) == 0 && !o.text {
			if rest = bytes.TrimLeft(rest, " \t\r\n"); len(rest) == 0 {
				break
			}
			o.text = rest[0] != '{'
		}
		part, after, whole := bytes.Cut(rest, []byte{'\n'})
		rest = after
		switch {
		case o.text:
			o.c.log.add(part, whole)
		case len(o.line)+len(part) > maxLine:
			err := fmt.Errorf("the program wrote a line of more than %d bytes", maxLine)
			o.c.cancel(err)
			return 0, err
		case !whole:
			o.line = append(o.line, part...)
		default:
			line := part
			if len(o.line) > 0 {
				line = append(o.line, part...)
			}
			o.c.handle(line)
		}
		if whole {
			o.line, o.text = nil, false
		}
	}
	return len(b), nil
}

// printed writes the lines that the program prints to the log.
type printed struct {
	log    *slog.Logger
	redact func(string) string

	mu     sync.Mutex
	line   []byte
	last   string // line that is not empty
	room   int    // lines that may be logged now
	at     time.Time
	unsaid int // lines that were not logged
}

func newPrinted(log *slog.Logger, redact func(string) string) *printed {
	return &printed{log: log, redact: redact, room: maxLines, at: time.Now()}
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte{'\n'})
		p.add(part, whole)
		rest = after
	}
	return len(b), nil
}

// add adds a part of a line, or its last part. The end of a long line is left out.
func (p *printed) add(part []byte, whole bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const most = 4 << 10 // so that a secret is not cut before it is replaced
	if room := most - len(p.line); room > 0 {
		p.line = append(p.line, part[:min(len(part), room)]...)
	}
	if whole {
		p.sayLocked()
	}
}

// flush logs a last line without a line break.
func (p *printed) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sayLocked()
}

func (p *printed) sayLocked() {
	text := clean(p.redact(string(p.line)))
	p.line = p.line[:0]
	if text == "" {
		return
	}
	p.last = text
	if passed := int(time.Since(p.at) / time.Second); passed > 0 {
		p.room, p.at = min(maxLines, p.room+passed), time.Now()
	}
	if p.room == 0 {
		p.unsaid++
		return
	}
	p.room--
	if p.unsaid > 0 {
		p.log.Warn("the program printed too much", "left_out", humanize.Many(p.unsaid, "line"))
		p.unsaid = 0
	}
	p.log.Info("program", "line", text)
}

// lastLine returns the last line that is not empty.
func (p *printed) lastLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// clean returns a text of the program as one line without control characters.
func clean(s string) string {
	return humanize.TruncateBytes(humanize.OneLine(strings.ToValidUTF8(s, "?")), maxPrint)
}
