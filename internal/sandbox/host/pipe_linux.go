package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openPipe returns both ends of a pipe. Ours has a read end when it is closed;
// the program's is as programs expect it, blocking, and is not watched by us.
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

// abandoned reports whether nobody holds the other end of a pipe or a terminal,
// so that it ends when what is in it was read.
func abandoned(ours *os.File) (gone bool) {
	conn, err := ours.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd)}}
		_, _ = unix.Poll(p, 0) // when it fails it says nothing
		gone = p[0].Revents&unix.POLLHUP != 0
	})
	return gone && err == nil
}
