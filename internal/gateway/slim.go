package gateway

import (
	"bufio"
	"net"
	"net/http"
)

// slim is a response that is taken over with small buffers. Those of net/http
// would stay with the connection as long as it lives, and frames that are
// larger than a buffer do not go through it.
type slim struct{ http.ResponseWriter }

// slimBuffer is the size of each of the two buffers.
const slimBuffer = 512

// Hijack implements http.Hijacker.
func (s slim) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(s.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := rw.Reader.Buffered() // what the client sent without waiting
	r := bufio.NewReaderSize(rw.Reader, max(slimBuffer, early))
	if early > 0 {
		if _, err := r.Peek(early); err != nil {
			return nil, nil, err
		}
	}
	return nc, bufio.NewReadWriter(r, bufio.NewWriterSize(nc, slimBuffer)), nil
}
