// Package doctor checks an installation without starting an engine: what does
// not work ([Doctor.Check]), and what makes it easier to attack
// ([Doctor.Audit]).
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Doctor checks installations of a build.
type Doctor struct {
	Registry *standard.Registry
	// Validate returns the error with which an engine would refuse a configuration;
	// nil: only the keys are checked.
	Validate func(context.Context, cli.Start, *config.Tree) error
	// Ineffective returns the settings without effect; nil: they are not reported.
	Ineffective func(context.Context, cli.Start, *config.Tree) []string
}

// checkup collects findings.
type checkup struct {
	Doctor
	found []cli.Finding
}

func (c *checkup) ok(name, format string, args ...any) {
	c.found = append(c.found, cli.Finding{Name: name, Status: cli.StatusOK, Text: fmt.Sprintf(format, args...)})
}

func (c *checkup) warn(name, hint, format string, args ...any) {
	c.found = append(c.found,
		cli.Finding{Name: name, Status: cli.StatusWarn, Text: fmt.Sprintf(format, args...), Hint: hint})
}

func (c *checkup) fail(name, hint, format string, args ...any) {
	c.found = append(c.found,
		cli.Finding{Name: name, Status: cli.StatusFail, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// Check checks an installation.
func (d Doctor) Check(ctx context.Context, s cli.Start) []cli.Finding {
	c := &checkup{Doctor: d}
	free := c.state(ctx, s)
	c.modes(s)
	tree := c.config(ctx, s)
	c.database(ctx, s, free)
	env := standard.DoctorEnv{State: s.State, Section: func(string) json.RawMessage { return nil }, Getenv: os.Getenv}
	if tree != nil {
		c.model(ctx, s, tree)
		env.Section, env.Getenv = tree.Section, settings.Environ(tree)
	}
	c.sandbox(ctx, s, tree, env.Getenv)
	return append(c.found, d.Registry.Check(ctx, env)...)
}

// state checks the state directory and reports whether no process owns it.
func (c *checkup) state(ctx context.Context, s cli.Start) (free bool) {
	info, err := os.Stat(s.State)
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.creatable(s.State)
		return true
	case err != nil:
		c.fail("state directory", "", "%v", err)
		return false
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		c.warn("state directory", "chmod 700 "+s.State, "%s is open to other users (%s)", s.State, info.Mode().Perm())
		c.repair(func(context.Context) error { return os.Chmod(s.State, 0o700) }) //nolint:gosec // a folder
	default:
		c.ok("state directory", "%s", s.State)
	}
	switch err := statedir.Probe(ctx, s.State); {
	case errors.Is(err, statedir.ErrOwned):
		c.ok("lock", "a running process owns the state directory")
		return false
	case err != nil:
		c.fail("lock", chela.HintOf(err), "%v", err)
		return false
	}
	c.ok("lock", "free; file locks work here")
	c.leftovers(ctx, s)
	c.space(s.State)
	return true
}

// creatable checks that a directory that does not exist can be created.
func (c *checkup) creatable(dir string) {
	above := filepath.Dir(dir)
	for above != filepath.Dir(above) {
		if _, err := os.Stat(above); err == nil {
			break
		}
		above = filepath.Dir(above)
	}
	try, err := os.MkdirTemp(above, ".chela-*")
	if err != nil {
		c.fail("state directory", "chela --state-dir DIR doctor", "%s cannot be created: %v", dir, err)
		return
	}
	_ = os.Remove(try)
	c.ok("state directory", "%s is created at the first start", dir)
}

// space checks that files can be written in the directory.
func (c *checkup) space(dir string) {
	if err := statedir.Writable(dir); err != nil {
		c.fail("space", chela.HintOf(err), "%v", err)
		return
	}
	c.ok("space", "files can be written")
}

// config checks the configuration and returns it; nil: it cannot be used.
func (c *checkup) config(ctx context.Context, s cli.Start) *config.Tree {
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		c.fail("configuration", "chela config validate", "%v", err)
		return nil
	}
	if err := tree.Broken(); err != nil {
		c.fail("configuration", "chela config validate", "broken; the last good one is used: %v", err)
		return tree
	}
	if c.Validate != nil {
		if err := c.Validate(ctx, s, tree); err != nil {
			c.fail("configuration", cmp.Or(chela.HintOf(err), "chela config validate"), "%v", err)
			return nil
		}
	}
	if ws := tree.Warnings(); len(ws) > 0 {
		for _, w := range ws {
			c.warn("configuration", "chela config validate", "%s", w)
		}
	} else if !tree.Exists() {
		c.ok("configuration", "%s does not exist; defaults are used", s.Config)
	} else {
		c.ok("configuration", "valid")
	}
	for _, p := range tree.Unguarded() {
		c.warn("protection", "", "%s", p)
	}
	c.older(tree)
	if c.Ineffective != nil {
		if keys := c.Ineffective(ctx, s, tree); len(keys) > 0 {
			c.warn("configuration", "", "without effect in this version: %s", strings.Join(keys, ", "))
		}
	}
	return tree
}

// elsewhere connects to a database that is not in the state directory.
func (c *checkup) elsewhere(ctx context.Context, s cli.Start, st standard.Store, free bool) {
	if !free {
		c.ok("database", "in use; the running process checks it")
		return
	}
	db, err := st.Open(ctx, "", standard.StoreOptions{Log: s.Log})
	switch e, _ := errors.AsType[*chela.Error](err); {
	case err == nil:
		err = db.Close()
		if l, ok := db.(standard.Located); ok && err == nil {
			c.ok("database", "%s", l.Location())
			return
		}
	case e != nil && e.Code == chela.CodeConflict:
		c.ok("database", "%v", err)
		return
	}
	c.fail("database", chela.HintOf(err), "%v", err)
}

// database reads the whole database, when no process uses it.
func (c *checkup) database(ctx context.Context, s cli.Start, free bool) {
	st, err := c.store(s)
	if err != nil {
		c.fail("database", "", "%v", err)
		return
	}
	if st.File == "" {
		c.elsewhere(ctx, s, st, free)
		return
	}
	path := filepath.Join(s.State, st.File)
	used := statedir.Used(s.State)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && !used {
		c.ok("database", "created at the first start")
		return
	}
	if !free {
		c.ok("database", "in use; the running process checks it")
		return
	}
	if f, err := os.OpenFile(path, os.O_RDWR, 0); errors.Is(err, os.ErrNotExist) {
		// opening it tells more
	} else if err != nil {
		c.fail("database", "chmod u+rw "+path+"*", "%v", err)
		if errors.Is(err, os.ErrPermission) {
			c.repair(func(context.Context) error { return readable(path) })
		}
		return
	} else if err := f.Close(); err != nil {
		c.fail("database", "", "%v", err)
		return
	}
	db, err := st.Open(ctx, path, standard.StoreOptions{Log: s.Log, Used: used})
	if err != nil {
		c.fail("database", "chela backup salvage", "%v", err)
		return
	}
	defer db.Close()
	if checker, ok := db.(standard.Checker); ok {
		if err := checker.Check(ctx); err != nil {
			c.fail("database", "chela backup salvage", "%v", err)
			return
		}
	}
	c.ok("database", "undamaged")
}

// model checks the default model and the workspace.
func (c *checkup) model(ctx context.Context, s cli.Start, tree *config.Tree) {
	opts, err := settings.Read(tree)
	if err != nil {
		c.fail("configuration", "chela config validate", "%v", err)
		return
	}
	if opts.NoDefault() {
		c.warn("agents", settings.SetDefault,
			"agents.list has no default agent: messages of channels without a binding are refused")
	}
	o := opts.ModelOptions(s.State, settings.Environ(tree))
	o.Log, o.HTTP, o.NewProvider = s.Log, model.HTTPClient(o.Config, o.Env), c.Registry.NewProvider
	m, err := model.Open(ctx, o)
	if err != nil {
		c.fail("model", chela.HintOf(err), "%v", err)
		return
	}
	ref, why := m.Default()
	state := m.Provider(ref.Provider)
	switch {
	case ref == model.Offline:
		c.warn("model", "chela models auth anthropic",
			"%s (%s): the built-in assistant, which is not a language model", ref, why)
	case state.Err != nil:
		c.fail("model", chela.HintOf(state.Err), "%s (%s): %v", ref, why, state.Err)
	case state.Key:
		c.ok("model", "%s (%s); key from %s", ref, why, state.Where)
	default:
		c.ok("model", "%s (%s)", ref, why)
	}
	home := settings.Environ(tree)("HOME")
	dir := opts.Workspace(chela.DefaultAgent, s.State, home)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		c.ok("workspace", "%s is created at the first start", dir)
	} else if _, err := os.Stat(filepath.Join(dir, "AGENTS.md")); err != nil {
		c.warn("workspace", "", "%s has no AGENTS.md", dir)
	} else {
		c.ok("workspace", "%s", dir)
	}
	for _, id := range opts.Roster() {
		if dir := opts.Workspace(id, s.State, home); home != "" && pathpolicy.Inside(home, dir) {
			c.warn("workspace", "", "%s holds your home folder: commands in the sandbox can change your files, except for hidden ones; a folder of its own is safer (agents.defaults.workspace)", dir)
		}
	}
	for _, f := range prompt.Open(dir, tree.Own).Files(true) {
		if f.Problem != "" {
			c.warn("workspace", "", "%s is not in the prompt: %s", filepath.Join(dir, f.Name), f.Problem)
		}
	}
	for _, id := range opts.Roster() {
		dir := opts.Workspace(id, s.State, home)
		for _, p := range subagent.Problems(prompt.Open(dir, tree.Own).Types()) {
			c.warn("agent types", "", "%s", filepath.Join(dir, p))
		}
	}
	c.skills(&opts, s.State, home)
	c.folders(tree, s.State, home)
	c.commandRules(s.State)
	c.heartbeats(&opts, s.State, home, tree.Own)
	c.notes(&opts, s.State, home, tree.Own)
}

