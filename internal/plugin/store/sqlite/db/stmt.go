package db

import (
	"fmt"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Stmt is a prepared statement. Call [Stmt.Bind], then [Stmt.Step] until there are
// no more rows, then [Stmt.Reset]. The values of a row are valid until the next
// step.
type Stmt struct {
	c    *Conn
	p    uintptr // *lib.Tsqlite3_stmt; 0 if the text has no statement
	buf  uintptr // C memory with the bound texts
	room int     // size of buf
}

// The limits of the buffer that a statement reuses between runs.
const (
	leastRoom = 128
	mostRoom  = 4 << 10
)

// Bind sets the parameters. Each is a string, an int64 or nil.
func (s *Stmt) Bind(args ...any) error {
	size := 0
	for _, a := range args {
		if text, ok := a.(string); ok {
			size += len(text)
		}
	}
	if err := s.grow(size); err != nil {
		return err
	}
	end := s.buf
	for i, a := range args {
		var rc int32
		switch a := a.(type) {
		case nil:
			rc = lib.Xsqlite3_bind_null(s.c.tls, s.p, int32(i+1))
		case int64:
			rc = lib.Xsqlite3_bind_int64(s.c.tls, s.p, int32(i+1), a)
		case string:
			copy(unsafe.Slice(at[byte](end), len(a)), a)
			rc = lib.Xsqlite3_bind_text(s.c.tls, s.p, int32(i+1), end, int32(len(a)), lib.SQLITE_STATIC)
			end += uintptr(len(a))
		default:
			panic(fmt.Sprintf("sqlite: argument of type %T", a))
		}
		if rc != lib.SQLITE_OK {
			return s.c.failed(rc)
		}
	}
	return nil
}

// grow ensures that the buffer has at least size bytes.
func (s *Stmt) grow(size int) error {
	if size <= s.room && s.buf != 0 {
		return nil
	}
	s.drop()
	n := leastRoom
	for n < size {
		n *= 2
	}
	if s.buf = libc.Xmalloc(s.c.tls, libc.Tsize_t(n)); s.buf == 0 {
		return &Error{Code: lib.SQLITE_NOMEM, text: "out of memory"}
	}
	s.room = n
	return nil
}

// drop clears the bindings and frees the buffer.
func (s *Stmt) drop() {
	if s.buf == 0 {
		return
	}
	lib.Xsqlite3_clear_bindings(s.c.tls, s.p)
	libc.Xfree(s.c.tls, s.buf)
	s.buf, s.room = 0, 0
}

// Step advances to the next row and reports whether there is one.
func (s *Stmt) Step() (bool, error) {
	switch rc := lib.Xsqlite3_step(s.c.tls, s.p); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.failed(rc)
	}
}

// Reset ends the current run of the statement.
func (s *Stmt) Reset() {
	lib.Xsqlite3_reset(s.c.tls, s.p) // returns the error of the last step again
	if s.room > mostRoom {
		s.drop()
	}
}

// all runs the statement to completion.
func (s *Stmt) all(f func(*Stmt) error) error {
	if s.p == 0 {
		return nil
	}
	for {
		row, err := s.Step()
		if !row || err != nil {
			return err
		}
		if f == nil {
			continue
		}
		if err := f(s); err != nil {
			return err
		}
	}
}

func (s *Stmt) close() {
	lib.Xsqlite3_finalize(s.c.tls, s.p)
	libc.Xfree(s.c.tls, s.buf)
}

// Null reports whether the value in column i is NULL.
func (s *Stmt) Null(i int) bool { return s.kind(i) == lib.SQLITE_NULL }

func (s *Stmt) kind(i int) int32 { return lib.Xsqlite3_column_type(s.c.tls, s.p, int32(i)) }

// Text returns the text in column i, "" for NULL.
func (s *Stmt) Text(i int) (string, error) {
	switch k := s.kind(i); k {
	case lib.SQLITE_TEXT, lib.SQLITE_BLOB:
		// Read as a blob: SQLite would copy a text to append a zero byte.
		p := lib.Xsqlite3_column_blob(s.c.tls, s.p, int32(i))
		if p == 0 {
			return "", nil
		}
		return string(unsafe.Slice(at[byte](p), lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i)))), nil
	case lib.SQLITE_NULL:
		return "", nil
	default:
		return "", fmt.Errorf("column %d: have type %d, want text", i+1, k)
	}
}

// Int returns the number in column i, 0 for NULL.
func (s *Stmt) Int(i int) (int64, error) {
	switch k := s.kind(i); k {
	case lib.SQLITE_INTEGER:
		return lib.Xsqlite3_column_int64(s.c.tls, s.p, int32(i)), nil
	case lib.SQLITE_NULL:
		return 0, nil
	default:
		return 0, fmt.Errorf("column %d: have type %d, want a number", i+1, k)
	}
}
