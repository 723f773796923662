//go:build !unix

package line

import (
	"net"
	"syscall"
)

func rawConn(net.Conn) syscall.RawConn { return nil }

func try(syscall.RawConn, []byte) int { return 0 }
