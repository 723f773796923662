// Package sandbox is the contract for running a command: a resolved [Plan], a
// [Broker] that starts it, and the [Process] it becomes. Implementations are
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

// Plan is a command that is ready to start. Nothing in it is looked up or
// expanded later.
type Plan struct {
	Path  string    // absolute path of the program
	Argv  []string  // including argv[0]
	Dir   string    // absolute working directory
	Env   []string  // the whole environment
	Stdin io.Reader // nil: empty input

	// Stderr receives the standard error. If it is nil, standard error goes to the
	// same writer as standard output, in order.
	Stderr io.Writer
	// Terminal gives the program a terminal of that size instead of Stdin and
	// Stderr. The Process is then a Terminal.
	Terminal *Size

	// Grace is the time between TERM and KILL; 0: 2 s.
	Grace time.Duration
}

// Hash identifies what the plan would do: program, arguments, directory and
// environment, in hexadecimal.
func (p *Plan) Hash() string {
	h := sha256.New()
	for _, s := range [...]string{p.Path, strings.Join(p.Argv, "\x00"), p.Dir, strings.Join(p.Env, "\x00")} {
		_, _ = io.WriteString(h, s) // a hash never fails
		h.Write([]byte{0xff})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Broker starts plans in one kind of confinement.
//
// Start returns once the program runs. out receives stdout and stderr in the
// order they are written. Writes to out are serialized, and so are writes to
// Plan.Stderr. When ctx ends, the program and all its descendants get TERM
// and, after the grace period, KILL.
type Broker interface {
	// Name is "host", "native", "docker", …
	Name() string
	Start(ctx context.Context, p Plan, out io.Writer) (Process, error)
}

// Process is a running plan with all its descendants.
type Process interface {
	// Wait returns when the program has ended, its remaining descendants were
	// ended, and all output was written. It must be called at most once.
	Wait() (Exit, error)
	// Kill kills all processes immediately.
	Kill()
	// PID is the process id of the program.
	PID() int
}

// Size is the size of a terminal in characters.
type Size struct{ Rows, Cols int }

// Terminal is the Process of a program that runs in a terminal. Write sends
// input as if it were typed. It is safe for concurrent use.
type Terminal interface {
	Process
	io.Writer
	// SetWriteDeadline limits how long a write may block. The buffer of a terminal
	// holds a few thousand bytes; beyond that a write waits for the program.
	SetWriteDeadline(time.Time) error
}

// ErrNoTerminal is returned by brokers that do not support terminals.
var ErrNoTerminal = errors.New("terminals are not supported here")

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit code; -1 when a signal ended it
	Signal string // name of that signal
	Left   int    // descendants that were still running and were ended
}
