package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/db"
)

// conn is a connection. It must be used by one goroutine at a time.
type conn struct {
	*db.Conn
	args []any
	memo *session.Memo // shared by all connections of the database

	// txErr is the error that ended the transaction: SQLite rolls back by itself
	// after some errors, and later statements would run outside of it.
	txErr error
	// check returns an error when the context of a reader has ended; nil for a
	// writer.
	check func() error
}

// dial opens a connection to the file.
func dial(path, vfs string) (*conn, error) {
	c, err := db.Open(path, vfs)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, memo: new(session.Memo)}, nil
}

// script runs statements without caching them.
func (c *conn) script(ctx context.Context, sql string) error { return c.Script(ctx, sql, nil) }

// run runs a statement and calls f for each row. f must not use c.
func (c *conn) run(f func(*row) error, sql string, args []any) error {
	if c.txErr != nil {
		return c.txErr
	}
	if c.check != nil {
		if err := c.check(); err != nil {
			return err
		}
	}
	s, err := c.Prepare(sql)
	if err != nil {
		return c.note(err)
	}
	c.args = c.args[:0]
	for _, a := range args {
		c.args = append(c.args, value(a))
	}
	defer s.Reset() // f may panic
	err = s.Bind(c.args...)
	clear(c.args) // they may be large
	if err != nil {
		return c.note(err)
	}
	return c.note(each(s, f))
}

func each(s *db.Stmt, f func(*row) error) error {
	r := row{s: s}
	for {
		found, err := s.Step()
		if !found || err != nil {
			return err
		}
		if f == nil {
			continue
		}
		r.i = 0
		if err := f(&r); err != nil {
			return err
		}
		if r.err != nil {
			return r.err
		}
	}
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(sql string, args ...any) (int, error) {
	if err := c.run(nil, sql, args); err != nil {
		return 0, err
	}
	return c.Changes(), nil
}

// query calls f for each row of a statement. f must not use c.
func (c *conn) query(f func(*row) error, sql string, args ...any) error {
	return c.run(f, sql, args)
}

// one is query for at most one row. It reports whether there was a row.
func (c *conn) one(f func(*row) error, sql string, args ...any) (bool, error) {
	found := false
	err := c.query(func(r *row) error {
		found = true
		return f(r)
	}, sql, args...)
	return found, err
}

// number returns the only value of a query.
func (c *conn) number(sql string, args ...any) (int64, error) {
	var n int64
	_, err := c.one(func(r *row) error { n = r.int(); return nil }, sql, args...)
	return n, err
}

// text returns the only value of a query.
func (c *conn) text(sql string, args ...any) (string, error) {
	var s string
	_, err := c.one(func(r *row) error { s = r.text(); return nil }, sql, args...)
	return s, err
}

// note records errors after which SQLite may have ended the transaction.
func (c *conn) note(err error) error {
	if err != nil && fatal(err) {
		c.txErr = err
	}
	return err
}

// value converts a to a statement argument: booleans to numbers, times to
// nanoseconds. Use str or opt for named string types.
func value(a any) any {
	switch a := a.(type) {
	case string, int64, nil:
		return a
	case int:
		return int64(a)
	case bool:
		if a {
			return int64(1)
		}
		return int64(0)
	case time.Time:
		return unixNano(a)
	case optional:
		if a == "" {
			return nil
		}
		return string(a)
	}
	panic(fmt.Sprintf("sqlite: argument of type %T", a))
}

// optional is a text that is stored as NULL if it is empty.
type optional string

// str and opt convert named string types to arguments.
func str[T ~string](v T) string   { return string(v) }
func opt[T ~string](v T) optional { return optional(v) }

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// row is a row of a result. Its values are read from left to right.
type row struct {
	s   *db.Stmt
	i   int
	err error // the first error
}

func (r *row) text() string {
	v, err := r.s.Text(r.i)
	r.setErr(err)
	return v
}

func (r *row) int() int64 {
	v, err := r.s.Int(r.i)
	r.setErr(err)
	return v
}

func (r *row) setErr(err error) {
	r.i++
	if r.err == nil {
		r.err = err
	}
}

// skip skips n values.
func (r *row) skip(n int) { r.i += n }

// null reports whether the next value is NULL, without reading it.
func (r *row) null() bool { return r.s.Null(r.i) }

func (r *row) bool() bool { return r.int() != 0 }

func (r *row) time() time.Time {
	n := r.int()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
