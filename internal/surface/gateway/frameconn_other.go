//go:build !unix

package gateway

import (
	"net"
	"syscall"
)

func rawConn(net.Conn) syscall.RawConn { return nil }

func try(syscall.RawConn, []byte) int { return 0 }
