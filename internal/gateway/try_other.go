//go:build !unix

package gateway

import (
	"net"
	"syscall"
)

func rawConn(net.Conn) syscall.RawConn { return nil }

func (l *line) try([]byte) int { return 0 }
