// Package foreign reads the SQLite databases of other programs, which may be running.
//
// A database is never opened where it is: opening it would change the files that SQLite
// keeps beside it. The database and its log are copied to a private folder, and the copy
// is opened.
package foreign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	lib "zombiezen.com/go/sqlite"

	"github.com/chela-ai/chela/internal/core/openclaw"
)

// Limits of a database.
const (
	maxFile  = 16 << 30 // bytes of the database, and of its log
	maxValue = 64 << 20 // bytes of a value
	maxCols  = 256      // columns of a table
)

// attempts is how often a database is copied that another program changes meanwhile.
const attempts = 20

// ErrBusy says that another program changed the database whenever it was copied.
var ErrBusy = errors.New("another program keeps changing it")

// ErrDamaged says that the file is no database, or is damaged.
var ErrDamaged = errors.New("it is damaged, or no database")

// ErrNoTable says that a database has no such table, or the table has no such column.
var ErrNoTable = errors.New("no such table or column")

// Database is a copy of a database.
type Database struct {
	dir  string
	conn *lib.Conn
}

// Tables implements openclaw.OpenTables with copies in the system's folder for temporary files.
func Tables(ctx context.Context, root *os.Root, name string) (openclaw.Tables, error) {
	d, err := Open(ctx, root, name, "")
	if errors.Is(err, ErrDamaged) {
		return nil, fmt.Errorf("%w: %w", openclaw.ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Open copies the database in a file of root to a new folder and opens the copy. temp is
// where the folder is made; "": in the system's folder for temporary files. A damaged
// database is an error.
func Open(ctx context.Context, root *os.Root, name, temp string) (_ *Database, err error) {
	dir, err := os.MkdirTemp(temp, "chela-read-")
	if err != nil {
		return nil, err
	}
	d := &Database{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	file := filepath.Join(dir, "copy.db")
	if err := copied(ctx, root, name, file); err != nil {
		return nil, err
	}
	if d.conn, err = lib.OpenConn(file, lib.OpenReadWrite); err != nil {
		return nil, err
	}
	d.conn.SetInterrupt(ctx.Done())
	d.conn.Limit(lib.LimitLength, maxValue)
	// The log becomes a part of the database.
	for _, sql := range []string{"PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON",
		"PRAGMA journal_mode = DELETE", "PRAGMA query_only = ON"} {
		if err := d.each(sql, nil, func(*lib.Stmt) bool { return true }); err != nil {
			return nil, err
		}
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	// The copy has what a person said. Where an open file can be removed, nothing of it
	// stays when the process is killed; elsewhere Close removes it.
	_ = os.RemoveAll(dir)
	return d, nil
}

// Close closes and deletes the copy.
func (d *Database) Close() error {
	var err error
	if d.conn != nil {
		err = d.conn.Close()
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// check returns an error if the database is damaged.
func (d *Database) check() error {
	damage := ""
	err := d.each("PRAGMA quick_check(1)", nil, func(s *lib.Stmt) bool { damage = s.ColumnText(0); return false })
	if err == nil && damage != "ok" {
		err = fmt.Errorf("%w: %s", ErrDamaged, strings.ReplaceAll(damage, "\n", " "))
	}
	return err
}

// Version returns the number that the program keeps in user_version.
func (d *Database) Version() (int64, error) {
	var n int64
	err := d.each("PRAGMA user_version", nil, func(s *lib.Stmt) bool { n = s.ColumnInt64(0); return false })
	return n, err
}

// Columns returns the columns of a table; none: it does not exist. Views and virtual
// tables do not count: reading them could run functions.
func (d *Database) Columns(table string) ([]string, error) {
	var names []string
	err := d.each(`SELECT i.name FROM sqlite_schema m, pragma_table_xinfo(m.name) i
WHERE m.type = 'table' AND m.name = ? AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND i.hidden = 0 ORDER BY i.cid`,
		[]any{table},
		func(s *lib.Stmt) bool { names = append(names, s.ColumnText(0)); return len(names) < maxCols })
	return names, err
}

// Rows returns the rows of a table in which the columns of where have the values, which
// are string or int64, in the order of columns. The values of a row are string, int64,
// float64, []byte or nil, by the names of their columns.
func (d *Database) Rows(table string, where map[string]any, order ...string) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		columns, err := d.Columns(table)
		if err != nil {
			yield(nil, err)
			return
		}
		sql, args, err := selection(table, columns, where, order)
		if err != nil {
			yield(nil, err)
			return
		}
		more := true
		err = d.each(sql, args, func(s *lib.Stmt) bool {
			more = yield(row(s, columns), nil)
			return more
		})
		if err != nil && more {
			yield(nil, err)
		}
	}
}

// selection returns the statement that selects rows.
func selection(table string, columns []string, where map[string]any,
	order []string) (sql string, args []any, err error) {
	if len(columns) == 0 {
		return "", nil, fmt.Errorf("%s: %w", table, ErrNoTable)
	}
	name := func(column string) string {
		if !slices.Contains(columns, column) {
			err = fmt.Errorf("%s.%s: %w", table, column, ErrNoTable)
		}
		return quote(column)
	}
	var b strings.Builder
	before := "SELECT "
	for _, c := range columns {
		b.WriteString(before + quote(c))
		before = ", "
	}
	b.WriteString(" FROM " + quote(table))
	before = " WHERE "
	for _, c := range slices.Sorted(maps.Keys(where)) {
		b.WriteString(before + name(c) + " = ?")
		args, before = append(args, where[c]), " AND "
	}
	before = " ORDER BY "
	for _, c := range order {
		b.WriteString(before + name(c))
		before = ", "
	}
	return b.String(), args, err
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// row returns the values of the current row.
func row(s *lib.Stmt, columns []string) map[string]any {
	r := make(map[string]any, len(columns))
	for i, c := range columns {
		switch s.ColumnType(i) {
		case lib.TypeInteger:
			r[c] = s.ColumnInt64(i)
		case lib.TypeFloat:
			r[c] = s.ColumnFloat(i)
		case lib.TypeText:
			r[c] = s.ColumnText(i)
		case lib.TypeBlob:
			b := make([]byte, s.ColumnLen(i))
			s.ColumnBytes(i, b)
			r[c] = b
		default:
			r[c] = nil
		}
	}
	return r
}

// each calls f for each row of a statement until it returns false.
func (d *Database) each(sql string, args []any, f func(*lib.Stmt) bool) error {
	s, _, err := d.conn.PrepareTransient(sql)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = s.Finalize() }() // returns the error of the last step again
	for i, a := range args {
		switch a := a.(type) {
		case string:
			s.BindText(i+1, a)
		case int64:
			s.BindInt64(i+1, a)
		default:
			return fmt.Errorf("argument of type %T", a)
		}
	}
	for {
		found, err := s.Step()
		if err != nil || !found || !f(s) {
			return damaged(err)
		}
	}
}

// damaged returns an error that wraps ErrDamaged if the file is the cause of err.
func damaged(err error) error {
	switch lib.ErrCode(err).ToPrimary() {
	case lib.ResultNotADB, lib.ResultCorrupt, lib.ResultFormat:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// Suffixes of the files of a database.
const log, journal = "-wal", "-journal"

// copied copies a database and its log as they were at one moment.
func copied(ctx context.Context, root *os.Root, name, to string) error {
	for range attempts {
		before, err := stamp(root, name)
		if err != nil {
			return err
		}
		for _, suffix := range []string{log, journal, ""} {
			if err := copyFile(ctx, root, name+suffix, to+suffix); err != nil &&
				(suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
		after, err := stamp(root, name)
		if err != nil {
			return err
		}
		if before == after {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ErrBusy
}

// stamp returns what changes when another program writes to a database: the sizes and
// times of its files, the change counter, and the salt of the log.
func stamp(root *os.Root, name string) (string, error) {
	var b strings.Builder
	for _, suffix := range []string{"", log, journal} {
		info, err := root.Lstat(name + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue
		}
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s: not a regular file", name+suffix)
		}
		if info.Size() > maxFile {
			return "", fmt.Errorf("%s: %d bytes are too many", name+suffix, info.Size())
		}
		head, err := headOf(root, name+suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(&b, "%s %d %d %x\n", suffix, info.Size(), info.ModTime().UnixNano(), head)
	}
	return b.String(), nil
}

// headOf returns the beginning of a file.
func headOf(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 128))
	return bytes.TrimRight(head, "\x00"), err
}

// copyFile copies a file, or removes an earlier copy of one that does not exist.
func copyFile(ctx context.Context, root *os.Root, name, to string) error {
	in, err := root.Open(name)
	if err != nil {
		return errors.Join(err, removed(to))
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, reader{ctx, in})
	return errors.Join(err, out.Close())
}

func removed(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// reader is a Reader that ends with a context.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
