// Package process finds the process that listens on a port and ends it if it is
// another chela of the same user. On systems other than Linux only process ids
// are known. It also tells when the system started, and keeps the descriptors of
// this process from others.
package process

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Process is a running process. The zero Process is unknown.
type Process struct {
	PID     int
	Command string // program name and arguments before the first flag; "": unknown
}

// Of returns the process with an id.
func Of(pid int) Process { return Process{pid, command(pid)} }

// String describes the process.
func (p Process) String() string {
	switch {
	case p.PID <= 0:
		return "another process"
	case p.Command == "":
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("process %d (%s)", p.PID, p.Command)
}

// withoutFlags returns a command line up to its first flag, because flags may
// contain secrets.
func withoutFlags(argv []string) string {
	var out []string
	for i, a := range argv {
		if i == 0 {
			a = filepath.Base(a)
		}
		if a == "" || strings.HasPrefix(a, "-") && i > 0 {
			break
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}

// How long to wait for a process to end after each signal.
const (
	farewell = 11 * time.Second
	demise   = 2 * time.Second
)
