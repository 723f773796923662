package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/chela-ai/chela/internal/session"
)

// conn is a connection with its prepared statements. It is used by one
// goroutine at a time. It speaks to the driver without package database/sql,
// whose pool, locks and conversions cost more than the statements here.
type conn struct {
	c     driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
	memo  *session.Memo // of the database

	// lost is why the transaction is gone: after some errors SQLite rolls it
	// back by itself, and what follows would not be part of it.
	lost error
	// check stops a reader whose context ended; nil: never.
	check func() error
}

// dial opens a connection to the file.
func dial(path, vfs string) (*conn, error) {
	slashed := filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		slashed = "/" + slashed
	}
	name := "file:" + (&url.URL{Path: slashed}).EscapedPath()
	if vfs != "" {
		name += "?vfs=" + url.QueryEscape(vfs)
	}
	c, err := new(sqlite.Driver).Open(name)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: make(map[string]driver.Stmt), memo: new(session.Memo)}, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		s.Close()
	}
	c.stmts = nil
	return c.c.Close()
}

// script runs statements that are not worth being kept.
func (c *conn) script(ctx context.Context, sql string) error {
	_, err := c.c.(driver.ExecerContext).ExecContext(ctx, sql, nil)
	return err
}

func (c *conn) prepare(sql string, args []any) (driver.Stmt, []driver.NamedValue, error) {
	if c.lost != nil {
		return nil, nil, c.lost
	}
	if c.check != nil {
		if err := c.check(); err != nil {
			return nil, nil, err
		}
	}
	s := c.stmts[sql]
	if s == nil {
		var err error
		if s, err = c.c.Prepare(sql); err != nil {
			return nil, nil, c.note(err)
		}
		c.stmts[sql] = s
	}
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: value(a)})
	}
	return s, c.args, nil
}

// exec runs a statement and returns how many rows it changed.
func (c *conn) exec(sql string, args ...any) (int, error) {
	s, values, err := c.prepare(sql, args)
	if err != nil {
		return 0, err
	}
	r, err := s.(driver.StmtExecContext).ExecContext(context.Background(), values)
	clear(values) // they may be large
	if err != nil {
		return 0, c.note(err)
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// query runs f on each row that a statement gives. f must not use c.
func (c *conn) query(f func(*row) error, sql string, args ...any) error {
	s, values, err := c.prepare(sql, args)
	if err != nil {
		return err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), values)
	clear(values)
	if err != nil {
		return c.note(err)
	}
	defer rows.Close() // f may panic
	return c.note(each(rows, f))
}

func each(rows driver.Rows, f func(*row) error) error {
	r := &row{v: make([]driver.Value, len(rows.Columns()))}
	for {
		switch err := rows.Next(r.v); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r.i = 0
		if err := f(r); err != nil {
			return err
		}
		if r.err != nil {
			return r.err
		}
	}
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

// value is a as the driver takes it: flags as numbers, times as nanoseconds.
// The other types over string are made strings with str or opt.
func value(a any) driver.Value {
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
	v   []driver.Value
	i   int
	err error
}

func (r *row) next() driver.Value {
	v := r.v[r.i]
	r.i++
	return v
}

func (r *row) text() string {
	switch v := r.next().(type) {
	case string:
		return v
	case nil:
		return ""
	case []byte:
		return string(v)
	default:
		r.err = fmt.Errorf("column %d: have %T, want text", r.i, v)
		return ""
	}
}

// skip leaves n values out.
func (r *row) skip(n int) { r.i += n }

// null reports whether the next value is NULL; it does not take it.
func (r *row) null() bool { return r.v[r.i] == nil }

func (r *row) int() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case nil:
		return 0
	default:
		r.err = fmt.Errorf("column %d: have %T, want a number", r.i, v)
		return 0
	}
}

func (r *row) bool() bool { return r.int() != 0 }

func (r *row) time() time.Time {
	n := r.int()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
