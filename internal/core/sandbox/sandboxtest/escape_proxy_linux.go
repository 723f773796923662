package sandboxtest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// openProxy starts a proxy that answers as if each connection were allowed, and
// returns its address. It connects to nothing.
func openProxy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer(t, l, func(c net.Conn) {
		_ = c.SetDeadline(time.Now().Add(actLimit))
		allowAll(c)
	})
	return l.Addr().String()
}

// answer serves the connections of a listener until the test ends.
func answer(t *testing.T, l net.Listener, serve func(net.Conn)) {
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
}

// allowAll speaks SOCKS and HTTP. The other side may go at any time.
func allowAll(c net.Conn) {
	in := bufio.NewReader(c)
	version, err := in.Peek(1)
	switch {
	case err != nil:
		return
	case version[0] == 4:
		_, _ = io.WriteString(c, "\x00\x5a\x00\x00\x00\x00\x00\x00")
		return
	case version[0] == 5:
		_, _ = in.Discard(3)
		_, _ = io.WriteString(c, "\x05\x00")
		head, err := in.Peek(5)
		if err != nil {
			return
		}
		size := 7 + int(head[4]) // version, command, 0, kind of address, its length, the address, port
		_, _ = in.Discard(size)
		_, _ = io.WriteString(c, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
	}
	for {
		r, err := http.ReadRequest(in)
		if err != nil { // not all acts are valid requests
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\nhost "+canary+"\n")
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\nhost "+canary+"\n")
		if r.Close {
			return
		}
	}
}
