package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// The pool of readers is small and is emptied when idle, because the caches of the
// connections use memory.
const (
	maxReaders = 2
	idleReader = 5 * time.Second
)

func newReaders(d *DB) *table.Pool[*conn] {
	return table.NewPool(table.PoolOptions[*conn]{
		Most: maxReaders, Idle: idleReader,
		Open: func(context.Context) (*conn, error) {
			c, err := d.openReader()
			return c, d.explain(err)
		},
		Close:  (*conn).Close,
		Usable: func(*conn) bool { return true },
	})
}

// openReader opens a connection for reading.
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
