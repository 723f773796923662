package table

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// ErrClosed is the error of a store that was closed.
var ErrClosed error = &chela.Error{Code: chela.CodeUnavailable, Message: "database", Err: chela.ErrClosed}

// PoolOptions are the options of a [Pool]. All are required.
type PoolOptions[C any] struct {
	Most   int           // connections
	Idle   time.Duration // after which connections that are not used are closed
	Open   func(context.Context) (C, error)
	Close  func(C) error
	Usable func(C) bool // whether a connection that was idle can be used
}

// Pool is a pool of connections for reading.
type Pool[C any] struct {
	o     PoolOptions[C]
	slots chan struct{} // one token per connection in use
	done  chan struct{} // closed by Close

	mu    sync.Mutex
	idle  []C
	timer *time.Timer // closes idle connections; nil if there were none
}

// NewPool returns a pool.
func NewPool[C any](o PoolOptions[C]) *Pool[C] {
	return &Pool[C]{o: o, slots: make(chan struct{}, o.Most), done: make(chan struct{})}
}

// Get waits until a connection may be used and returns it.
func (p *Pool[C]) Get(ctx context.Context) (c C, err error) {
	if err := ctx.Err(); err != nil {
		return c, err
	}
	select {
	case <-p.done:
		return c, ErrClosed
	default:
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.done:
		return c, ErrClosed
	case <-ctx.Done():
		return c, ctx.Err()
	}
	p.mu.Lock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		if p.o.Usable(c) {
			p.mu.Unlock()
			return c, nil
		}
	}
	p.mu.Unlock()
	if c, err = p.o.Open(ctx); err != nil {
		<-p.slots
	}
	return c, err
}

// Put returns a connection to the pool, or closes it if it is not ok.
func (p *Pool[C]) Put(c C, ok bool) {
	defer func() { <-p.slots }()
	if !ok {
		_ = p.o.Close(c)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.o.Idle, func() { _ = p.Drop() })
	} else {
		p.timer.Reset(p.o.Idle)
	}
}

// Idle returns the number of idle connections.
func (p *Pool[C]) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Drop closes the idle connections.
func (p *Pool[C]) Drop() error {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var err error
	for _, c := range idle {
		err = errors.Join(err, p.o.Close(c))
	}
	return err
}

// Close waits for the connections in use and closes all of them.
func (p *Pool[C]) Close() error {
	close(p.done)
	for range p.o.Most {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	return p.Drop()
}
