//go:build unix

package gateway

import (
	"net"
	"syscall"
)

// rawConn returns what is below a connection; nil when there is more between
// them, like TLS.
func rawConn(c net.Conn) syscall.RawConn {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// try writes what the system takes at once, and returns how much that was. What
// is wrong with the connection the next write finds out.
func (l *line) try(p []byte) int {
	n := 0
	err := l.raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), p)
		return true
	})
	if err != nil {
		return 0
	}
	return max(n, 0)
}
