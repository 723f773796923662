package gateway

import (
	"bufio"
	"net"
	"net/http"
)

// smallBuffers is a response that is hijacked with small buffers. The buffers
// of net/http would remain for the lifetime of the connection, and larger
// frames bypass them anyway.
type smallBuffers struct{ http.ResponseWriter }

// smallBuffer is the size of each of the two buffers.
const smallBuffer = 512

// Hijack implements [http.Hijacker].
func (s smallBuffers) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := rw.Reader.Buffered() // data sent before the upgrade was answered
	r := bufio.NewReaderSize(rw.Reader, max(smallBuffer, early))
	if early > 0 {
		if _, err := r.Peek(early); err != nil {
			return nil, nil, err
		}
	}
	return nc, bufio.NewReadWriter(r, bufio.NewWriterSize(nc, smallBuffer)), nil
}
