package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/store/sqlite/db"
)

// code returns SQLite's extended result code in err's chain, 0 if none.
func code(err error) int {
	if e, ok := errors.AsType[*db.Error](err); ok {
		return e.Code
	}
	return 0
}

// fatal reports whether SQLite may have ended the transaction with err.
func fatal(err error) bool {
	switch code(err) & 0xff {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_BUSY, lib.SQLITE_INTERRUPT,
		lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// damaged reports whether err says that the file is not what was written.
func damaged(err error) bool {
	switch code(err) & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return true
	}
	return errors.As(err, new(*DamagedError))
}

// unsynced reports whether err leaves open what is on disk: nothing is told
// to be so until the file was settled.
func unsynced(err error) bool { return code(err)&0xff == lib.SQLITE_IOERR }

// explain gives an error of SQLite its meaning for callers.
func (d *DB) explain(err error) error {
	switch c := code(err); {
	case err == nil:
		return nil
	case c&0xff == lib.SQLITE_FULL, c == lib.SQLITE_IOERR_SHMSIZE, errors.Is(err, syscall.ENOSPC):
		return &chela.Error{
			Code: chela.CodeFull, Hint: "free some room on the disk of " + d.dir(),
			Err: fmt.Errorf("%w: %w", chela.ErrFull, err),
		}
	case damaged(err):
		return &DamagedError{Path: d.opts.Path, Err: err}
	case c == 0:
		return err
	case fatal(err):
		return &chela.Error{Code: chela.CodeUnavailable, Message: "storage", Err: err}
	}
	return fmt.Errorf("storage: %w", err)
}

// DamagedError says that a database file is not whole.
type DamagedError struct {
	Path string
	Err  error // what SQLite said
}

// Error returns one sentence for people.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("database %s is damaged: %v", e.Path, e.Err)
}

// Unwrap returns a *[chela.Error] with a hint, and the cause in its chain.
func (e *DamagedError) Unwrap() error {
	return &chela.Error{
		Code: chela.CodeUnavailable, Message: "damaged",
		Hint: "chela backup salvage", Err: e.Err,
	}
}

// newerError says that a newer program wrote the file.
func newerError(path string, have, want int64) error {
	return &chela.Error{
		Code:    chela.CodeUnavailable,
		Message: fmt.Sprintf("database %s has version %d, this program knows up to %d", path, have, want),
		Hint:    "use the newer chela that wrote it, or restore " + strings.TrimSpace(fmt.Sprintf("%s.bak-v%d", path, want)),
	}
}
