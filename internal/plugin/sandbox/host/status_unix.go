//go:build unix

package host

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

func status(s *os.ProcessState) sandbox.Exit {
	if s == nil {
		return sandbox.Exit{Code: -1}
	}
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return sandbox.Exit{Code: -1, Signal: unix.SignalName(w.Signal())}
	}
	return sandbox.Exit{Code: s.ExitCode()}
}
