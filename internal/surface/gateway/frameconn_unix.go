//go:build unix

package gateway

import (
	"net"
	"syscall"
)

// rawConn returns the raw connection; nil if there is none, as for TLS.
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

func try(raw syscall.RawConn, p []byte) int {
	n := 0
	err := raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), p)
		return true
	})
	if err != nil {
		return 0
	}
	return max(n, 0)
}
