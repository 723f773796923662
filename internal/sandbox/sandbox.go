// Package sandbox is the contract of running a command: a resolved [Plan], a
// [Broker] that starts it, the [Process] that it became. Implementations are
// the only packages that import os/exec.
package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"
)

// Plan is a command that is ready to start: nothing in it is looked up or
// expanded later.
type Plan struct {
	Path  string    // absolute path of the program
	Argv  []string  // with argv[0]
	Dir   string    // absolute working directory
	Env   []string  // the whole environment
	Stdin io.Reader // nil: there is nothing to read

	// Stderr gets the standard error; nil: it goes where the output goes, in
	// order.
	Stderr io.Writer
	// Terminal gives the program a terminal of that size in place of Stdin and
	// Stderr; the Process is then a Terminal.
	Terminal *Size

	// Grace is how long the processes have between TERM and KILL; 0: 2 s.
	Grace time.Duration
}

// Hash identifies what the plan would do: program, arguments, directory and
// environment, in hexadecimal.
func (p *Plan) Hash() string {
	h := sha256.New()
	for _, s := range [...]string{p.Path, strings.Join(p.Argv, "\x00"), p.Dir, strings.Join(p.Env, "\x00")} {
		_, _ = io.WriteString(h, s) // a hash takes everything
		h.Write([]byte{0xff})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Broker starts plans in one kind of confinement.
//
// Start returns when the program runs. out gets stdout and stderr in the order
// they come; writes to it are serialised, and so are those to Plan.Stderr. When ctx ends, every process that
// the program left behind is told to end and then killed.
type Broker interface {
	// Name is "host", "native", "docker", …
	Name() string
	Start(ctx context.Context, p Plan, out io.Writer) (Process, error)
}

// Process is a running plan with all its descendants.
type Process interface {
	// Wait returns when the program has ended, every descendant that it left
	// is gone, and all output was written. It may be called once.
	Wait() (Exit, error)
	// Kill ends all processes at once.
	Kill()
	// PID is the process id of the program.
	PID() int
}

// Size is how large a terminal is, in characters.
type Size struct{ Rows, Cols int }

// Terminal is the Process of a program that has a terminal. What is written is
// typed; it may be written from any goroutine.
type Terminal interface {
	Process
	io.Writer
	// SetWriteDeadline bounds writes: a program that reads nothing takes some
	// thousand bytes and no more.
	SetWriteDeadline(time.Time) error
}

// ErrNoTerminal says that a broker has no terminals.
var ErrNoTerminal = errors.New("there are no terminals here")

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit code; -1 when a signal ended it
	Signal string // name of that signal
	Left   int    // descendants that were still running and were ended
}
