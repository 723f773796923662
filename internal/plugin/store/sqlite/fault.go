package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/db"
)

// code returns SQLite's extended result code in err's chain, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*db.Error](err); ok {
		return e.Code
	}
	return 0
}

// fatal reports whether SQLite may have ended the transaction because of err.
func fatal(err error) bool {
	switch code(err) & 0xff {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_NOMEM, lib.SQLITE_BUSY, lib.SQLITE_INTERRUPT,
		lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// damaged reports whether err says that the database file is damaged.
func damaged(err error) bool {
	switch code(err) & 0xff {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return true
	}
	return errors.As(err, new(*DamagedError))
}

// unsynced reports whether the content of the disk is unknown after err. The log
// must be repaired before the next commit.
func unsynced(err error) bool { return code(err)&0xff == lib.SQLITE_IOERR }

// explain converts an error of SQLite to an error for callers.
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

// DamagedError reports a damaged database file.
type DamagedError struct {
	Path string
	Err  error // the error of SQLite
}

// Error returns one sentence for users.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("database %s is damaged: %v", e.Path, e.Err)
}

// Unwrap returns a *[chela.Error] with a hint, which wraps the cause.
func (e *DamagedError) Unwrap() error {
	return &chela.Error{
		Code: chela.CodeUnavailable, Message: "damaged",
		Hint: "chela backup salvage", Err: e.Err,
	}
}

// newerError reports that a newer program wrote the file.
func newerError(path string, have, want int64) error {
	return &chela.Error{
		Code:    chela.CodeUnavailable,
		Message: fmt.Sprintf("database %s has version %d, this program knows up to %d", path, have, want),
		Hint:    "use the newer chela that wrote it, or restore " + strings.TrimSpace(fmt.Sprintf("%s.bak-v%d", path, want)),
	}
}
