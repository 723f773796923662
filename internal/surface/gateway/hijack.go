package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// hijacker is a response that is hijacked with small buffers. The buffers of
// net/http would remain for the lifetime of the connection, and larger frames
// bypass them anyway. Frames are written to sink.
type hijacker struct {
	http.ResponseWriter
	sink *sink
}

// smallBuffer is the size of each of the two buffers.
const smallBuffer = 512

// Hijack implements [http.Hijacker].
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	nc, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
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
	h.sink.w = nc
	return nc, bufio.NewReadWriter(r, bufio.NewWriterSize(h.sink, smallBuffer)), nil
}

// sink writes the frames of a connection, each of which the library flushes.
// Between hold and flush it collects them, so that frames that are ready together
// are sent together.
type sink struct {
	lock chan struct{} // cap 1; it may be held until the connection is closed
	w    io.Writer     // the connection
	held *bufio.Writer // nil: frames are written immediately
}

func newSink() *sink { return &sink{lock: make(chan struct{}, 1)} }

// maxHeld is the number of bytes that are collected.
const maxHeld = 16 << 10

// hold begins to collect about n bytes of frames.
func (s *sink) hold(n int) {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	s.held = bufio.NewWriterSize(s.w, min(n, maxHeld))
}

// flush writes the collected frames.
func (s *sink) flush() error {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	held := s.held
	s.held = nil
	return held.Flush()
}

// Write implements [io.Writer].
func (s *sink) Write(b []byte) (int, error) {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	if s.held != nil {
		return s.held.Write(b)
	}
	return s.w.Write(b)
}
