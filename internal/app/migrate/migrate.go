// Package migrate takes over an installation of OpenClaw, and takes that back.
//
// A plan compares the folder of OpenClaw with the state directory and lists steps. Before
// the first step is carried out, all of them are written to a record, with a hash of what
// each makes and a copy of what it replaces. A step that was carried out is recognized by
// its result, so that a run after a kill at any point ends at the same state, and Undo
// knows what it may take back: what still has the recorded hash.
//
// The state directory is locked meanwhile: no engine runs.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/openclaw"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Migrator implements cli.Migration. Step may be nil, the other fields are required.
type Migrator struct {
	Store func(cli.Start) (standard.Store, error) // of an installation
	Open  openclaw.OpenTables
	// Validate returns the error with which an engine would refuse a configuration.
	Validate func(context.Context, cli.Start, *config.Tree) error
	// Ineffective returns the paths of settings that have no effect.
	Ineffective func(context.Context, cli.Start, *config.Tree) []string
	Channels    []string // names of the chat apps of this build
	Providers   []string // names of the model providers of this build

	// Step is called before each step, by tests that simulate a kill. If it returns an
	// error, nothing more is done.
	Step func(name string) error
}

var _ cli.Migration = Migrator{}

// Find returns the state folders of OpenClaw in a home folder.
func (m Migrator) Find(home string) []string { return openclaw.Find(home) }

// before calls Step.
func (m Migrator) before(name string) error {
	if m.Step == nil {
		return nil
	}
	return m.Step(name)
}

// Plan returns what Apply would do.
func (m Migrator) Plan(ctx context.Context, s cli.Start, o cli.MigrateOptions) (_ cli.Migrated, err error) {
	t, closeTarget, err := m.present(ctx, s)
	if err != nil {
		return cli.Migrated{}, err
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	p, err := m.prepare(ctx, s, o, t)
	if err != nil {
		return cli.Migrated{}, err
	}
	defer p.home.Close()
	return p.shown(), nil
}

// present opens the database here, if there is one that no engine uses.
func (m Migrator) present(ctx context.Context, s cli.Start) (t target, closeIt func() error, err error) {
	closeIt = func() error { return nil }
	st, err := m.Store(s)
	if err != nil {
		return t, nil, err
	}
	if _, err := os.Stat(filepath.Join(s.State, st.File)); errors.Is(err, fs.ErrNotExist) {
		return t, closeIt, nil
	}
	lock, err := statedir.OwnIdle(ctx, s.State)
	if errors.Is(err, statedir.ErrOwned) {
		return target{blind: true}, closeIt, nil
	}
	if err != nil {
		return t, nil, err
	}
	if t.db, err = m.openStore(ctx, s); err != nil {
		release(lock, &err)
		return t, nil, err
	}
	return t, func() (err error) {
		err = t.db.Close()
		release(lock, &err)
		return err
	}, nil
}

// openStore opens the database of the state directory, which is locked.
func (m Migrator) openStore(ctx context.Context, s cli.Start) (standard.Database, error) {
	st, err := m.Store(s)
	if err != nil {
		return nil, err
	}
	return st.Open(ctx, filepath.Join(s.State, st.File), standard.StoreOptions{Log: s.Log, Used: statedir.Used(s.State)})
}

// own locks the state directory.
func own(ctx context.Context, s cli.Start) (*statedir.Lock, error) {
	lock, err := statedir.OwnIdle(ctx, s.State)
	if errors.Is(err, statedir.ErrOwned) {
		return nil, &chela.Error{
			Code: chela.CodeConflict, Message: fmt.Sprintf("%s is running and uses %s", statedir.Owner(s.State), s.State),
			Hint: "stop it and try again: chela gateway stop", Err: err,
		}
	}
	return lock, err
}

// release unlocks the state directory. Whether the process before was killed stays known.
func release(lock *statedir.Lock, err *error) {
	if lock.Killed() {
		*err = errors.Join(*err, lock.Unlock())
		return
	}
	*err = errors.Join(*err, lock.Leave())
}

// target is the database that a plan is compared with.
type target struct {
	db    standard.Database // nil: there is none yet
	blind bool              // there is one, but an engine uses it
}

// overlap returns an error if one of the folders is in the other.
func overlap(from, state string) error {
	a, b := pathpolicy.Real(from), pathpolicy.Real(state)
	if pathpolicy.Inside(a, b) || pathpolicy.Inside(b, a) {
		return &chela.Error{
			Code:    chela.CodeInvalid,
			Message: fmt.Sprintf("the state directory %s and the folder of OpenClaw %s must not be in each other", state, from),
			Hint:    "chela --state-dir ~/.chela migrate openclaw --from " + shell.Quote(from),
		}
	}
	return nil
}
