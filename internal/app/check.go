package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/cli"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/model"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/statedir"
	"github.com/chela-ai/chela/internal/store/sqlite"
)

// checkup collects findings.
type checkup struct{ found []cli.Finding }

func (c *checkup) ok(name, format string, args ...any) {
	c.found = append(c.found, cli.Finding{Name: name, Status: cli.StatusOK, Text: fmt.Sprintf(format, args...)})
}

func (c *checkup) warn(name, hint, format string, args ...any) {
	c.found = append(c.found, cli.Finding{Name: name, Status: cli.StatusWarn, Text: fmt.Sprintf(format, args...), Hint: hint})
}

func (c *checkup) fail(name, hint, format string, args ...any) {
	c.found = append(c.found, cli.Finding{Name: name, Status: cli.StatusFail, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// check looks at an installation without starting an engine.
func check(ctx context.Context, s cli.Start) []cli.Finding {
	c := &checkup{}
	free := c.state(s)
	tree := c.config(s)
	c.database(ctx, s, free)
	if tree != nil {
		c.model(ctx, s, tree)
	}
	c.programs()
	return c.found
}

// state looks at the state directory and reports whether nobody owns it now.
func (c *checkup) state(s cli.Start) (free bool) {
	info, err := os.Stat(s.State)
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.home(s.State)
		return true
	case err != nil:
		c.fail("state directory", "", "%v", err)
		return false
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		c.warn("state directory", "chmod 700 "+s.State, "%s is open to other users (%s)", s.State, info.Mode().Perm())
	default:
		c.ok("state directory", "%s", s.State)
	}
	lock, err := statedir.Own(s.State)
	switch {
	case errors.Is(err, statedir.ErrOwned):
		c.ok("lock", "a running process owns the state directory")
		return false
	case err != nil:
		c.fail("lock", chela.HintOf(err), "%v", err)
		return false
	}
	c.ok("lock", "free; locks work here")
	if err := lock.Unlock(); err != nil {
		c.fail("lock", "", "%v", err)
	}
	c.room(s.State)
	return true
}

// home checks that a directory that does not exist can be made.
func (c *checkup) home(dir string) {
	above := filepath.Dir(dir)
	for above != filepath.Dir(above) {
		if _, err := os.Stat(above); err == nil {
			break
		}
		above = filepath.Dir(above)
	}
	try, err := os.MkdirTemp(above, ".chela-*")
	if err != nil {
		c.fail("state directory", "chela --state-dir DIR doctor", "%s cannot be made: %v", dir, err)
		return
	}
	_ = os.Remove(try)
	c.ok("state directory", "%s is made at the first start", dir)
}

// room checks that the directory can be written to.
func (c *checkup) room(dir string) {
	f, err := os.CreateTemp(dir, ".room-*")
	if err != nil {
		c.fail("space", "", "%v", err)
		return
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		c.fail("space", "", "a file of 1 MB cannot be written: %v", err)
		return
	}
	c.ok("space", "files can be written")
}

func (c *checkup) config(s cli.Start) *config.Tree {
	if _, err := os.Stat(s.Config); errors.Is(err, os.ErrNotExist) {
		c.ok("configuration", "there is no %s: defaults are used", s.Config)
	}
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		c.fail("configuration", "chela config validate", "%v", err)
		return nil
	}
	if err := tree.Broken(); err != nil {
		c.fail("configuration", "chela config validate", "broken, the last good one is used: %v", err)
		return tree
	}
	if ws := tree.Warnings(); len(ws) > 0 {
		for _, w := range ws {
			c.warn("configuration", "chela config validate", "%s", w)
		}
	} else {
		c.ok("configuration", "valid")
	}
	for _, p := range tree.Unguarded() {
		c.warn("protection", "", "%s", p)
	}
	if un := tree.Unused(); len(un) > 0 {
		c.warn("configuration", "", "known but without effect in this version: %s", strings.Join(un, ", "))
	}
	return tree
}

// database checks the file when nobody uses it.
func (c *checkup) database(ctx context.Context, s cli.Start, free bool) {
	path := filepath.Join(s.State, databaseName)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		c.ok("database", "made at the first start")
		return
	}
	if !free {
		c.ok("database", "in use; it is checked in the background")
		return
	}
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err != nil {
		c.fail("database", "chmod u+rw "+path+"*", "%v", err)
		return
	} else if err := f.Close(); err != nil {
		c.fail("database", "", "%v", err)
		return
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Path: path, Log: s.Log})
	if err != nil {
		c.fail("database", "chela backup salvage", "%v", err)
		return
	}
	defer db.Close()
	if err := db.Check(ctx); err != nil {
		c.fail("database", "chela backup salvage", "%v", err)
		return
	}
	c.ok("database", "whole")
}

// model says which model would answer.
func (c *checkup) model(ctx context.Context, s cli.Start, tree *config.Tree) {
	opts, err := settings.Read(tree)
	if err != nil {
		c.fail("configuration", "chela config validate", "%v", err)
		return
	}
	m, err := openModels(ctx, &opts, Options{Log: s.Log, State: s.State, Env: settings.Environ(tree), HTTP: modelClient(&opts, settings.Environ(tree))}, nil, nil)
	if err != nil {
		c.fail("model", chela.HintOf(err), "%v", err)
		return
	}
	ref, why := m.Default()
	state := m.Provider(ref.Provider)
	switch {
	case ref == model.Offline:
		c.warn("model", "chela models auth anthropic",
			"%s (%s): the built-in assistant answers, which is not a language model", ref, why)
	case state.Err != nil:
		c.fail("model", chela.HintOf(state.Err), "%s (%s): %v", ref, why, state.Err)
	case state.Key:
		c.ok("model", "%s (%s); key from %s", ref, why, state.Where)
	default:
		c.ok("model", "%s (%s)", ref, why)
	}
	var home string
	if u, err := user.Current(); err == nil {
		home = u.HomeDir
	}
	dir := opts.Workspace(chela.DefaultAgent, s.State, home)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		c.ok("workspace", "%s is made at the first start", dir)
	} else if _, err := os.Stat(filepath.Join(dir, "AGENTS.md")); err != nil {
		c.warn("workspace", "", "%s has no AGENTS.md", dir)
	} else {
		c.ok("workspace", "%s", dir)
	}
}

// programs looks for what commands need.
func (c *checkup) programs() {
	for _, name := range [...]string{"bash", "git"} {
		if path := lookPath(name); path != "" {
			c.ok(name, "%s", path)
		} else {
			c.warn(name, "", "not found; commands that use it fail")
		}
	}
}

// lookPath finds a program in PATH; "": it is not there.
func lookPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, ext := range [...]string{"", ".exe"} {
			path := filepath.Join(dir, name+ext)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return path
			}
		}
	}
	return ""
}
