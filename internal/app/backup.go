package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/cli"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/media"
	"github.com/chela-ai/chela/internal/statedir"
	"github.com/chela-ai/chela/internal/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

const databaseName = "chela.db"

// maintenance is the cli.Maintenance of the database in the state directory.
type maintenance struct{}

// Backup has the process that owns the state directory write the copy, or does
// it itself when there is none: nobody else opens the database.
func (maintenance) Backup(ctx context.Context, s cli.Start, dst string) error {
	lock, err := statedir.Own(s.State)
	if errors.Is(err, statedir.ErrOwned) {
		return askBackup(ctx, s, dst)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	db, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(s.State, databaseName), Log: s.Log})
	if err != nil {
		return damaged(err)
	}
	return errors.Join(withMedia(s.State, dst, func() error { return db.Backup(ctx, dst) }), db.Close())
}

// askBackup asks the owner of the state directory for a copy.
func askBackup(ctx context.Context, s cli.Start, dst string) error {
	a, err := attach(ctx, s.State)
	if err != nil {
		return fmt.Errorf("reach the running process: %w", err)
	}
	c, err := client.Dial(ctx, client.Options{Dial: a.Dial, Name: "chela", Version: Version, Mode: wire.ModeCLI, Once: true})
	if err != nil {
		return fmt.Errorf("reach the running process: %w", err)
	}
	defer c.Close()
	return c.Call(ctx, wire.MethodBackupCreate, wire.BackupCreate{Path: dst}, nil)
}

// Verify says what a copy holds.
func (maintenance) Verify(ctx context.Context, file string) (string, error) {
	s, err := sqlite.Verify(ctx, file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("whole; %s, %s, %s, %s waiting, %s to be delivered", figure.Many(s.Sessions, "session"), figure.Many(s.Entries, "entry"),
		figure.Many(s.Runs, "run"), figure.Many(s.Waiting, "message"), figure.Many(s.Owed, "part")), nil
}

// Restore puts a copy in the place of the database.
func (maintenance) Restore(ctx context.Context, s cli.Start, src string) (string, error) {
	lock, err := ownAlone(s.State)
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	if _, err := media.Copy(besides(src), filepath.Join(s.State, media.Dir)); err != nil {
		return "", err
	}
	return sqlite.Restore(ctx, src, filepath.Join(s.State, databaseName), sqlite.RestoreOptions{Force: true})
}

// Salvage mends a damaged database.
func (maintenance) Salvage(ctx context.Context, s cli.Start) ([]string, error) {
	lock, err := ownAlone(s.State)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	r, err := sqlite.Recover(ctx, filepath.Join(s.State, databaseName))
	if err != nil {
		return nil, err
	}
	rows := 0
	for _, n := range r.Rows {
		rows += n
	}
	report := []string{fmt.Sprintf("saved %d rows; %d of %d pages could not be read whole", rows, r.Bad, r.Pages)}
	for _, key := range r.Damaged {
		report = append(report, fmt.Sprintf("session %s is not complete", key))
	}
	for _, id := range r.Loose {
		report = append(report, "transcript "+id+" belongs to a session that is lost")
	}
	return append(report, "the damaged file is kept as "+r.Kept), nil
}

// ownAlone takes the lock of a state directory that nobody may use meanwhile.
func ownAlone(dir string) (interface{ Unlock() error }, error) {
	lock, err := statedir.Own(dir)
	if errors.Is(err, statedir.ErrOwned) {
		return nil, &chela.Error{
			Code: chela.CodeConflict, Message: "a running process uses the database", Hint: "end it, and try again", Err: err,
		}
	}
	return lock, err
}

// damaged adds to the error of a damaged database what can be typed.
func damaged(err error) error {
	if d, ok := errors.AsType[*sqlite.DamagedError](err); ok {
		return &chela.Error{Code: chela.CodeInternal, Message: "the database is damaged", Hint: "chela backup salvage", Err: d}
	}
	return err
}
