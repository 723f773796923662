//go:build unix

package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/sandbox"
)

// openTerminal returns both ends of a new terminal.
func openTerminal(s sandbox.Size) (ours, theirs *os.File, err error) {
	p, t, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("terminal: %w: %w", sandbox.ErrNoTerminal, err)
	}
	defer p.Close()
	if err = pty.Setsize(t, &pty.Winsize{Rows: uint16(s.Rows), Cols: uint16(s.Cols)}); err == nil {
		ours, err = pollable(p)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("terminal: %w", err), t.Close())
	}
	return ours, t, nil
}

// pollable returns the file in a form in which it has deadlines, and in which
// a read ends when it is closed: the package pty leaves it blocking.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// hungUp reports whether a read ended because nobody holds the other end, or
// because we closed ours. EIO is what a terminal says.
func hungUp(err error) bool { return errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EIO) }