// skills checks the skills in the folders of each agent. One in a folder that agents share
// is reported once.
func (c *checkup) skills(opts *settings.Settings, state, home string) {
	var finder skill.Finder
	reported := map[string]bool{}
	for _, id := range opts.Roster() {
		_, problems := finder.Find(opts.SkillFolders(id, state, home)...)
		for _, p := range problems {
			if !reported[p.File] {
				reported[p.File] = true
				c.warn("skills", "chela skills check", "%s: %s", p.File, p.Text)
			}
		}
	}
}

// folders checks that the folders exist which the configuration names.
func (c *checkup) folders(tree *config.Tree, state, home string) {
	for _, key := range [...]string{"skills.load.extraDirs", "hooks.internal.load.extraDirs", "hooks.transformsDir"} {
		for _, dir := range tree.Texts(key) {
			if rest, ok := strings.CutPrefix(dir, "~"); ok {
				dir = filepath.Join(home, rest)
			} else if !filepath.IsAbs(dir) {
				dir = filepath.Join(state, dir)
			}
			if info, err := os.Stat(dir); err != nil {
				c.warn("folders", "", "%s: %v", key, err)
			} else if !info.IsDir() {
				c.warn("folders", "", "%s: %s is not a folder", key, dir)
			}
		}
	}
}

// commandRules checks that the rules for commands can be read.
func (c *checkup) commandRules(state string) {
	if _, _, err := allowlist.NewFile(filepath.Join(state, allowlist.FileName)).Load(); err != nil {
		c.fail("command rules", chela.HintOf(err), "%v", err)
	}
}
