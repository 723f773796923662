// Package splice joins two connections, as a proxy does.
package splice

import (
	"io"
	"net"
	"time"
)

// lastTime is how long the second direction may go on when the first has ended.
const lastTime = 10 * time.Second

// Both copies between a connection and another one, in both directions, until both
// are done. in reads from c, and may hold what was read from it already. The caller
// closes the connections.
func Both(c net.Conn, in io.Reader, to net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(to, in) // either side may end
		closeWrite(to)
	}()
	_, _ = io.Copy(c, to) // as above
	closeWrite(c)
	_ = c.SetReadDeadline(time.Now().Add(lastTime)) // the other direction ends soon
	<-done
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // it may be closed
	}
}
