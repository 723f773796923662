package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/chela"
)

// Backup writes the database as it is now to the file dst, whole or not at
// all, while others go on reading and writing. The file stands for itself: it
// has no log beside it and names no place of this machine. A file that is
// there is replaced.
func (d *DB) Backup(ctx context.Context, dst string) error {
	c, err := d.openReader()
	if err != nil {
		return d.explain(err)
	}
	defer c.Close()
	if err := c.script(ctx, "PRAGMA query_only = OFF"); err != nil { // it counts the new file in
		return d.explain(err)
	}
	if err := copyTo(ctx, c, dst); err != nil {
		return fmt.Errorf("back up to %s: %w", dst, d.explain(err))
	}
	return nil
}

// Summary is what is in a database.
type Summary struct {
	Version  int64 // of the schema
	Sessions int64
	Entries  int64
	Runs     int64
	Waiting  int64 // items of the queue that wait
	Owed     int64 // rows of the outbox that are not final
}

// Verify reads the whole database in the file path, which nobody need have
// open, and changes nothing. A file that is not whole gives a *[DamagedError].
func Verify(ctx context.Context, path string) (Summary, error) {
	var s Summary
	if _, err := os.Stat(path); err != nil {
		return s, fmt.Errorf("verify: %w", err)
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
	if s.Version, err = c.number("PRAGMA user_version"); err != nil {
		return s, d.explain(err)
	}
	steps, err := schema()
	if err != nil {
		return s, err
	}
	switch {
	case s.Version == 0:
		return s, &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf("%s is not a database of chela", path)}
	case s.Version > int64(len(steps)):
		return s, newerError(path, s.Version, int64(len(steps)))
	}
	if err := s.count(c); err != nil {
		return s, d.explain(err)
	}
	return s, relations(c, path)
}

func (s *Summary) count(c *conn) error {
	_, err := c.one(func(r *row) error {
		s.Sessions, s.Entries, s.Runs, s.Waiting, s.Owed = r.int(), r.int(), r.int(), r.int(), r.int()
		return nil
	}, `SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM entry), (SELECT count(*) FROM run),
(SELECT count(*) FROM item WHERE state = 'waiting'), (SELECT count(*) FROM outbox WHERE state IN ('draft', 'pending', 'attempted'))`)
	return err
}

// relations checks what holds between tables, beyond what SQLite knows.
func relations(c *conn, path string) error {
	for _, r := range [...]struct{ what, sql string }{
		{"entries without a transcript", "SELECT count(*) FROM (SELECT DISTINCT pos >> 32 AS n FROM entry) WHERE n NOT IN (SELECT n FROM transcript)"},
		{"transcripts with a gap", "SELECT count(*) FROM (SELECT pos >> 32 AS n FROM entry GROUP BY n HAVING count(*) <> max(pos) - (n << 32))"},
		{"transcripts without their end", "SELECT count(*) FROM session s WHERE entries > " + entriesOf},
	} {
		n, err := c.number(r.sql)
		if err != nil {
			return err
		}
		if n > 0 {
			return &DamagedError{Path: path, Err: fmt.Errorf("%d %s", n, r.what)}
		}
	}
	return nil
}

// entriesOf is how many entries the transcript of a session s has.
const entriesOf = `(SELECT count(*) FROM transcript t, entry e WHERE t.id = s.id AND e.pos > t.n << 32 AND e.pos < (t.n + 1) << 32)`

// RestoreOptions say what a restore may do.
type RestoreOptions struct {
	// Force replaces a database that holds something. It is kept beside, under
	// a name that tells when.
	Force bool
}

// Restore puts the backup src in the place of the database dst, which nobody
// has open, and returns where the old one was kept ("": there was none).
func Restore(ctx context.Context, src, dst string, o RestoreOptions) (kept string, err error) {
	if _, err := Verify(ctx, src); err != nil {
		return "", fmt.Errorf("restore from %s: %w", src, err)
	}
	if !o.Force && holdsSomething(ctx, dst) {
		return "", &chela.Error{
			Code: chela.CodeConflict, Message: fmt.Sprintf("restore: %s holds something", dst), Hint: "chela backup restore --force",
		}
	}
	temp := dst + ".part"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	defer os.Remove(temp)
	if err := takeOver(ctx, src, temp); err != nil {
		return "", fmt.Errorf("restore from %s: %w", src, err)
	}
	if kept, err = aside(dst); err != nil {
		return "", fmt.Errorf("restore: keep the old database: %w", err)
	}
	return kept, atomicfile.Settle(temp, dst)
}

// takeOver copies a database with what its log holds.
func takeOver(ctx context.Context, src, dst string) error {
	d := &DB{opts: Options{Path: src}}
	c, err := d.openReader()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.script(ctx, "PRAGMA query_only = OFF"); err != nil {
		return err
	}
	return copyTo(ctx, c, dst)
}

// holdsSomething reports whether there is more than an empty database: also
// when it cannot be read.
func holdsSomething(ctx context.Context, path string) bool {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && fi.Size() == 0 {
		return false
	}
	s, err := Verify(ctx, path)
	return err != nil || s != Summary{Version: s.Version}
}

// aside gives a database with its log another name too, one of this moment,
// and returns it; "" when there is none. The database can then be replaced
// under its first name in one step.
func aside(path string) (string, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	kept := path + ".old-" + time.Now().UTC().Format("20060102T150405.000000000")
	// The log must not be found beside another database: it would be taken
	// for that one's.
	for _, suffix := range [...]string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if os.Link(path, kept) == nil {
		return kept, nil
	}
	return kept, os.Rename(path, kept) // a file system without links
}
