package table

import (
	"fmt"
	"math"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
)

// Conn is a connection to a database. It is used by one goroutine at a time.
type Conn interface {
	// Run runs a statement, calls f for each row of its result, unless f is nil, and
	// returns how many rows it changed. f must not use the connection. The statement is
	// in the form that the package comment describes. An argument is nil, a string, int,
	// int64, bool, time.Time or [Optional].
	Run(f func(*Row) error, sql string, args []any) (changed int, err error)
}

// Tables gives access to the tables over a connection.
type Tables struct {
	Conn
	Memo *session.Memo // shared by all connections of a database
}

// Exec runs a statement and returns how many rows it changed.
func (c *Tables) Exec(sql string, args ...any) (int, error) { return c.Run(nil, sql, args) }

// Query calls f for each row of a statement. f must not use c.
func (c *Tables) Query(f func(*Row) error, sql string, args ...any) error {
	_, err := c.Run(f, sql, args)
	return err
}

// One is Query for at most one row. It reports whether there was a row.
func (c *Tables) One(f func(*Row) error, sql string, args ...any) (bool, error) {
	found := false
	err := c.Query(func(r *Row) error {
		found = true
		return f(r)
	}, sql, args...)
	return found, err
}

// Number returns the only value of a query.
func (c *Tables) Number(sql string, args ...any) (int64, error) {
	var n int64
	_, err := c.One(func(r *Row) error { n = r.Int(); return nil }, sql, args...)
	return n, err
}

// Text returns the only value of a query.
func (c *Tables) Text(sql string, args ...any) (string, error) {
	var s string
	_, err := c.One(func(r *Row) error { s = r.Text(); return nil }, sql, args...)
	return s, err
}

// Collect returns what scan makes of each row of a query.
func Collect[T any](c *Tables, scan func(*Row) (T, error), sql string, args ...any) ([]T, error) {
	var list []T
	err := c.Query(func(r *Row) error {
		v, err := scan(r)
		list = append(list, v)
		return err
	}, sql, args...)
	return list, err
}

// ScanText is the function of [Collect] for a column of texts.
func ScanText[T ~string](r *Row) (T, error) { return T(r.Text()), nil }

// ScanJSON is the function of [Collect] for a column of JSON.
func ScanJSON[T any](r *Row) (v T, err error) {
	err = decode(r.Text(), &v)
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

// noLimit is the argument of LIMIT for all rows.
const noLimit = math.MaxInt32

// Optional is a text that is stored as NULL if it is empty.
type Optional string

// str and opt convert named string types to arguments.
func str[T ~string](v T) string   { return string(v) }
func opt[T ~string](v T) Optional { return Optional(v) }

// UnixNano returns the stored form of a time: its nanoseconds since 1970, 0 for none.
func UnixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Kind is the kind of a value.
type Kind byte

// The kinds of values.
const (
	Null Kind = iota
	Integer
	String
	Other // of no use for the tables
)

// Values are the values of a row, by their column.
type Values interface {
	Kind(i int) Kind
	Integer(i int) int64
	String(i int) string
}

// Row is a row of a result. Its values are read from left to right.
type Row struct {
	v   Values
	i   int
	err error // the first error
}

// Read lets f read a row with these values, and returns its error, or that of a value of
// another kind than f wants.
func (r *Row) Read(v Values, f func(*Row) error) error {
	r.v, r.i = v, 0
	if err := f(r); err != nil {
		return err
	}
	return r.err
}

// Text returns the next value; "" for NULL.
func (r *Row) Text() string {
	if r.next(String) != String {
		return ""
	}
	return r.v.String(r.i - 1)
}

// Int returns the next value; 0 for NULL.
func (r *Row) Int() int64 {
	if r.next(Integer) != Integer {
		return 0
	}
	return r.v.Integer(r.i - 1)
}

// next advances to the next value and returns its kind, which is an error if it is
// neither want nor NULL.
func (r *Row) next(want Kind) Kind {
	have := r.v.Kind(r.i)
	r.i++
	if have != want && have != Null && r.err == nil {
		r.err = fmt.Errorf("column %d: have kind %d, want %d", r.i, have, want)
	}
	return have
}

// Skip skips n values.
func (r *Row) Skip(n int) { r.i += n }

// Null reports whether the next value is NULL, without reading it.
func (r *Row) Null() bool { return r.v.Kind(r.i) == Null }

// Bool returns whether the next value is not 0.
func (r *Row) Bool() bool { return r.Int() != 0 }

// Time returns the time that the next value stores, in UTC.
func (r *Row) Time() time.Time {
	n := r.Int()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
