package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/app/chatconfig"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/methods"
	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/services"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/engine/channels"
	"github.com/chela-ai/chela/internal/engine/cron"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/relay"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/engine/spawn"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/kit/watch"
	"github.com/chela-ai/chela/wire"
)

// reload is the state of changes of the configuration while the engine runs. A
// change has three steps: everything is made from the new configuration, which
// may fail; the new values replace the current ones, which cannot fail; channels
// and services are reconciled. A run uses the profile that it began with.
type reload struct {
	mu       sync.Mutex // held during a change
	reported string     // the error of the files that was logged; "": they are good
	keys     time.Time  // when the directory of keys was changed, as of the last change
}

// pollEvery is the interval at which the files of the configuration are checked.
const pollEvery = 1500 * time.Millisecond

// defaultDebounce is how long the files must be unchanged before they are read.
const defaultDebounce = 300 * time.Millisecond

// candidate is everything that was made from a configuration.
type candidate struct {
	generation *profile.Generation
	accounts   *channels.Plan
	services   *services.Plan
	webhooks   *webhook.Hooks
	hooks      *madeHooks
}

// prepare makes everything from a configuration without putting it in force.
//
// Two things hold even for a configuration that is refused: its secrets are known, so that the
// error cannot show them, and its files are closed to tools.
func (e *Engine) prepare(ctx context.Context, t *config.Tree) (*candidate, error) {
	e.learn(t)
	e.profiles.Protect(t.Own()...)
	o := e.o
	o.Config = t
	if o.EnvOf != nil {
		o.Env = o.EnvOf(t)
	}
	opts, err := settings.Read(t)
	if err != nil {
		return nil, err
	}
	if err := e.checkPort(o); err != nil {
		return nil, err
	}
	c := new(candidate)
	if c.webhooks, err = e.parseWebhooks(t, o.Env); err != nil {
		return nil, err
	}
	if c.generation, err = e.profiles.New(ctx, profile.Config{Sections: t, Env: o.Env}, &opts, e.now()); err != nil {
		return nil, err
	}
	if c.accounts, err = e.channels.Prepare(t.Section, c.generation.Channels...); err != nil {
		return nil, err
	}
	if c.services, err = e.work.Prepare(e.makers, t.Section); err != nil {
		return nil, err
	}
	c.hooks, err = e.makeHooks(t, c.generation, o.Env)
	return c, err
}

// adopt puts a Generation in force for the next runs. The lanes get the new widths; runs in
// progress keep their places in them.
func (e *Engine) adopt(g *profile.Generation) {
	e.o.Secrets.Add(g.Models.Keys()...)
	for _, id := range g.Settings.Roster() {
		if m := g.AgentModels(id); m != g.Models {
			e.o.Secrets.Add(m.Keys()...)
		}
	}
	e.lanes.Set(runner.MainLane, g.Settings.Concurrent())
	e.lanes.Set(relay.Lane, g.Settings.Concurrent())
	e.lanes.Set(webhook.Lane, min(webhook.Width, g.Settings.Concurrent()))
	e.lanes.Set(spawn.Lane, g.Settings.Agent.Subagents.Concurrent())
	e.lanes.Set(cron.Lane, g.Settings.Cron.MaxConcurrent())
	e.current.Store(g)
	g.UseServers()
	e.beats.Changed()
	ref, why := g.Models.Default()
	e.o.Log.Debug("model chosen", "model", ref.String(), "why", why)
}

// checkPort returns the error that would keep a gateway from opening its port with a
// configuration after a restart.
func (e *Engine) checkPort(o Options) error {
	section := o.Config.Section("gateway")
	g, err := endpoint.Read(section, endpoint.Listen{})
	if err != nil {
		return err
	}
	if err := g.Check(o.endpointEnv()); err != nil || e.port == nil {
		return err
	}
	if g, err = endpoint.Read(section, *o.Listen); err != nil {
		return err
	}
	host, err := g.Host()
	if err != nil {
		return err
	}
	return g.Safe(host, o.Listen.Insecure)
}

