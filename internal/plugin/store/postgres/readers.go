package postgres

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// The pool of readers is small, because a server has few connections, and is emptied when
// idle.
const (
	maxReaders = 4
	idleReader = 30 * time.Second
)

func newReaders(d *DB) *table.Pool[*conn] {
	return table.NewPool(table.PoolOptions[*conn]{
		Most: maxReaders, Idle: idleReader,
		Open:   d.openReader,
		Close:  func(c *conn) error { c.close(); return nil },
		Usable: func(c *conn) bool { return !c.pg.IsClosed() },
	})
}

func (d *DB) openReader(ctx context.Context) (*conn, error) {
	c, err := d.dial(ctx)
	if err != nil {
		return nil, &brokenError{err}
	}
	c.Memo = &d.memo
	return c, nil
}

// putReader returns a connection to the pool. After an error of it the idle ones are closed
// too: they are probably broken.
func (d *DB) putReader(c *conn, ok bool) {
	d.readers.Put(c, ok)
	if !ok {
		_ = d.readers.Drop()
	}
}
