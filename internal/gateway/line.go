package gateway

import (
	"encoding/binary"
	"net"
	"syscall"
)

// line is the network connection under a WebSocket. The library writes to it
// what a WebSocket says of itself: pings, pongs, the close. Our frames are
// written past the library, so that several leave together, and at once where
// nothing needs to be waited for.
type line struct {
	net.Conn

	turn chan struct{}   // cap 1; held while frames are written, which may take long
	raw  syscall.RawConn // nil: whether a write waits is not known before
}

func newLine(c net.Conn) *line {
	return &line{Conn: c, turn: make(chan struct{}, 1), raw: rawConn(c)}
}

func (l *line) lock()   { l.turn <- struct{}{} }
func (l *line) unlock() { <-l.turn }

// tryLock takes the line for a try, if that can be done.
func (l *line) tryLock() bool {
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

// Write writes whole frames: the library's buffer takes more than the longest
// that it writes.
func (l *line) Write(p []byte) (int, error) {
	l.lock()
	defer l.unlock()
	return l.Conn.Write(p)
}

// lines makes the connections of a listener lines.
type lines struct{ net.Listener }

func (l lines) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newLine(c), nil
}

// appendHeader writes what stands before a text of n bytes in a WebSocket from a
// server.
func appendHeader(b []byte, n int) []byte {
	const whole, text = 0x80, 0x1
	b = append(b, whole|text)
	switch {
	case n < 126:
		return append(b, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
}
