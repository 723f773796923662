package gateway

import (
	"context"
	"net"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Pipe is a listener within the process. Dial and Accept return the two ends of
// a net.Pipe.
type Pipe struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

var _ net.Listener = (*Pipe)(nil)

// NewPipe returns a Pipe.
func NewPipe() *Pipe {
	return &Pipe{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Dial connects to the listener.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, chela.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for the next Dial.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. Connections stay open.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr returns the address "in this process".
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "in this process" }
