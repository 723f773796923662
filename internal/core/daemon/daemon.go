// Package daemon has the operating system run a program: a systemd unit of the user on
// Linux, a launchd agent on macOS, a scheduled task on Windows. The program starts when the
// person logs in, and again when it has ended by itself.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Spec is a program that is to be run.
type Spec struct {
	Name    string   // of the service: letters, digits and hyphens
	Title   string   // for people
	Program string   // absolute path
	Args    []string // without the program
	Path    string   // the variable PATH; empty: that of the service manager
	Logs    string   // folder of the files for its output, where the service manager keeps none
}

// State is the state of a service.
type State struct {
	Manager   string `json:"manager"` // systemd, launchd, or Task Scheduler
	File      string `json:"file,omitempty"`
	Installed bool   `json:"installed"`
	Running   bool   `json:"running"`
	PID       int    `json:"pid,omitempty"`
	Detail    string `json:"detail,omitempty"` // the manager's own word for its state
	// Command is the program that it runs, and its arguments, as its file says; nil: that is
	// not known.
	Command []string `json:"command,omitempty"`
	Path    string   `json:"-"` // its variable PATH
}

// Manager is the service manager of a user. Its methods wait until the service manager has
// done what they ask for, but not until the program is ready.
type Manager interface {
	// Install registers the service, or replaces it, and starts it.
	Install(context.Context, Spec) error
	// Uninstall stops the service and removes it. It succeeds if there is none.
	Uninstall(ctx context.Context, name string) error
	Start(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	Restart(ctx context.Context, name string) error
	State(ctx context.Context, name string) (State, error)
	// Stays reports whether services run while the person is not logged in, and how to
	// have that; empty: there is no way.
	Stays(ctx context.Context) (ok bool, how string)
}

// ErrNone says that there is no service manager for the user, as in most containers.
var ErrNone = errors.New("there is no service manager here")

// Env is what a [Manager] uses of the machine. All but Run may be zero, for the machine's own.
type Env struct {
	OS     string
	Home   string
	UID    int
	Getenv func(string) string
	Run    Runner
}

// Runner runs a program to its end and returns what it wrote. The error is one of fs if there
// is no such program: [fs.ErrNotExist].
type Runner func(ctx context.Context, name string, args ...string) (output string, err error)

// timeout is the time limit of a program of the service manager. Stopping a service waits
// until it has ended.
const timeout = 90 * time.Second

// Open returns the service manager of a machine.
func Open(e Env) (Manager, error) {
	if e.OS == "" {
		e.OS = runtime.GOOS
	}
	if e.Home == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		e.Home, e.UID = home, os.Getuid()
	}
	if e.Getenv == nil {
		e.Getenv = os.Getenv
	}
	switch e.OS {
	case "linux":
		return systemd{e}, nil
	case "darwin":
		return launchd{e}, nil
	case "windows":
		return tasks{e}, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrNone, e.OS)
}

// tell runs a program of the service manager. The error says what it wrote.
func (e Env) tell(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := e.Run(ctx, name, args...)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no program %s", ErrNone, name)
	}
	if out = strings.Join(strings.Fields(out), " "); out == "" {
		out = err.Error()
	}
	return fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), out)
}

// write writes the file of a service, which only its owner may change.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(text), 0o644)
}

// read returns the content of a file; empty: there is none.
func read(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// remove removes a file, which need not exist.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
