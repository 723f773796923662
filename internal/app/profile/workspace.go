package profile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/store"
)

// makeWorkspaces makes the agents' directories and their first files.
func (g *Generation) makeWorkspaces(ctx context.Context) error {
	for _, id := range g.Settings.Roster() {
		if err := g.makeWorkspace(ctx, g.Workspace(id)); err != nil {
			return err
		}
	}
	return nil
}

// makeWorkspace makes a directory of an agent, and its first files.
func (g *Generation) makeWorkspace(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if to, lerr := os.Readlink(dir); lerr == nil {
			return chela.Errorf(chela.CodeUnavailable,
				"the workspace %s is a link to %s, where no folder is: is a disk missing?", dir, to)
		}
		if _, serr := os.Stat(dir); serr == nil {
			return chela.Errorf(chela.CodeInvalid, "the workspace %s is not a folder", dir)
		}
		return fmt.Errorf("workspace: %w", err)
	}
	if err := g.claimConfig(dir); err != nil {
		return err
	}
	if g.Settings.Agent.SkipBootstrap {
		return nil
	}
	if err := g.seed(ctx, dir); err != nil {
		g.o.Log.Warn("workspace files", "dir", dir, "err", err) // a read-only workspace still works
	}
	return nil
}

// remakeWorkspace makes the directory of an agent again if a person removed it while the
// gateway runs. If that fails, the run goes on, and its tools say what is missing.
func (g *Generation) remakeWorkspace(ctx context.Context, dir string) {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := g.makeWorkspace(ctx, dir); err != nil {
		g.o.Log.Warn("the workspace is gone, and cannot be made again", "dir", dir, "err", err)
	}
}

// The states of a workspace's first files, in the setting workspace:DIR. Files that an
// interrupted start did not write are written by the next one. Once all were written,
// BOOTSTRAP.md does not come back, even if the workspace is gone.
const (
	seedBegun = "begun"
	seedDone  = "done"
)

// seed writes the first files of a workspace that has none.
func (g *Generation) seed(ctx context.Context, dir string) error {
	setting := "workspace:" + dir
	state, err := store.Get(ctx, g.o.Store, func(r store.Reader) (string, error) { return r.Setting(setting) })
	if err != nil {
		return err
	}
	remember := func(state string) error {
		return g.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return tx.SetSetting(setting, state) })
	}
	isNew := prompt.IsNew(dir)
	switch {
	case state == seedDone && !isNew:
		return nil
	case state == "" && !isNew: // the person's
		return remember(seedDone)
	case state == seedDone:
		g.o.Log.Warn("the files of the workspace were gone; the first ones are written again", "dir", dir)
	case state == "":
		if err := remember(seedBegun); err != nil {
			return err
		}
	}
	if _, err := prompt.Seed(dir, state != seedDone); err != nil {
		return err
	}
	select {
	case g.fresh <- dir:
	default: // a repository is not required
	}
	if state == seedDone {
		return nil
	}
	return remember(seedDone)
}

// maxFresh is the number of new workspaces that may wait for a repository.
const maxFresh = 64

// gitTimeout limits git init.
const gitTimeout = 10 * time.Second

// makeRepositories makes Git repositories of new workspaces, so that the person can go
// back to earlier files, until ctx ends.
func (f *Factory) makeRepositories(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case dir := <-f.fresh:
			if f.o.NoGit || repository(dir) != "" {
				continue
			}
			if err := f.initGit(ctx, dir); err != nil && ctx.Err() == nil {
				f.o.Log.Warn("git init", "dir", dir, "err", err)
			}
		}
	}
}

// initGit runs git init in a folder, if there is git.
func (f *Factory) initGit(ctx context.Context, dir string) error {
	environ := f.Environ()
	path := sandbox.Look(environ)("git")
	if path == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	var env []string
	for _, v := range environ {
		if name, _, _ := strings.Cut(v, "="); name == "PATH" || name == "HOME" {
			env = append(env, v)
		}
	}
	res, err := sandbox.Output(ctx, f.broker, sandbox.Plan{
		Path: path, Argv: []string{"git", "init", "--quiet", "--template="}, Dir: dir, Env: env,
	}, 4<<10)
	if err == nil && res.Exit.Code != 0 {
		err = fmt.Errorf("it ended with code %d: %s", res.Exit.Code, strings.TrimSpace(res.Stderr))
	}
	return err
}

// Environ returns the variables from which those of programs are taken.
func (f *Factory) Environ() []string {
	if f.o.Environ != nil {
		return f.o.Environ
	}
	return os.Environ()
}

// Broker runs programs of Chela itself, such as git.
func (f *Factory) Broker() sandbox.Broker { return f.broker }

// repository returns the folder of the Git repository that a folder is in; "": none.
func repository(dir string) string {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}
