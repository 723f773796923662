package postgres

import (
	"context"
	"sync"
	"time"
)

// The pool of readers is small, because a server has few connections, and is emptied when
// idle.
const (
	maxReaders = 4
	idleReader = 30 * time.Second
)

// readers is a pool of connections for reading.
type readers struct {
	d     *DB
	slots chan struct{} // one token per connection in use
	done  chan struct{} // closed by close

	mu    sync.Mutex
	idle  []*conn
	timer *time.Timer // closes idle connections; nil if there were none
}

func newReaders(d *DB) *readers {
	return &readers{d: d, slots: make(chan struct{}, maxReaders), done: make(chan struct{})}
}

// get waits for a free slot and returns a connection.
func (p *readers) get(ctx context.Context) (*conn, error) {
	select {
	case <-p.done:
		return nil, errClosed
	default:
	}
	select {
	case p.slots <- struct{}{}:
	case <-p.done:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		if !c.pg.IsClosed() {
			p.mu.Unlock()
			return c, nil
		}
	}
	p.mu.Unlock()
	c, err := p.d.dial(ctx)
	if err != nil {
		<-p.slots
		return nil, &brokenError{err}
	}
	c.Memo = &p.d.memo
	return c, nil
}

// put returns a connection to the pool, or closes it if it cannot be used again. After an
// error of the connection the idle ones are closed too: they are probably broken.
func (p *readers) put(c *conn, ok bool) {
	defer func() { <-p.slots }()
	p.mu.Lock()
	if ok {
		p.idle = append(p.idle, c)
		if p.timer == nil {
			p.timer = time.AfterFunc(idleReader, p.drop)
		} else {
			p.timer.Reset(idleReader)
		}
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	c.close()
	p.drop()
}

// drop closes the idle connections.
func (p *readers) drop() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

// close waits for the connections in use and closes all of them.
func (p *readers) close() {
	close(p.done)
	for range maxReaders {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.drop()
}