// tree returns the configuration in force; nil: it does not come from files.
func (e *Engine) tree() *config.Tree {
	t, _ := e.now().Config.(*config.Tree)
	return t
}

// view shows the configuration in force.
func (e *Engine) view() config.View {
	return config.View{Tree: e.tree(), Instance: e.instance, Started: e.started, Version: Version}
}

// keysChanged returns when a key of a model provider was last saved or removed.
func keysChanged(state string) (last time.Time) {
	for _, dir := range keyDirs(state) {
		if info, err := os.Stat(dir); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// keyDirs returns the directories of saved keys: the shared one, and those of agents.
func keyDirs(state string) []string {
	dirs := []string{settings.KeyDir(state)}
	entries, _ := os.ReadDir(dirs[0]) // there may be none
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(dirs[0], e.Name()))
		}
	}
	return dirs
}

// watch puts edits of the configuration files in force until ctx ends.
func (e *Engine) watch(ctx context.Context) error {
	if e.tree() == nil {
		return nil
	}
	if err := e.tree().Broken(); err != nil {
		e.reload.reported = err.Error() // by the start
	}
	return watch.Files{
		Every: pollEvery,
		Quiet: func() time.Duration {
			if ms := e.now().Settings.Reload.DebounceMS; ms != nil {
				return time.Duration(*ms) * time.Millisecond
			}
			return defaultDebounce
		},
		Names:   func() []string { return append(append(e.tree().Files(), e.tree().Path()), keyDirs(e.o.State)...) },
		Changed: func() { e.reread(ctx) },
	}.Run(ctx)
}

// reread reads the files of the configuration and the saved keys again. A
// configuration that cannot be used changes nothing; its error is logged once.
func (e *Engine) reread(ctx context.Context) {
	r := &e.reload
	r.mu.Lock()
	defer r.mu.Unlock()
	log := e.o.Log.With("file", e.tree().Path())
	next, err := e.tree().Reload()
	keys := keysChanged(e.o.State)
	if err == nil && next.Hash() == e.tree().Hash() && e.tree().Broken() == nil && r.reported == "" && keys.Equal(r.keys) {
		return // this program wrote the files
	}
	if err == nil && e.tree().Failed(next) {
		return // it is as it was when the gateway could not start with it
	}
	if err == nil && next.Hash() != e.tree().Hash() && e.now().Settings.Reload.Mode == "off" {
		log.Info("configuration was edited; the change takes effect after a restart, as gateway.reload.mode is off")
		return
	}
	var c *candidate
	if err == nil {
		c, err = e.prepare(ctx, next)
	}
	if err != nil {
		if bad, ok := errors.AsType[*config.Error](err); ok {
			e.profiles.Protect(bad.Files...)
		}
		if r.reported != err.Error() {
			log.Error("configuration cannot be used; continuing with the previous one", "err", err,
				"hint", cmp.Or(chela.HintOf(err), "chela config validate"))
		}
		r.reported = err.Error()
		return
	}
	r.reported, r.keys = "", keys
	e.applyLocked(next, c, e.requestRestart)
}

// outcome is what a change of the configuration did.
type outcome struct {
	tree     *config.Tree
	changed  []string // paths
	cold     []string // those of them that take effect after a restart
	restarts bool     // the gateway restarts by itself
}

