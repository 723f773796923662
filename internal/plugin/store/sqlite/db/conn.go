// Package db provides connections to SQLite and a cache of prepared statements. It
// calls the C interface of the library (https://www.sqlite.org/cintro.html).
// Package database/sql and its drivers name, copy and convert each value, and
// inspect all columns of a result before its first row, which takes longer than
// most statements of the store.
//
// A connection and its statements must be used by one goroutine at a time.
package db

import (
	"context"
	"fmt"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Conn is a connection to a database file.
type Conn struct {
	tls   *libc.TLS
	p     uintptr // *lib.Tsqlite3
	stmts map[string]*Stmt
}

// Open opens a connection to a file, which is created if it is missing. vfs is the
// name of the VFS, "" for the default.
func Open(path, vfs string) (*Conn, error) {
	c := &Conn{tls: libc.NewTLS(), stmts: make(map[string]*Stmt)}
	if err := c.open(path, vfs); err != nil {
		c.tls.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) open(path, vfs string) error {
	name, err := libc.CString(path)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	var layer uintptr
	if vfs != "" {
		if layer, err = libc.CString(vfs); err != nil {
			return err
		}
		defer libc.Xfree(c.tls, layer)
	}
	out := c.tls.Alloc(pointer)
	defer c.tls.Free(pointer)
	const flags = lib.SQLITE_OPEN_READWRITE | lib.SQLITE_OPEN_CREATE | lib.SQLITE_OPEN_NOMUTEX | lib.SQLITE_OPEN_EXRESCODE
	rc := lib.Xsqlite3_open_v2(c.tls, name, out, flags, layer)
	c.p = *at[uintptr](out)
	if rc != lib.SQLITE_OK {
		err = c.failed(rc)
		lib.Xsqlite3_close_v2(c.tls, c.p)
	}
	return err
}

// Close closes the connection and its statements.
func (c *Conn) Close() error {
	for _, s := range c.stmts {
		s.close()
	}
	c.stmts = nil
	rc := lib.Xsqlite3_close_v2(c.tls, c.p)
	c.tls.Close()
	if rc != lib.SQLITE_OK {
		return &Error{Code: int(rc), text: "close"}
	}
	return nil
}

// Prepare returns the prepared statement of a text. The connection caches it.
func (c *Conn) Prepare(sql string) (*Stmt, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	text, err := libc.CString(sql)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, text)
	p, _, err := c.prepare(text, lib.SQLITE_PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	s := &Stmt{c: c, p: p}
	c.stmts[sql] = s
	return s, nil
}

// prepare compiles the first statement in text and returns the address of the next.
// p is 0 if there is no statement.
func (c *Conn) prepare(text uintptr, flags uint32) (p, rest uintptr, err error) {
	out := c.tls.Alloc(2 * pointer)
	defer c.tls.Free(2 * pointer)
	rc := lib.Xsqlite3_prepare_v3(c.tls, c.p, text, -1, flags, out, out+pointer)
	if rc != lib.SQLITE_OK {
		return 0, 0, c.failed(rc)
	}
	return *at[uintptr](out), *at[uintptr](out + pointer), nil
}

// Script runs statements without caching them and calls f, which may be nil, for
// each row. It stops when ctx ends.
func (c *Conn) Script(ctx context.Context, sql string, f func(*Stmt) error) error {
	text, err := libc.CString(sql)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, text)
	defer c.interrupt(ctx)()
	for rest := text; *at[byte](rest) != 0; {
		var s Stmt
		if s.p, rest, err = c.prepare(rest, 0); err != nil {
			return err
		}
		s.c = c
		err = s.all(f)
		s.close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// interrupt stops the running statement when ctx ends, until stop is called.
func (c *Conn) interrupt(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	over := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(over)
		tls := libc.NewTLS()
		defer tls.Close()
		lib.Xsqlite3_interrupt(tls, c.p)
	})
	return func() {
		if !cancel() {
			<-over
		}
	}
}

// Changes returns the number of rows that the last INSERT, UPDATE or DELETE
// changed.
func (c *Conn) Changes() int { return int(lib.Xsqlite3_changes(c.tls, c.p)) }

// Inserted returns the rowid of the last inserted row.
func (c *Conn) Inserted() int64 { return lib.Xsqlite3_last_insert_rowid(c.tls, c.p) }

// Memory returns the bytes that the connection uses for pages, schema and
// statements.
func (c *Conn) Memory() int {
	out := c.tls.Alloc(2 * pointer)
	defer c.tls.Free(2 * pointer)
	n := 0
	for _, kind := range [...]int32{lib.SQLITE_DBSTATUS_CACHE_USED, lib.SQLITE_DBSTATUS_SCHEMA_USED, lib.SQLITE_DBSTATUS_STMT_USED} {
		if lib.Xsqlite3_db_status(c.tls, c.p, kind, out, out+pointer, 0) == lib.SQLITE_OK {
			n += int(*at[int32](out))
		}
	}
	return n
}

// Error is an error of SQLite.
type Error struct {
	Code int // SQLite's extended result code
	text string
}

// Error returns the message of SQLite with the code.
func (e *Error) Error() string { return fmt.Sprintf("sqlite: %s (%d)", e.text, e.Code) }

// failed returns the error of a call that returned rc.
func (c *Conn) failed(rc int32) error {
	e := &Error{Code: int(rc), text: libc.GoString(lib.Xsqlite3_errstr(c.tls, rc))}
	if c.p == 0 {
		return e
	}
	if more := libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.p)); more != e.text {
		e.text += ": " + more
	}
	return e
}

// pointer is the size of a pointer.
const pointer = 8

// at converts an address of C memory to a pointer.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }
