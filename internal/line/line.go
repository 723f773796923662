// Package line is a network connection to which several write whole frames:
// one after the other, and without waiting where that can be done.
package line

import (
	"net"
	"syscall"
)

// Line is a connection. Who writes more than one Write, or tries to write,
// locks it.
type Line struct {
	net.Conn

	turn chan struct{}   // cap 1; held while frames are written, which may take long
	raw  syscall.RawConn // nil: whether a write waits is not known before
}

// New returns a line over a connection.
func New(c net.Conn) *Line {
	return &Line{Conn: c, turn: make(chan struct{}, 1), raw: rawConn(c)}
}

// Write writes whole frames.
func (l *Line) Write(p []byte) (int, error) {
	l.turn <- struct{}{}
	defer l.Unlock()
	return l.Conn.Write(p)
}

// TryLock locks the line for Try, when nobody writes and it is a connection on
// which that can be done.
func (l *Line) TryLock() bool {
	if l.raw == nil {
		return false
	}
	select {
	case l.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

// Try writes what the system takes at once and returns how much that was. The
// line is locked. What is wrong with the connection the next write finds out.
func (l *Line) Try(p []byte) int { return try(l.raw, p) }

// Unlock lets the next one write.
func (l *Line) Unlock() { <-l.turn }

// Finish writes what a Try left, and unlocks the line.
func (l *Line) Finish(rest []byte) error {
	defer l.Unlock()
	_, err := l.Conn.Write(rest)
	return err
}

// Listener makes the connections of a listener lines.
type Listener struct{ net.Listener }

// Accept returns a *Line.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return New(c), nil
}
