// Package process looks at the programs that run on this machine: which one
// listens on a port, and whether that is another chela of this user, which may
// be ended. On systems other than Linux nothing is known of them but their
// number.
package process

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Process is a program that runs. The zero Process is one that is not known.
type Process struct {
	PID     int
	Command string // its name and what follows up to the first flag; "": not known
}

// Of returns the process with a number.
func Of(pid int) Process { return Process{pid, command(pid)} }

// String returns the process in words.
func (p Process) String() string {
	switch {
	case p.PID <= 0:
		return "another process"
	case p.Command == "":
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("process %d (%s)", p.PID, p.Command)
}

// words returns a command line up to its first flag: what follows may be
// secret.
func words(argv []string) string {
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

// How long a process may take to end that is asked to, and then one that is
// killed.
const (
	farewell = 11 * time.Second
	demise   = 2 * time.Second
)
