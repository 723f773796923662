package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The pool of readers is small and is emptied when idle, because the caches of the
// connections use memory.
const (
	maxReaders = 2
	idleReader = 5 * time.Second
)

// readers is a pool of connections for reading.
type readers struct {
	d     *DB
	slots chan struct{} // one token per connection in use
	done  chan struct{} // closed by close

	mu    sync.Mutex
	idle  []*conn
	timer *time.Timer // closes idle connections; nil if there are none
}

func newReaders(d *DB) *readers {
	return &readers{d: d, slots: make(chan struct{}, maxReaders), done: make(chan struct{})}
}

// get waits for a free slot and returns a connection.
func (p *readers) get(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
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
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.d.openReader()
	if err != nil {
		<-p.slots
		return nil, p.d.explain(err)
	}
	return c, nil
}

// put returns a connection to the pool. A connection with an error is closed.
func (p *readers) put(c *conn) {
	defer func() { <-p.slots }()
	if c.txErr != nil {
		c.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(idleReader, p.drop)
	} else {
		p.timer.Reset(idleReader)
	}
}

// drop closes the idle connections.
func (p *readers) drop() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}

// close waits for the connections in use and closes all of them.
func (p *readers) close() error {
	close(p.done)
	for range maxReaders {
		p.slots <- struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	var err error
	for _, c := range p.idle {
		err = errors.Join(err, c.Close())
	}
	p.idle = nil
	return err
}

func (d *DB) openReader() (*conn, error) {
	c, err := dialExisting(d.opts.Path, d.opts.VFS)
	if err != nil {
		return nil, err
	}
	if err := c.script(context.Background(), common+reading); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.Memo = &d.memo
	return c, nil
}
