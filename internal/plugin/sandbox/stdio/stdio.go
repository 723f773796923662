// Package stdio connects the standard files of a program to this process. It is
// shared by the brokers that start programs.
package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Streams are the standard files of one program.
type Streams struct {
	// In is the program's terminal, or nil if it has none. Out and Err are its
	// ends of pipes, or the same terminal.
	In, Out, Err *os.File
	// Token is our end of a pipe whose other end only processes that inherited it
	// hold; TokenEnd is that end.
	Token, TokenEnd *os.File

	terminal bool
	flows    []flow
	theirs   []*os.File // the program's ends
	drained  chan error // receives the result of each flow
}

// flow is one output stream of the program.
type flow struct {
	from *os.File
	to   io.Writer
}

// Open creates the standard files for a plan. The standard input is created
// only if it is a terminal.
func Open(p sandbox.Plan, out io.Writer) (*Streams, error) {
	s := &Streams{}
	if p.Terminal != nil {
		ours, theirs, err := openTerminal(*p.Terminal)
		if err != nil {
			return nil, err
		}
		s.flows = []flow{{ours, out}}
		s.theirs = []*os.File{theirs}
		s.In, s.Out, s.Err, s.terminal = theirs, theirs, theirs, true
		if _, err := s.pipe(io.Discard); err != nil { // in a container another terminal may have the same name
			s.Started()
			s.Close()
			return nil, err
		}
		return s, nil
	}
	w, err := s.pipe(out)
	if err != nil {
		return nil, err
	}
	s.Out, s.Err = w, w
	if p.Stderr != nil {
		if s.Err, err = s.pipe(p.Stderr); err != nil {
			s.Started()
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// OpenTerminal returns the streams of a program that runs in a terminal whose
// other end is ours.
func OpenTerminal(ours *os.File, out io.Writer) (*Streams, error) {
	defer ours.Close()
	f, err := pollable(ours)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return &Streams{flows: []flow{{f, out}}, terminal: true}, nil
}

// pipe adds a flow and returns the program's end of it.
func (s *Streams) pipe(to io.Writer) (*os.File, error) {
	r, w, err := openPipe()
	if err != nil {
		return nil, fmt.Errorf("output pipe: %w", err)
	}
	s.flows = append(s.flows, flow{r, to})
	s.theirs, s.Token, s.TokenEnd = append(s.theirs, w), r, w
	return w, nil
}

// Started closes this process's copies of the program's files, after the
// program was started or failed to start.
func (s *Streams) Started() {
	for _, f := range s.theirs {
		_ = f.Close() // nothing was written through it
	}
}

// Copy begins to copy the output.
func (s *Streams) Copy() {
	s.drained = make(chan error, len(s.flows))
	for _, f := range s.flows {
		go func() { s.drained <- f.drain() }()
	}
}

// drain copies a flow until all holders of its other end have closed it.
func (f flow) drain() error {
	// The wrapper hides *os.File, for which io would allocate a large buffer.
	_, err := io.CopyBuffer(f.to, struct{ io.Reader }{f.from}, make([]byte, 4<<10))
	if hungUp(err) {
		err = nil
	}
	if err != nil { // the program must not block because the writer failed
		_, _ = io.Copy(io.Discard, f.from)
	}
	return err
}

// Drain waits until all output was copied, and closes the files. Flows that are
// still held open after the limit are cut off.
func (s *Streams) Drain(limit time.Duration) (err error) {
	t := time.AfterFunc(limit, s.cut)
	for range s.flows {
		if werr := <-s.drained; werr != nil {
			err = errors.Join(err, fmt.Errorf("output: %w", werr))
		}
	}
	t.Stop()
	s.Close()
	return err
}

// cut closes the flows that are still held open by a process that was not
// found. The others end by themselves once they have been read completely.
func (s *Streams) cut() {
	for _, f := range s.flows {
		if !Abandoned(f.from) {
			_ = f.from.Close() // there is no buffered data
		}
	}
}

// Close closes the flows. It may be called more than once.
func (s *Streams) Close() {
	for _, f := range s.flows {
		_ = f.from.Close() // there is no buffered data
	}
}

// Terminal returns the process as a sandbox.Terminal if it runs in one.
func (s *Streams) Terminal(p sandbox.Process) sandbox.Process {
	if !s.terminal {
		return p
	}
	return terminal{p, s.flows[0].from}
}

// terminal is a process that runs in a terminal.
type terminal struct {
	sandbox.Process
	keys *os.File
}

var _ sandbox.Terminal = terminal{}

func (t terminal) Write(b []byte) (int, error) {
	n, err := t.keys.Write(b)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("terminal: %w", err)
	}
	return n, err
}

// Publish publishes the process, if it can be.
func (t terminal) Publish() {
	if p, ok := t.Process.(sandbox.Publisher); ok {
		p.Publish()
	}
}

func (t terminal) SetWriteDeadline(at time.Time) error { return t.keys.SetWriteDeadline(at) }
