package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	lib "zombiezen.com/go/sqlite"

	"github.com/chela-ai/chela/internal/core/chela"
)

// fatal reports whether SQLite may have ended the transaction because of err.
func fatal(err error) bool {
	switch lib.ErrCode(err).ToPrimary() {
	case lib.ResultFull, lib.ResultIOErr, lib.ResultNoMem, lib.ResultBusy, lib.ResultInterrupt,
		lib.ResultCorrupt, lib.ResultNotADB, lib.ResultCantOpen, lib.ResultReadOnly, lib.ResultProtocol:
		return true
	}
	return false
}

// damaged reports whether err says that the database file is damaged.
func damaged(err error) bool {
	code := lib.ErrCode(err)
	switch code.ToPrimary() {
	case lib.ResultCorrupt, lib.ResultNotADB:
		return true
	}
	return code == lib.ResultIOErrShortRead || errors.As(err, new(*DamagedError))
}

// unsynced reports whether the content of the disk is unknown after err. The log
// must be repaired before the next commit.
func unsynced(err error) bool { return lib.ErrCode(err).ToPrimary() == lib.ResultIOErr }

// explain converts an error of SQLite to an error for callers.
func (d *DB) explain(err error) error {
	switch c := lib.ErrCode(err); {
	case err == nil:
		return nil
	case c == lib.ResultFull, c == lib.ResultIOErrSHMSize, errors.Is(err, syscall.ENOSPC):
		return &chela.Error{
			Code: chela.CodeFull, Hint: "free some room on the disk of " + d.dir(),
			Err: fmt.Errorf("%w: %w", chela.ErrFull, err),
		}
	case damaged(err):
		found, ok := errors.AsType[*DamagedError](err)
		if !ok {
			found = &DamagedError{Path: d.opts.Path, Err: err}
		}
		if d.damage.CompareAndSwap(nil, found) && d.log != nil {
			d.log.Error("the database is damaged: nothing is stored from now on", "err", err, "hint", chela.HintOf(found))
		}
		return found
	case c == lib.ResultError: // also of an error that is not SQLite's
		return err
	case fatal(err):
		return &chela.Error{Code: chela.CodeUnavailable, Err: fmt.Errorf("%w: %w", chela.ErrStorage, err)}
	}
	return fmt.Errorf("storage: %w", err)
}

// Damage returns the first damage that was found since the database was opened. From
// then on nothing is stored.
func (d *DB) Damage() error {
	if e := d.damage.Load(); e != nil {
		return e
	}
	return nil
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
		Hint: "chela backup salvage", Err: fmt.Errorf("%w: %w", chela.ErrStorage, e.Err),
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