// applyLocked puts a configuration in force and returns the changes. restart requests a
// restart if they need one, and reports whether it did.
func (e *Engine) applyLocked(next *config.Tree, c *candidate, restart func(outcome) bool) outcome {
	was := e.tree()
	out := outcome{tree: next, changed: was.Changes(next)}
	for _, path := range out.changed {
		if config.Cold(path) {
			out.cold = append(out.cold, path)
		}
	}
	// First what runs use, then what brings messages in: a message of a new account must
	// not meet the rules of the old configuration.
	before := e.now()
	e.adopt(c.generation)
	before.Models.CloseIdle()
	e.webhooks.SetHooks(c.webhooks)
	e.channels.Apply(c.accounts)
	e.work.Apply(c.services)
	// Otherwise only keys were saved, and hooks that run go on.
	if len(out.changed) > 0 || !reflect.DeepEqual(c.hooks.found, *e.found.Load()) {
		e.useHooks(c.hooks)
	}
	log := e.o.Log.With("file", next.Path())
	// otherwise a restart may fail
	if started, ok := e.o.Config.(*config.Tree); ok && !slices.ContainsFunc(started.Changes(next), config.Cold) {
		if err := next.SaveLastGood(); err != nil {
			log.Warn("save the configuration as the last good one", "err", err)
		}
	}
	for _, w := range next.Warnings() {
		log.Warn("configuration", "problem", w.String())
	}
	if len(out.changed) == 0 {
		return out
	}
	log.Info("configuration changed", "keys", strings.Join(out.changed, ", "))
	warnLoosened(log, was, next)
	out.restarts = restart(out)
	if len(out.cold) > 0 && !out.restarts {
		log.Warn("these keys take effect after a restart", "keys", strings.Join(out.cold, ", "))
	}
	e.gateway.Broadcast(chela.ScopeRead, wire.EventConfigChanged,
		wire.ConfigChanged{Path: next.Path(), Hash: e.view().Sum(next.Hash()), Time: wire.At(time.Now())})
	return out
}

// requestRestart requests a restart when a change needs one and the
// configuration allows it, and reports whether it did.
func (e *Engine) requestRestart(o outcome) bool {
	if !e.mustRestart(o) {
		return false
	}
	e.restartAfter(restartDelay) // the client that changed the configuration gets its answer first
	return true
}

// mustRestart reports whether a change needs a restart, and the configuration allows it.
func (e *Engine) mustRestart(o outcome) bool {
	mode := e.now().Settings.Reload.Mode
	return e.port != nil && mode != "off" && mode != "hot" && (len(o.cold) > 0 || mode == "restart")
}

// restartAfter requests a restart after a delay.
func (e *Engine) restartAfter(d time.Duration) {
	time.AfterFunc(d, func() {
		select {
		case e.restart <- struct{}{}:
		default: // it was requested already
		}
	})
}

// restartDelay is the time between a change and the restart that it needs.
const restartDelay = 200 * time.Millisecond

// RestartRequested returns a channel that gets a value when the gateway must be restarted
// with the configuration of its files.
func (e *Engine) RestartRequested() <-chan struct{} { return e.restart }

// change edits the files of the configuration and puts the result in force. A
// configuration that the engine cannot use is not written. base is the hash of
// the configuration that the edit was made from. restart is that of applyLocked. [anyBase] stands
// for any; "" is allowed only if there is no file yet. The error of another base has the code
// conflict, that of a refused configuration the code invalid.
func (e *Engine) change(ctx context.Context, base string, edit func(now *config.Tree) (*config.Draft, error),
	restart func(outcome) bool) (outcome, error) {
	return e.changeFiles(ctx, base, edit, e.recordConfig, restart)
}

