package stdio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openPipe returns both ends of a pipe. Reads from ours end when it is
// closed. The program's end is blocking, as programs expect, and is not
// registered with the poller.
func openPipe() (ours, theirs *os.File, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fd[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(fd[0]), unix.Close(fd[1]))
	}
	return os.NewFile(uintptr(fd[0]), "output"), os.NewFile(uintptr(fd[1]), "output"), nil
}

// Abandoned reports whether no process holds the other end of a pipe or
// terminal, so that reading ends once the buffered data has been read.
func Abandoned(ours *os.File) (hangup bool) {
	conn, err := ours.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd)}}
		_, _ = unix.Poll(p, 0) // on failure Revents stays 0
		hangup = p[0].Revents&unix.POLLHUP != 0
	})
	return hangup && err == nil
}
