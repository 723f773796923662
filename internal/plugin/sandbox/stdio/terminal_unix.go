//go:build unix

package stdio

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/sandbox"
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

// pollable returns a copy of the file that supports deadlines and whose reads
// end when it is closed. Package pty leaves the file blocking.
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

// hungUp reports whether a read ended because the other end was closed by all
// holders (EIO on a terminal) or because we closed ours.
func hungUp(err error) bool { return errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EIO) }
