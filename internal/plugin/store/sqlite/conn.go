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

	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// conn is a connection. It must be used by one goroutine at a time.
type conn struct {
	*lib.Conn
	*table.Tables
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
	conn := &conn{Conn: c, sums: sums, stmts: make(map[string]*lib.Stmt)}
	conn.Tables = &table.Tables{Conn: conn, Memo: new(session.Memo)}
	return conn, nil
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

// Run implements [table.Conn].
func (c *conn) Run(f func(*table.Row) error, sql string, args []any) (changed int, err error) {
	if c.txErr != nil {
		return 0, c.txErr
	}
	if c.check != nil {
		if err := c.check(); err != nil {
			return 0, err
		}
	}
	s, err := c.prepare(sql)
	if err != nil {
		return 0, c.note(err)
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
	if err := c.note(c.each(s, f)); err != nil || f != nil {
		return 0, err
	}
	return c.Changes(), nil
}

func (c *conn) each(s *lib.Stmt, f func(*table.Row) error) error {
	var r table.Row
	for {
		found, err := s.Step()
		err = cmp.Or(err, c.sums.failed())
		if !found || err != nil {
			return err
		}
		if f == nil {
			continue
		}
		if err := r.Read(row{s}, f); err != nil {
			return err
		}
	}
}

// note records errors after which SQLite may have ended the transaction.
func (c *conn) note(err error) error {
	if err != nil && fatal(err) {
		c.txErr = err
	}
	return err
}

// bind sets argument i of a statement, counted from 1. Times are stored as
// nanoseconds.
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
		s.BindInt64(i, table.UnixNano(a))
	case table.Optional:
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
	case table.Optional:
		return len(a) > most
	}
	return false
}

// row is a row of a statement.
type row struct{ s *lib.Stmt }

// Kind implements [table.Values].
func (r row) Kind(i int) table.Kind {
	switch r.s.ColumnType(i) {
	case lib.TypeNull:
		return table.Null
	case lib.TypeInteger:
		return table.Integer
	case lib.TypeText:
		return table.String
	}
	return table.Other
}

// Integer implements [table.Values].
func (r row) Integer(i int) int64 { return r.s.ColumnInt64(i) }

// String implements [table.Values].
func (r row) String(i int) string { return r.s.ColumnText(i) }