// changeFiles is change with a function that records what is about to be written, and
// returns what is called with the number of files that were written.
func (e *Engine) changeFiles(ctx context.Context, base string, edit func(now *config.Tree) (*config.Draft, error),
	record func(context.Context, *config.Draft) (func(int), error), restart func(outcome) bool) (outcome, error) {
	r := &e.reload
	r.mu.Lock()
	defer r.mu.Unlock()
	now := e.tree().Now()
	if base == "" && now.Exists() {
		return outcome{}, chela.Errorf(chela.CodeInvalid, "config base hash required; re-run config.get and retry")
	}
	if base != anyBase && now.Exists() && base != e.view().Sum(now.Hash()) {
		return outcome{}, chela.Errorf(chela.CodeConflict, "%s; re-run config.get and retry", wire.ConfigStale)
	}
	d, err := edit(now)
	if err != nil {
		return outcome{}, err
	}
	c, err := e.prepare(ctx, d.Tree())
	if err != nil {
		return outcome{}, chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	if err := checkChange(now, e.now().Models, d.Tree(), c.generation.Models); err != nil {
		return outcome{}, chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	// Before the files are written: if the process is killed in between, or cannot start with
	// them, the next start knows that it may use the last good configuration instead.
	if slices.ContainsFunc(now.Changes(d.Tree()), config.Cold) {
		if err := d.Tree().MarkUntried(); err != nil {
			return outcome{}, err
		}
	}
	// The journal has both contents before a file changes. After a kill it is found by
	// comparing whether the change was made.
	done, err := record(ctx, d)
	if err != nil {
		return outcome{}, err
	}
	next, err := d.Write()
	if err != nil {
		done(0)
		return outcome{}, err
	}
	done(len(d.Texts()))
	r.reported = ""
	return e.applyLocked(next, c, restart), nil
}

// override puts overrides of the configuration in force, which are in no file.
func (e *Engine) override(ctx context.Context, change func(now *config.Tree) (*config.Tree, error)) error {
	r := &e.reload
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := change(e.tree())
	if err != nil {
		return err
	}
	c, err := e.prepare(ctx, next)
	if err != nil {
		return chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	if err := checkChange(e.tree(), e.now().Models, next, c.generation.Models); err != nil {
		return chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	e.applyLocked(next, c, func(outcome) bool { return false }) // a restart would end the overrides
	return nil
}

// anyBase is the base of a change that applies to any configuration.
const anyBase = "*"

// configuration implements methods.Configuration.
type configuration struct{ e *Engine }

func (c configuration) Path() string       { return c.e.o.ConfigPath }
func (c configuration) Tree() *config.Tree { return c.e.tree() }
func (c configuration) View() config.View  { return c.e.view() }

func (c configuration) Edit(ctx context.Context, edit func(now *config.Tree) (*config.Draft, error)) error {
	_, err := c.e.change(ctx, anyBase, edit, c.e.requestRestart)
	return err
}

func (c configuration) KeysChanged(ctx context.Context) {
	if c.e.tree() != nil {
		c.e.reread(ctx)
	}
}

func (c configuration) Rewrite(ctx context.Context, r methods.Change) (wire.ConfigWritten, error) {
	out, err := c.e.change(ctx, r.Base, func(now *config.Tree) (*config.Draft, error) {
		if r.Merge {
			return now.Merge([]byte(r.Text), r.Replace)
		}
		return now.Rewrite([]byte(r.Text))
	}, c.e.requestRestart)
	if err != nil {
		return wire.ConfigWritten{}, err
	}
	if r.Note != "" {
		c.e.o.Log.Info("configuration written", "note", r.Note)
	}
	return c.e.written(out), nil
}

// written describes a change for the client that made it.
func (e *Engine) written(o outcome) wire.ConfigWritten {
	w := wire.ConfigWritten{
		OK: true, Noop: len(o.changed) == 0, Path: o.tree.Path(), Hash: e.view().Sum(o.tree.Hash()), Config: o.tree.InForce(),
		Changed: o.changed, Restart: len(o.cold) > 0, Cold: o.cold, Starts: o.restarts,
	}
	if w.Changed == nil {
		w.Changed = []string{}
	}
	for _, p := range append(o.tree.Warnings(), o.tree.Unguarded()...) {
		w.Warnings = append(w.Warnings, wire.ConfigIssue{Path: p.Path, Message: secret.RedactCredentials(p.Message)})
	}
	return w
}

// chatConfig returns the configuration as /config changes it; nil when that is
// disabled.
func (e *Engine) chatConfig() inbound.Configuration {
	if e.tree() == nil || !e.now().Settings.Slash.Config {
		return nil
	}
	return chatconfig.Config{Tree: e.tree,
		Change: func(ctx context.Context, edit func(*config.Tree) (*config.Draft, error)) (bool, error) {
			out, err := e.change(ctx, anyBase, edit, e.requestRestart)
			return len(out.cold) == 0, err
		}}
}

// chatDebug returns the overrides of the configuration as /debug changes them; nil when
// that is disabled.
func (e *Engine) chatDebug() inbound.Overrides {
	if e.tree() == nil || !e.now().Settings.Slash.Debug {
		return nil
	}
	return chatconfig.Overrides{Tree: e.tree, Change: e.override}
}
