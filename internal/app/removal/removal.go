// Package removal removes what belongs to an installation, and nothing else.
package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/chela-ai/chela/internal/app/inventory"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Remover implements cli.Removal.
type Remover struct {
	// StoreOf returns the store of an installation.
	StoreOf func(s cli.Start) (standard.Store, error)
	Default standard.Store // of an installation whose configuration cannot be read
}

var _ cli.Removal = Remover{}

// order is the order in which kinds are removed. The configuration, which says where the
// rest is, goes almost last, and the lock, by which a state directory is known, last: what is
// interrupted is finished by the next call.
var order = []inventory.Kind{
	inventory.Leftover, inventory.Cache, inventory.Logs, inventory.Browser, inventory.Sessions, inventory.Database,
	inventory.Additions, inventory.Workspace,
	inventory.Credentials, inventory.Config, inventory.Running,
}

// kinds returns what the options select.
func kinds(o cli.RemovalOptions) []inventory.Kind {
	var out []inventory.Kind
	if o.Config {
		out = append(out, inventory.Config)
	}
	if o.Sessions {
		out = append(out, inventory.Credentials, inventory.Database, inventory.Sessions, inventory.Cache, inventory.Logs)
	}
	if o.Workspace {
		out = append(out, inventory.Workspace)
	}
	if o.Rest {
		out = append(out, inventory.Additions, inventory.Browser, inventory.Leftover, inventory.Running)
	}
	return out
}

// Plan implements cli.Removal.
func (r Remover) Plan(s cli.Start, o cli.RemovalOptions) (*cli.Removed, error) {
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		tree = nil // a broken configuration is a reason to reset
	}
	st, err := r.StoreOf(s)
	if err != nil {
		st = r.Default
	}
	in, err := inventory.Read(s, st.File, tree)
	if err != nil {
		return nil, err
	}
	out := &cli.Removed{State: s.State, Remove: []cli.RemovedPart{}}
	want := kinds(o)
	for _, p := range in.Inside {
		switch {
		case slices.Contains(want, p.Kind):
			out.Remove = append(out.Remove, cli.RemovedPart{Kind: string(p.Kind), Path: p.Path})
		case p.Kind == inventory.Foreign && o.Rest:
			out.Stay = append(out.Stay, cli.LeftOut{Path: p.Path, Why: "it is not known to be of chela"})
		case p.Kind == inventory.Backups && (o.Rest || o.Sessions):
			out.Stay = append(out.Stay,
				cli.LeftOut{Path: p.Path, Why: "backups stay; to remove them: rm -r " + shell.Quote(p.Path)})
		}
	}
	for _, p := range in.Outside {
		switch {
		case !slices.Contains(want, p.Kind):
		case p.Kind == inventory.Config && p.Path == s.Config:
			out.Remove = append(out.Remove, cli.RemovedPart{Kind: string(p.Kind), Path: p.Path})
		case exists(p.Path):
			out.Stay = append(out.Stay,
				cli.LeftOut{Path: p.Path,
					Why: fmt.Sprintf("the %s is outside of the state directory and may hold files of yours; to remove it: rm -r %s",
						p.Kind, shell.Quote(p.Path))})
		}
	}
	if st.File == "" && o.Sessions {
		out.Stay = append(out.Stay,
			cli.LeftOut{Path: "database", Why: "it is not in the state directory; its own programs remove it"})
	}
	if in.Shared && len(out.Stay) > 0 {
		out.Stay = append(out.Stay[:0],
			cli.LeftOut{Path: s.State, Why: "it is your home folder or the root, whose other things stay"})
	}
	slices.SortStableFunc(out.Remove, func(a, b cli.RemovedPart) int { return cmp.Compare(rank(a), rank(b)) })
	return out, nil
}

func rank(p cli.RemovedPart) int { return slices.Index(order, inventory.Kind(p.Kind)) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Free implements cli.Removal.
func (r Remover) Free(ctx context.Context, s cli.Start) error {
	if !exists(filepath.Join(s.State, "chela.lock")) { // nobody has used it
		return nil
	}
	return owned(s, statedir.Probe(ctx, s.State))
}

// owned says who owns the state directory, if err says that somebody does.
func owned(s cli.Start, err error) error {
	if !errors.Is(err, statedir.ErrOwned) {
		return err
	}
	return &chela.Error{
		Code: chela.CodeConflict, Message: fmt.Sprintf("%s uses %s", statedir.Owner(s.State), s.State),
		Hint: "chela gateway stop, or Ctrl-C in its terminal", Err: err,
	}
}

// Remove implements cli.Removal.
func (r Remover) Remove(ctx context.Context, s cli.Start, o cli.RemovalOptions) (*cli.Removed, error) {
	out, err := r.Plan(s, o)
	if err != nil || len(out.Remove) == 0 {
		return out, err
	}
	lock, err := statedir.OwnIdle(ctx, s.State)
	if err != nil {
		return nil, owned(s, err)
	}
	var last []string // files of the lock
	for _, p := range out.Remove {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, lock.Unlock())
		}
		if inventory.Kind(p.Kind) == inventory.Running {
			last = append(last, p.Path)
			continue
		}
		if err := remove(p.Path); err != nil {
			return nil, errors.Join(fmt.Errorf("remove %s: %w; to continue, run the same command again", p.Path, err),
				lock.Unlock())
		}
	}
	if err := lock.Unlock(); err != nil {
		return nil, err
	}
	if !o.Rest {
		return out, nil
	}
	for _, path := range append(last, filepath.Join(s.State, "chela.lock")) {
		if err := remove(path); err != nil {
			return nil, fmt.Errorf("remove %s: %w; to continue, run the same command again", path, err)
		}
	}
	if err := os.Remove(s.State); err == nil {
		out.Remove = append(out.Remove, cli.RemovedPart{Kind: "state directory", Path: s.State})
	}
	return out, nil
}

// remove removes a file, a link or a folder with what is in it. Folders that may not be
// changed are made changeable first.
func remove(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	root, errOpen := os.OpenRoot(path)
	if errOpen != nil {
		return err
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(filepath.FromSlash(name), 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
