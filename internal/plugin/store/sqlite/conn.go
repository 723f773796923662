package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	lib "zombiezen.com/go/sqlite"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
)

// conn is a connection. It must be used by one goroutine at a time.
type conn struct {
	*lib.Conn
	memo  *session.Memo        // shared by all connections of the database
	sums  *summer              // of the checksums of rows
	stmts map[string]*lib.Stmt // prepared statements by their text

	// txErr is the error that ended the transaction: SQLite rolls back by itself
	// after some errors, and later statements would run outside of it.
	txErr error
	// check returns an error when the context of a reader has ended; nil for a
	// writer.
	check func() error
}

// dial opens a connection to the file, which is created if it is missing. vfs is
// the name of the VFS, "" for the default.
func dial(path, vfs string) (*conn, error) { return connect(path, vfs, lib.OpenCreate) }

// dialExisting is [dial] for a file that must exist. A file that somebody moved
// away is not replaced by an empty one.
func dialExisting(path, vfs string) (*conn, error) { return connect(path, vfs, 0) }

func connect(path, vfs string, more lib.OpenFlags) (*conn, error) {
	flags := lib.OpenReadWrite | more
	if vfs != "" {
		u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"vfs": {vfs}}.Encode()}
		path, flags = u.String(), flags|lib.OpenURI
	}
	c, err := lib.OpenConn(path, flags)
	if err != nil {
		return nil, err
	}
	sums, err := newSummer(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &conn{Conn: c, memo: new(session.Memo), sums: sums, stmts: make(map[string]*lib.Stmt)}, nil
}

// Close closes the connection and its statements.
func (c *conn) Close() error {
	for _, s := range c.stmts {
		_ = s.Finalize() // returns the error of the last step again
	}
	return c.Conn.Close()
}

// prepare returns the prepared statement of a text. lib.Conn.Prepare would clear
// its parameters, after which SQLite compiles most statements again.
func (c *conn) prepare(sql string) (*lib.Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	s, _, err := c.PrepareTransient(sql)
	if err == nil {
		c.stmts[sql] = s
	}
	return s, err
}

// script runs statements without caching them. It stops when ctx ends. There must
// be no comment after the last statement.
func (c *conn) script(ctx context.Context, sql string) error {
	defer c.interrupt(ctx)()
	for sql = strings.TrimSpace(sql); sql != ""; {
		s, rest, err := c.PrepareTransient(sql)
		if err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		for more := true; more && err == nil; {
			more, err = s.Step()
		}
		_ = s.Finalize() // returns the error of the last step again
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		sql = strings.TrimSpace(sql[len(sql)-rest:])
	}
	return nil
}

// interrupt makes statements fail when ctx ends, until stop is called.
func (c *conn) interrupt(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	c.SetInterrupt(ctx.Done())
	return func() { c.SetInterrupt(nil) }
}

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
	s, err := c.prepare(sql)
	if err != nil {
		return c.note(err)
	}
	defer func() { // f may panic
		_ = s.Reset() // returns the error of the last step again
		for i, a := range args {
			if isLarge(a) {
				s.BindNull(i + 1)
			}
		}
	}()
	for i, a := range args {
		bind(s, i+1, a)
	}
	return c.note(c.each(s, f))
}

func (c *conn) each(s *lib.Stmt, f func(*row) error) error {
	r := row{s: s}
	for {
		found, err := s.Step()
		err = cmp.Or(err, c.sums.failed())
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

// collect returns what scan makes of each row of a query.
func collect[T any](c *conn, scan func(*row) (T, error), sql string, args ...any) ([]T, error) {
	var list []T
	err := c.query(func(r *row) error {
		v, err := scan(r)
		list = append(list, v)
		return err
	}, sql, args...)
	return list, err
}

// scanText and scanJSON are the functions of collect for a column of texts and a
// column of JSON.
func scanText[T ~string](r *row) (T, error) { return T(r.text()), nil }

func scanJSON[T any](r *row) (v T, err error) {
	err = decode(r.text(), &v)
	return v, err
}

// get returns the only element of the list that where selects with the argument id,
// or a chela.ErrNotFound that begins with what.
func get[T any](list func(where string, args ...any) ([]T, error), what, where, id string) (v T, err error) {
	all, err := list(where, id)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s %s: %w", what, id, chela.ErrNotFound)
	}
	if err != nil {
		return v, err
	}
	return all[0], nil
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

// bind sets argument i of a statement, counted from 1. Times are stored as
// nanoseconds. Use str or opt for named string types.
func bind(s *lib.Stmt, i int, a any) {
	switch a := a.(type) {
	case nil:
		s.BindNull(i)
	case string:
		s.BindText(i, a)
	case int64:
		s.BindInt64(i, a)
	case int:
		s.BindInt64(i, int64(a))
	case bool:
		s.BindBool(i, a)
	case time.Time:
		s.BindInt64(i, unixNano(a))
	case optional:
		if a == "" {
			s.BindNull(i)
		} else {
			s.BindText(i, string(a))
		}
	default:
		panic(fmt.Sprintf("sqlite: argument of type %T", a))
	}
}

// isLarge reports whether an argument is too large to be retained by its statement.
func isLarge(a any) bool {
	const most = 4 << 10
	switch a := a.(type) {
	case string:
		return len(a) > most
	case optional:
		return len(a) > most
	}
	return false
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
	s   *lib.Stmt
	i   int
	err error // the first error
}

func (r *row) text() string {
	if r.next(lib.TypeText) != lib.TypeText {
		return ""
	}
	return r.s.ColumnText(r.i - 1)
}

func (r *row) int() int64 {
	if r.next(lib.TypeInteger) != lib.TypeInteger {
		return 0
	}
	return r.s.ColumnInt64(r.i - 1)
}

// next advances to the next value and returns its type, which is an error if it is
// neither want nor NULL.
func (r *row) next(want lib.ColumnType) lib.ColumnType {
	have := r.s.ColumnType(r.i)
	r.i++
	if have != want && have != lib.TypeNull && r.err == nil {
		r.err = fmt.Errorf("column %d: have %v, want %v", r.i, have, want)
	}
	return have
}

// skip skips n values.
func (r *row) skip(n int) { r.i += n }

// null reports whether the next value is NULL, without reading it.
func (r *row) null() bool { return r.s.ColumnIsNull(r.i) }

func (r *row) bool() bool { return r.int() != 0 }

func (r *row) time() time.Time {
	n := r.int()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
