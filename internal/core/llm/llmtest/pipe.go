package llmtest

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Listener is a net.Listener with in-memory connections (net.Pipe), which block
// durably in a bubble of testing/synctest.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*Listener)(nil)

// Pipe returns an in-memory listener.
func Pipe() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe.invalid" }

// Dial returns a connection to the listener.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Client returns an HTTP client that connects only to the listener, whatever
// the host of a request.
func (l *Listener) Client() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) }
	return &http.Client{Transport: &http.Transport{DialContext: dial, DialTLSContext: dial, MaxIdleConnsPerHost: 16}}
}

// ServePipe serves over memory. It returns the URL of the server, a client that reaches
// nothing else, and a function that ends both. It works in a bubble of testing/synctest.
func ServePipe(hs *http.Server) (url string, hc *http.Client, stop func()) {
	l := Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = hs.Serve(l) // until stop
	}()
	hc = l.Client()
	return "http://" + l.Addr().String(), hc, func() {
		hc.CloseIdleConnections()
		_ = hs.Close()
		<-done
	}
}
