package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store/sqlite/db"
)

// conn is a connection. It is used by one goroutine at a time.
type conn struct {
	*db.Conn
	args []any
	memo *session.Memo // of the database

	// lost is why the transaction is gone: after some errors SQLite rolls it
	// back by itself, and what follows would not be part of it.
	lost error
	// check stops a reader whose context ended; nil: never.
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

// script runs statements that are not worth being kept.
func (c *conn) script(ctx context.Context, sql string) error { return c.Script(ctx, sql, nil) }

// run runs a statement, and f on each row that it gives. f must not use c.
func (c *conn) run(f func(*row) error, sql string, args []any) error {
	if c.lost != nil {
		return c.lost
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

// query runs f on each row that a statement gives. f must not use c.
func (c *conn) query(f func(*row) error, sql string, args ...any) error {
	return c.run(f, sql, args)
}

// one is query for a single row and reports whether there was one.
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

// note remembers errors with which SQLite may have ended the transaction.
func (c *conn) note(err error) error {
	if err != nil && fatal(err) {
		c.lost = err
	}
	return err
}

// value is a as a statement takes it: flags as numbers, times as nanoseconds.
// The other types over string are made strings with str or opt.
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

// optional is a text that is stored as NULL when it is empty.
type optional string

// str and opt make arguments of values of types over string.
func str[T ~string](v T) string   { return string(v) }
func opt[T ~string](v T) optional { return optional(v) }

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// row is a row of a result; its values are taken from left to right.
type row struct {
	s   *db.Stmt
	i   int
	err error // the first
}

func (r *row) text() string {
	v, err := r.s.Text(r.i)
	r.took(err)
	return v
}

func (r *row) int() int64 {
	v, err := r.s.Int(r.i)
	r.took(err)
	return v
}

func (r *row) took(err error) {
	r.i++
	if r.err == nil {
		r.err = err
	}
}

// skip leaves n values out.
func (r *row) skip(n int) { r.i += n }

// null reports whether the next value is NULL; it does not take it.
func (r *row) null() bool { return r.s.Null(r.i) }

func (r *row) bool() bool { return r.int() != 0 }

func (r *row) time() time.Time {
	n := r.int()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
