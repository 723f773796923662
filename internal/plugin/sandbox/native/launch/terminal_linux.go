package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal opens a terminal of the cage. One of the host would have no name
// here.
func openTerminal(size Size) (ours, theirs *os.File, err error) {
	ptmx, err := unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetPointerInt(ptmx, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock: %w", err)
	}
	n, err := unix.IoctlGetInt(ptmx, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("number: %w", err)
	}
	name := fmt.Sprintf("/dev/pts/%d", n)
	pts, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(pts, unix.TIOCSWINSZ,
		&unix.Winsize{Row: uint16(size.Rows), Col: uint16(size.Cols)}); err != nil {
		return nil, nil, fmt.Errorf("size: %w", err)
	}
	return os.NewFile(uintptr(ptmx), "terminal"), os.NewFile(uintptr(pts), name), nil
}
