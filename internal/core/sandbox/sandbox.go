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
	"slices"
	"strconv"
	"strings"
	"time"
)

// Plan is a command that is ready to start. Nothing in it is looked up or
// expanded later.
type Plan struct {
	Path string   // absolute path of the program
	Argv []string // including argv[0]
	Dir  string   // absolute working directory
	Env  []string // the whole environment
	// Stdin is the input; nil: empty input. A broker may still read from it when the
	// program has ended, until it gets an error. The error of a read ends the input.
	Stdin io.Reader

	// Stderr receives the standard error. If it is nil, standard error goes to the
	// same writer as standard output, in order.
	Stderr io.Writer
	// Terminal gives the program a terminal of that size instead of Stdin and
	// Stderr. The Process is then a Terminal.
	Terminal *Size

	// Grace is the time between TERM and KILL; 0: 2 s.
	Grace time.Duration

	// Rights confine the program to what they name. nil: the program has all
	// rights of this process. A broker that cannot confine refuses a plan with
	// Rights, and one that always confines refuses a plan without.
	Rights *Rights
	// Peers names programs that can reach each other's servers: a program reaches those of the
	// published ones with the same Peers and the same Rights; see [Publisher]. "": it reaches none.
	Peers string
	// Session is the sandbox to run in, for backends that keep containers. Path, Dir
	// and Env are then those of the container.
	Session *Session
}

// Rights is what a confined program may use besides the directories of the
// system, which it can read, and a private /tmp. All paths are absolute and
// without symbolic links.
type Rights struct {
	Workspace string   // folder of the agent; private files in it are hidden
	Write     bool     // the program may change the workspace, except for protected names
	Read      []string // other files and folders that it may read
	Change    []string // other files and folders that it may change
	Hide      []string // files and folders in the workspace, without links, that it does not see
	Own       string   // folder of the program, which it may change also in a folder that is never shown; empty: none
	Hosts     []string // hosts it may connect to: NAME, NAME:PORT or *.DOMAIN
}

// Hash identifies what the plan would do: program, arguments, directory,
// environment and rights, in hexadecimal.
func (p *Plan) Hash() string {
	h := sha256.New()
	parts := []string{p.Path, strings.Join(p.Argv, "\x00"), p.Dir, strings.Join(p.Env, "\x00")}
	if r := p.Rights; r != nil {
		parts = append(parts, "confined", r.Workspace, strconv.FormatBool(r.Write),
			strings.Join(r.Read, "\x00"), strings.Join(r.Change, "\x00"), strings.Join(r.Hosts, "\x00"))
		if len(r.Hide) > 0 {
			parts = append(parts, "hide", strings.Join(r.Hide, "\x00"))
		}
		if r.Own != "" {
			parts = append(parts, "own", r.Own)
		}
	}
	if s := p.Session; s != nil {
		parts = append(parts, "sandbox", s.Backend, s.Key, s.Container, string(s.Settings))
	}
	for _, s := range parts {
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

// A Publisher is a Process in a network of its own, with servers that others can reach.
type Publisher interface {
	Process
	// Publish lets the programs with the same [Plan].Peers and Rights, those that run and those
	// that start later, connect to the ports of the loopback interface on which the program
	// listens. It has no effect if Peers is empty.
	Publish()
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

	// Refused are the rights that the program lacked when it tried to use them,
	// such as "net:example.org", sorted.
	Refused []string
	// Misled means that the program asked for a page of a host that was refused, and
	// got one that says so. It may have taken it for the page and succeeded.
	Misled bool
	// Blocked are the paths in the workspace that the program made and that got
	// the suffix ".blocked", because other programs run what has such a name.
	Blocked []string
	// Later are the paths of scripts of the project, such as a Makefile, that were
	// changed meanwhile: somebody may run them later.
	Later []string
	// Committed are the paths in the workspace that other programs run and that came into a
	// repository of Git meanwhile, without being there: a checkout makes them later.
	Committed []string
	// Opened are the folders in the workspace that the program closed to their owner, and that
	// were opened again to look into them; "." is the workspace.
	Opened []string
	// Unchecked says why the sandbox may have missed something that the program made;
	// "": it has not.
	Unchecked string
}

// UnsearchedError is the error of a Broker that could not search a workspace for private
// files. With the right, which a person can give, the program reads these too.
type UnsearchedError struct {
	Reason string // what the workspace has, such as "it has more than 50000 folders"
	Right  string // "read:" and the workspace
}

func (e *UnsearchedError) Error() string {
	return "the sandbox cannot look for the private files of the workspace: " + e.Reason
}

// ReadsAll reports whether the program may read all of the workspace, with its private
// files.
func (r Rights) ReadsAll() bool { return r.Workspace != "" && slices.Contains(r.Read, r.Workspace) }

// Level is how well a broker confines programs on this host.
type Level struct {
	Name     string // "full", "landlock", "docker", … or "none"
	Complete bool   // a program has nothing but its Rights
	Reason   string // why the level is not higher; "" if it is the highest
	Hint     string // what a person can do about it
}

// A Leveler is a Broker that confines programs.
type Leveler interface {
	// Level returns the level, which was found by trying it out.
	Level(ctx context.Context) Level
}

// A Backend is a Broker that confines the programs of sessions.
type Backend interface {
	Broker
	Leveler
	// Prepare completes the sandbox of a session, and returns an error if its
	// settings are not allowed. It changes nothing outside.
	Prepare(*Session) error
	// Recreate removes what is kept for the sandboxes that match, so that the next
	// command starts anew.
	Recreate(ctx context.Context, match func(key string) bool) (Removal, error)
	// Try tries what programs in a sandbox can do.
	Try(context.Context, *Session) (Level, []Effect)
	// Close ends what is kept ready.
	Close()
}

// Removal is what Recreate did.
type Removal struct {
	Removed []string // names of what was removed
	Busy    []string // names of what was kept, because commands run in it
}

// Pruner is a Backend that removes what was not used for long.
type Pruner interface {
	Prune(ctx context.Context, now time.Time) (int, error)
}

// Checker is a Backend whose settings can be wrong in ways that depend on the
// host, such as the folders that a container would see.
type Checker interface {
	Check(*Session) error
}
