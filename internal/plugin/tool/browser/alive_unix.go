//go:build !windows

package browser

import (
	"os"
	"syscall"
)

// alive reports whether a process exists.
func alive(p *os.Process) bool { return p.Signal(syscall.Signal(0)) == nil }
