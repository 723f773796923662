package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// repair makes the files consistent again after a failed write or sync.
//
// After a failed fsync the next one may succeed although the data is not on disk,
// because the system drops the pages that it could not write. Earlier ordered
// commits, which that fsync should have made durable, would then be missing while
// later ones are there. Therefore repair reads the log, rewrites it and syncs it.
// An empty commit then overwrites the frames of the failed commit, which a recovery
// could otherwise apply.
func (w *writer) repair() error {
	// The log must be synced before the connection is closed: the last connection
	// to close checkpoints the log into the database.
	if err := w.d.rewrite(w.d.opts.Path + "-wal"); err != nil {
		return fmt.Errorf("rewrite the log: %w", err)
	}
	if w.c != nil {
		w.c.Close()
		w.c = nil
	}
	c, err := w.d.openWriter()
	if err != nil {
		return err
	}
	w.c, w.relaxed = c, false
	if err := w.commitEmpty(); err != nil {
		return w.rollback(err)
	}
	w.needsRepair = false
	w.d.log.Info("storage works again")
	return nil
}

// commitEmpty makes a synced commit that changes only a counter.
func (w *writer) commitEmpty() error {
	if _, err := w.c.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if _, err := w.c.Exec(`INSERT INTO setting (name, value) VALUES ('storage.faults', '1')
ON CONFLICT DO UPDATE SET value = value + 1`); err != nil {
		return err
	}
	_, err := w.c.Exec("COMMIT")
	return err
}

// rewriteFile rewrites the content of a file in place and syncs it.
func rewriteFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for off := int64(0); ; {
		n, err := f.ReadAt(buf, off)
		if n > 0 {
			if _, err := f.WriteAt(buf[:n], off); err != nil {
				return err
			}
			off += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return f.Sync()
		}
		if err != nil {
			return err
		}
	}
}
