package gateway

import (
	"net"
	"syscall"
)

// frameConn is a connection to which several goroutines write whole frames.
// Write locks it; a sequence of writes with TryWrite holds the lock from
// TryLock to Unlock or Finish.
type frameConn struct {
	net.Conn

	lock chan struct{}   // capacity 1; held while frames are written
	raw  syscall.RawConn // nil: non-blocking writes are not possible
}

// newFrameConn returns a frameConn for a connection.
func newFrameConn(c net.Conn) *frameConn {
	return &frameConn{Conn: c, lock: make(chan struct{}, 1), raw: rawConn(c)}
}

// Write writes whole frames.
func (l *frameConn) Write(p []byte) (int, error) {
	l.lock <- struct{}{}
	defer l.Unlock()
	return l.Conn.Write(p)
}

// TryLock locks the connection for TryWrite. It fails if another goroutine
// writes or the connection cannot write without blocking.
func (l *frameConn) TryLock() bool {
	if l.raw == nil {
		return false
	}
	select {
	case l.lock <- struct{}{}:
		return true
	default:
		return false
	}
}

// TryWrite writes as much as possible without blocking and returns the number
// of bytes. The connection must be locked. Errors are left to the next write.
func (l *frameConn) TryWrite(p []byte) int { return try(l.raw, p) }

// Unlock releases the lock.
func (l *frameConn) Unlock() { <-l.lock }

// Finish writes the rest of what TryWrite began and releases the lock.
func (l *frameConn) Finish(rest []byte) error {
	defer l.Unlock()
	_, err := l.Conn.Write(rest)
	return err
}

// frameListener wraps the connections of a listener in frameConn.
type frameListener struct{ net.Listener }

// Accept returns a *frameConn.
func (l frameListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newFrameConn(c), nil
}
