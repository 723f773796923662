// Package backup copies the database of a state directory and brings copies back.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/inventory"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/wire"
)

// Database implements cli.Maintenance for the database of a state directory.
type Database struct {
	Store standard.Store // of copies
	// StoreOf returns the store of an installation.
	StoreOf func(s cli.Start) (standard.Store, error)
	Version string // of this program
	// Attach connects to the engine of the process that owns the state directory.
	Attach func(ctx context.Context, s cli.Start) (cli.Engine, error)
}

var _ cli.Maintenance = Database{}

// store returns the store of an installation, and the path of its database. A database that
// is not in the state directory is copied by other programs.
func (d Database) store(s cli.Start) (st standard.Store, path string, err error) {
	if st, err = d.StoreOf(s); err != nil {
		return st, "", err
	}
	if st.File == "" {
		return st, "", &chela.Error{Code: chela.CodeInvalid,
			Message: "the database is not in the state directory: its own programs copy and restore it", Hint: st.Hint}
	}
	return st, filepath.Join(s.State, st.File), nil
}

// Private returns an error if a copy in file could be read by the tools of an assistant,
// which may then tell one person what another one wrote: if it would be in a workspace.
func Private(file, state, home string, opts *settings.Settings) error {
	file, state = pathpolicy.Real(file), pathpolicy.Real(state)
	for _, id := range opts.Roster() {
		dir := pathpolicy.Real(opts.Workspace(id, state, home))
		protected := pathpolicy.Inside(state, dir) && pathpolicy.Inside(file, state) // tools do not use the state directory
		if pathpolicy.Inside(file, dir) && !protected {
			return &chela.Error{
				Code: chela.CodeInvalid,
				Message: fmt.Sprintf("%s is in the workspace of the agent %s, whose tools could read all conversations there", file,
					id),
				Hint: "chela backup create, which writes it to " + filepath.Join(state, "backups"),
			}
		}
	}
	return nil
}

// private is [Private] with the configuration of an installation.
func private(s cli.Start, file string) error {
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		return err
	}
	opts, err := settings.Read(tree)
	if err != nil {
		return err
	}
	return Private(file, s.State, settings.Environ(tree)("HOME"), &opts)
}

// Backup lets the process that owns the state directory write the copy. It opens
// the database itself only when there is no such process.
func (d Database) Backup(ctx context.Context, s cli.Start, dst string) error {
	st, path, err := d.store(s)
	if err != nil {
		return err
	}
	lock, err := statedir.OwnIdle(ctx, s.State)
	if errors.Is(err, statedir.ErrOwned) {
		return d.requestBackup(ctx, s, dst)
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if err := private(s, dst); err != nil {
		return err
	}
	db, err := st.Open(ctx, path, standard.StoreOptions{Log: s.Log, Used: statedir.Used(s.State)})
	if err != nil {
		return err
	}
	b, ok := db.(standard.Backuper)
	if !ok {
		return errors.Join(unsupported("copied"), db.Close())
	}
	return errors.Join(WithMedia(s.State, dst, func() error { return b.Backup(ctx, dst) }), db.Close())
}

// requestBackup asks the owner of the state directory for a copy.
func (d Database) requestBackup(ctx context.Context, s cli.Start, dst string) error {
	e, err := d.Attach(ctx, s)
	if err != nil {
		return fmt.Errorf("connect to the running process: %w", err)
	}
	c, err := client.Dial(ctx, client.Options{
		Dial:    e.Dial,
		Name:    "chela",
		Version: d.Version,
		Mode:    wire.ModeCLI,
		Once:    true,
	})
	if err != nil {
		return fmt.Errorf("connect to the running process: %w", err)
	}
	defer c.Close()
	return c.Call(ctx, wire.MethodBackupCreate, wire.BackupCreate{Path: dst}, nil)
}

// Counts returns how much a database contains that no process uses; "": one does, or it is
// not in the state directory.
func (d Database) Counts(ctx context.Context, s cli.Start) (string, error) {
	st, path, err := d.store(s)
	if err != nil || d.Store.Verify == nil {
		return "", nil //nolint:nilerr // it is counted by others
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	lock, err := statedir.OwnIdle(ctx, s.State)
	if errors.Is(err, statedir.ErrOwned) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer lock.Unlock()
	db, err := st.Open(ctx, path, standard.StoreOptions{Log: s.Log, Used: statedir.Used(s.State)})
	if err != nil {
		return "", err
	}
	b, ok := db.(standard.Backuper)
	if !ok {
		return "", db.Close()
	}
	temp, err := os.MkdirTemp("", inventory.Temporary)
	if err != nil {
		return "", errors.Join(err, db.Close())
	}
	defer os.RemoveAll(temp)
	file := filepath.Join(temp, "database")
	if err := errors.Join(b.Backup(ctx, file), db.Close()); err != nil {
		return "", err
	}
	return d.Store.Verify(ctx, file)
}

// Verify returns what a copy contains.
func (d Database) Verify(ctx context.Context, file string) (string, error) {
	if d.Store.Verify == nil {
		return "", unsupported("verified")
	}
	return d.Store.Verify(ctx, file)
}

// Restore replaces the database with a copy.
func (d Database) Restore(ctx context.Context, s cli.Start, src string) (string, error) {
	st, path, err := d.store(s)
	if err != nil {
		return "", err
	}
	if st.Restore == nil {
		return "", unsupported("restored")
	}
	lock, err := ownExclusively(ctx, s.State)
	if err != nil {
		return "", err
	}
	defer lock.Unlock()
	if _, err := media.Copy(mediaOf(src), filepath.Join(s.State, media.Dir)); err != nil {
		return "", err
	}
	return st.Restore(ctx, src, path)
}

// Salvage repairs a damaged database.
func (d Database) Salvage(ctx context.Context, s cli.Start) ([]string, error) {
	st, path, err := d.store(s)
	if err != nil {
		return nil, err
	}
	if st.Recover == nil {
		return nil, unsupported("repaired")
	}
	lock, err := ownExclusively(ctx, s.State)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	return st.Recover(ctx, path)
}

func unsupported(what string) error {
	return chela.Errorf(chela.CodeInvalid, "this kind of database cannot be %s by chela", what)
}

// ownExclusively takes the lock of a state directory that no other process may
// use meanwhile.
func ownExclusively(ctx context.Context, dir string) (*statedir.Lock, error) {
	lock, err := statedir.OwnIdle(ctx, dir)
	if errors.Is(err, statedir.ErrOwned) {
		return nil, &chela.Error{
			Code: chela.CodeConflict, Message: "a running process uses the database", Hint: "stop it and try again", Err: err,
		}
	}
	return lock, err
}

// mediaOf returns the directory with the media files of a copy.
func mediaOf(file string) string { return file + "." + media.Dir }

// WithMedia calls backup, which writes a copy of the database to dst, and copies
// the media files that it refers to: before the call those that may be swept
// meanwhile, and after it those that are new.
func WithMedia(state, dst string, backup func() error) error {
	from := filepath.Join(state, media.Dir)
	if _, err := media.Copy(from, mediaOf(dst)); err != nil {
		return err
	}
	if err := backup(); err != nil {
		return err
	}
	_, err := media.Copy(from, mediaOf(dst))
	return err
}
