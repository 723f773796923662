package sqlite

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// mend makes the files trustworthy after a write or a sync failed.
//
// A sync that failed once may succeed the next time although what it was to
// write is not on the disk: the system forgets the pages it could not write.
// The commits before, which only the next sync would have made durable, would
// then be missing under those that follow. So the log is written again as it
// is read, and synced. After that an empty commit of our own takes the place
// of the one that failed, whose frames could otherwise come to life in a
// recovery.
func (w *writer) mend() error {
	// Before the connection is closed: the last one to close copies the log
	// into the database, and a log that is not on disk must not be copied.
	if err := w.d.rewrite(w.d.opts.Path + "-wal"); err != nil {
		return fmt.Errorf("rewrite the log: %w", err)
	}
	if w.c != nil {
		w.release()
		w.c.Close()
		w.c = nil
	}
	c, err := w.d.openWriter()
	if err != nil {
		return err
	}
	w.c = c
	if err := w.cover(); err != nil {
		return w.back(err)
	}
	w.suspect = false
	w.d.log.Info("storage works again")
	return nil
}

// cover makes a synced commit that changes nothing anybody reads.
func (w *writer) cover() error {
	w.d.wal.Relax(false)
	if _, err := w.c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if _, err := w.c.exec(`INSERT INTO setting (name, value) VALUES ('storage.faults', '1')
ON CONFLICT DO UPDATE SET value = value + 1`); err != nil {
		return err
	}
	_, err := w.c.exec("COMMIT")
	return err
}

// rewriteFile writes a file again in place, with what it holds, and syncs it.
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
