package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/page"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// Backup writes a copy of the current database to the file dst. The copy is atomic,
// and other readers and writers continue meanwhile. The file is complete: it has no
// log beside it and contains no paths of this machine. An existing file is
// replaced.
func (d *DB) Backup(ctx context.Context, dst string) error {
	if err := d.copy(ctx, dst); err != nil {
		return fmt.Errorf("back up to %s: %w", dst, d.explain(err))
	}
	return nil
}

// copy writes a copy of the database including the content of its log.
func (d *DB) copy(ctx context.Context, dst string) error {
	c, err := d.openReader()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.script(ctx, "PRAGMA query_only = OFF; PRAGMA trusted_schema = ON"); err != nil { // the new file is written
		return err
	}
	return copyTo(ctx, c, dst)
}

// Summary describes the content of a database.
type Summary struct {
	Version     int64 // schema version
	Sessions    int64
	Entries     int64
	Runs        int64
	Waiting     int64 // waiting messages
	Undelivered int64 // outbox rows that are not final
}

// Verify reads the whole database in the file path without changing it. The
// database need not be open. If the file is damaged, the error is a
// *[DamagedError].
func Verify(ctx context.Context, path string) (Summary, error) {
	var s Summary
	if _, err := os.Stat(path); err != nil {
		return s, err
	}
	if l, err := page.ReadLog(path); err != nil || l.Missing > 0 || l.After > 0 {
		return s, cmp.Or(err, error(&DamagedError{Path: path, Err: errors.New("its log is damaged")}))
	}
	d := &DB{opts: Options{Path: path}}
	c, err := d.openReader()
	if err != nil {
		return s, d.explain(err)
	}
	defer c.Close()
	if err := integrity(ctx, c, path); err != nil {
		return s, d.explain(err)
	}
	if s.Version, err = c.Number("PRAGMA user_version"); err != nil {
		return s, d.explain(err)
	}
	steps, err := schema()
	if err != nil {
		return s, err
	}
	switch {
	case s.Version == 0:
		return s, &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf("%s is not a chela database", path)}
	case s.Version > int64(len(steps)):
		return s, newerError(path, s.Version, int64(len(steps)))
	}
	if err := s.count(c); err != nil {
		return s, d.explain(err)
	}
	return s, relations(c, path)
}

func (s *Summary) count(c *conn) error {
	_, err := c.One(func(r *table.Row) error {
		s.Sessions, s.Entries, s.Runs, s.Waiting, s.Undelivered = r.Int(), r.Int(), r.Int(), r.Int(), r.Int()
		return nil
	}, `SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM entry), (SELECT count(*) FROM run),
(SELECT count(*) FROM item WHERE state = 'waiting' AND kind = 'message'), (SELECT count(*) FROM outbox WHERE state IN ('draft', 'pending', 'attempted'))`)
	return err
}

// relations checks the constraints between tables that SQLite does not enforce.
func relations(c *conn, path string) error {
	for _, r := range [...]struct{ what, sql string }{
		{"entries without a transcript",
			"SELECT count(*) FROM (SELECT DISTINCT pos >> 32 AS n FROM entry) WHERE n NOT IN (SELECT n FROM transcript)"},
		{"transcripts with a gap",
			"SELECT count(*) FROM (SELECT pos >> 32 AS n FROM entry GROUP BY n HAVING count(*) <> max(pos) - (n << 32))"},
		{"transcripts without their end", "SELECT count(*) FROM session s WHERE entries > " + entriesOf},
	} {
		n, err := c.Number(r.sql)
		if err != nil {
			return err
		}
		if n > 0 {
			return &DamagedError{Path: path, Err: fmt.Errorf("%d %s", n, r.what)}
		}
	}
	return nil
}

// entriesOf counts the entries in the transcript of a session s.
const entriesOf = `(SELECT count(*) FROM transcript t, entry e WHERE t.id = s.id AND e.pos > t.n << 32 AND e.pos < (t.n + 1) << 32)`

// Restore replaces the database dst, which must not be open, by the backup src. The
// old database is renamed; its new path, which contains the time, is returned, or ""
// if there was none.
func Restore(ctx context.Context, src, dst string) (old string, err error) {
	if _, err := Verify(ctx, src); err != nil {
		return "", fmt.Errorf("restore from %s: %w", src, err)
	}
	temp := dst + ".part"
	defer os.Remove(temp)
	d := &DB{opts: Options{Path: src}}
	if err := d.copy(ctx, temp); err != nil {
		return "", fmt.Errorf("restore from %s: %w", src, err)
	}
	if old, err = renameOld(dst); err != nil {
		return "", fmt.Errorf("restore: rename the old database: %w", err)
	}
	return old, atomicfile.Rename(temp, dst)
}

// timeSuffix is the format of the time in the names of files that are kept.
const timeSuffix = "20060102T150405.000000000"

// renameOld adds a name with the current time to a database, renames its log to
// match, and returns that name, or "" if there is no database. A rename can then
// replace the database under its original name.
func renameOld(path string) (string, error) {
	_, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return "", err
	}
	old := path + ".old-" + time.Now().UTC().Format(timeSuffix)
	linked := !missing && os.Link(path, old) == nil // before the log is moved, so that the old database stays complete
	// The log must be moved too, also one without a database: SQLite would apply it to
	// the new database.
	for _, suffix := range [...]string{"-shm", "-wal"} { // -shm alone is not needed
		if err := os.Rename(path+suffix, old+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if linked {
				err = errors.Join(err, os.Remove(old))
			}
			return "", err
		}
	}
	switch {
	case missing:
		return "", nil
	case linked:
		return old, nil
	}
	return old, os.Rename(path, old) // the file system does not support links
}
