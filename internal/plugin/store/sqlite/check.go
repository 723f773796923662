package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/plugin/store/sqlite/page"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// Check reads the whole database and returns a *[DamagedError] if it is damaged. It
// uses its own connection and blocks no other; ctx cancels it.
func (d *DB) Check(ctx context.Context) error {
	c, err := d.openReader()
	if err != nil {
		return d.explain(err)
	}
	defer c.Close()
	return d.explain(integrity(ctx, c, d.opts.Path))
}

// checkLog returns a *[DamagedError] if confirmed commits are missing in the log of a
// database that is not open. SQLite would ignore the log from the first damaged frame
// on, without an error. If a power failure may be the cause, the commits were perhaps
// never confirmed: then the files are copied, and the name of the copy is returned.
func checkLog(path string) (copied string, err error) {
	l, err := page.ReadLog(path)
	if errors.Is(err, fs.ErrNotExist) { // a new database
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if l.Missing > 0 {
		return "", &DamagedError{Path: path,
			Err: fmt.Errorf("its log is damaged or missing: %d of its %d pages cannot be used; the last one was written %s",
				l.Missing, l.Frames+l.Missing, changed(path))}
	}
	if l.After == 0 {
		return "", nil
	}
	copied = path + ".damaged-" + time.Now().UTC().Format(timeSuffix)
	for _, suffix := range [...]string{"", "-wal"} {
		if err := copyFile(path+suffix, copied+suffix); err != nil {
			return "", fmt.Errorf("keep the damaged log: %w", err)
		}
	}
	return copied, nil
}

// changed returns when a database or its log was changed last.
func changed(path string) string {
	info, err := os.Stat(path + "-wal")
	if err != nil {
		if info, err = os.Stat(path); err != nil {
			return "at an unknown time"
		}
	}
	return "at " + info.ModTime().Format(time.DateTime)
}

// copyFile copies a file and syncs the copy.
func copyFile(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// newest returns the time of the newest entry, for the message about what is lost.
func (d *DB) newest(c *conn) string {
	at, err := table.Collect(c.Tables, func(r *table.Row) (time.Time, error) { return r.Time(), nil },
		"SELECT max(updated) FROM session")
	if err != nil || len(at) == 0 || at[0].IsZero() {
		return "the beginning"
	}
	return at[0].Local().Format(time.DateTime)
}

// integrity runs SQLite's integrity check, whose first findings the error contains, and
// checks the checksums of all rows.
func integrity(ctx context.Context, c *conn, path string) error {
	var found []string
	defer c.interrupt(ctx)()
	err := c.Query(func(r *table.Row) error { found = append(found, r.Text()); return nil }, "PRAGMA integrity_check(10)")
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	if len(found) == 1 && found[0] == "ok" {
		err := checkRows(c)
		return cmp.Or(ctx.Err(), err)
	}
	return &DamagedError{Path: path, Err: errors.New(strings.Join(found, "; "))}
}
