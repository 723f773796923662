package app

import (
	"cmp"
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/endpoint"
	configmethods "github.com/chela-ai/chela/internal/method/config"
	"github.com/chela-ai/chela/internal/model"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/watch"
	"github.com/chela-ai/chela/wire"
)

// reload is how the configuration of an engine changes while it runs: all that
// is made of it is made anew, which may fail, then it takes the place of the
// old, which cannot. A run keeps the profile that it began with.
type reload struct {
	mu   sync.Mutex // held while it changes
	told string     // what is wrong with the files, when it was said; "": nothing is
	keys time.Time  // when the folder of keys was changed last, as they are known
}

// lookEvery is how often the files of the configuration are looked at.
const lookEvery = 1500 * time.Millisecond

// quietFor is how long they are left alone before they are read, when nothing
// else is configured.
const quietFor = 300 * time.Millisecond

// prepare makes what the next runs work with. before is what they worked with
// until now; nil: nothing.
func (e *Engine) prepare(ctx context.Context, o Options, opts *settings.Settings, k *kept, before *model.Set) (*profiles, error) {
	if o.HTTP == nil {
		o.HTTP = modelClient(opts, o.Env)
	}
	m, err := openModels(ctx, opts, o, e.files.Fitted, before)
	if err != nil {
		return nil, err
	}
	return newProfiles(opts, m, e.store, o, e.leaves(opts, e.store), k)
}

// enforce has the next runs work with p.
func (e *Engine) enforce(p *profiles) {
	e.o.Secrets.Add(p.models.Keys()...)
	e.lanes.Set("main", p.opts.Concurrent())
	e.profile.Store(p)
	ref, why := p.models.Default()
	e.o.Log.Debug("model chosen", "model", ref.String(), "why", why)
}

// candidate makes what a configuration says, without putting it in force.
func (e *Engine) candidate(ctx context.Context, t *config.Tree) (*profiles, error) {
	o := e.o
	o.Config = t
	if o.EnvOf != nil {
		o.Env = o.EnvOf(t)
	}
	opts, err := settings.Read(t)
	if err != nil {
		return nil, err
	}
	if err := e.checkCold(o); err != nil {
		return nil, err
	}
	return e.prepare(ctx, o, &opts, e.now().kept, e.now().models)
}

// tree is the configuration that is in force; nil: it is not in files.
func (e *Engine) tree() *config.Tree {
	t, _ := e.now().conf.(*config.Tree)
	return t
}

// view shows the configuration that is in force.
func (e *Engine) view() config.View {
	return config.View{Tree: e.tree(), Boot: e.boot, Started: e.started, Version: Version}
}

// watch puts what a person writes into the files of the configuration in force,
// until ctx ends.
func (e *Engine) watch(ctx context.Context) error {
	if e.tree() == nil {
		return nil
	}
	if err := e.tree().Broken(); err != nil {
		e.reload.told = err.Error() // at the start
	}
	return watch.Files{
		Every: lookEvery,
		Quiet: func() time.Duration {
			if ms := e.now().opts.Reload.DebounceMS; ms != nil {
				return time.Duration(*ms) * time.Millisecond
			}
			return quietFor
		},
		Names:   func() []string { return append(e.tree().Files(), e.tree().Path(), keyDir(e.o.State)) },
		Changed: func() { e.reread(ctx) },
	}.Run(ctx)
}

// reread reads the files again, and looks for keys that were saved. What cannot be used changes nothing, and is said
// once.
func (e *Engine) reread(ctx context.Context) {
	r := &e.reload
	r.mu.Lock()
	defer r.mu.Unlock()
	log := e.o.Log.With("file", e.tree().Path())
	next, err := e.tree().Again()
	keys := keysAt(e.o.State)
	if err == nil && next.Hash() == e.tree().Hash() && e.tree().Broken() == nil && r.told == "" && keys.Equal(r.keys) {
		return // this program wrote it
	}
	if err == nil && next.Hash() != e.tree().Hash() && e.now().opts.Reload.Mode == "off" {
		log.Info("configuration was edited; it is read with the next start, as gateway.reload.mode is off")
		return
	}
	var p *profiles
	if err == nil {
		p, err = e.candidate(ctx, next)
	}
	if err != nil {
		if r.told != err.Error() {
			log.Error("configuration cannot be used; going on with the one before", "err", err, "hint", cmp.Or(chela.HintOf(err), "chela config validate"))
		}
		r.told = err.Error()
		return
	}
	r.told, r.keys = "", keys
	e.adoptLocked(next, p)
}

// keysAt is when the folder of keys was changed last.
func keysAt(state string) time.Time {
	fi, err := os.Stat(keyDir(state))
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}

// outcome is what became of a change.
type outcome struct {
	tree    *config.Tree
	changed []string // paths
	cold    []string // those of them that only a start takes
	starts  bool     // it comes by itself
}

// adoptLocked puts a configuration in force and says what changed.
func (e *Engine) adoptLocked(next *config.Tree, p *profiles) outcome {
	out := outcome{tree: next, changed: e.tree().Changes(next)}
	for _, path := range out.changed {
		if config.Cold(path) {
			out.cold = append(out.cold, path)
		}
	}
	before := e.now()
	e.enforce(p)
	before.models.CloseIdle()
	log := e.o.Log.With("file", next.Path())
	if err := next.Keep(); err != nil {
		log.Warn("keep the configuration as the last good one", "err", err)
	}
	for _, w := range next.Warnings() {
		log.Warn("configuration", "problem", w.String())
	}
	if len(out.changed) > 0 {
		log.Info("configuration changed", "keys", strings.Join(out.changed, ", "))
	}
	out.starts = e.startsAgain(out)
	if len(out.cold) > 0 && !out.starts {
		log.Warn("these keys are in force with the next start", "keys", strings.Join(out.cold, ", "))
	}
	if len(out.changed) == 0 {
		return out
	}
	e.gate.Tell(chela.ScopeRead, wire.EventConfigChanged, wire.ConfigChanged{Path: next.Path(), Hash: e.view().Sum(next.Hash()), Time: wire.At(time.Now())})
	return out
}

// startsAgain asks for a start when a change takes one, and reports whether it
// does.
func (e *Engine) startsAgain(o outcome) bool {
	mode := e.now().opts.Reload.Mode
	if e.port == nil || mode == "off" || mode == "hot" || len(o.changed) == 0 || len(o.cold) == 0 && mode != "restart" {
		return false
	}
	time.AfterFunc(soon, func() { // who asked for the change is told of it first
		select {
		case e.again <- struct{}{}:
		default: // it is asked for already
		}
	})
	return true
}

// soon is how long a start waits that a change takes.
const soon = 200 * time.Millisecond

// Again tells when the gateway is to start anew with the configuration as it is
// then.
func (e *Engine) Again() <-chan struct{} { return e.again }

// change has the files of the configuration changed as draft says, and puts the
// result in force. What the program could not work with is not written.
func (e *Engine) change(ctx context.Context, base string, draft func(now *config.Tree) (*config.Draft, error)) (outcome, error) {
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
	d, err := draft(now)
	if err != nil {
		return outcome{}, err
	}
	p, err := e.candidate(ctx, d.Tree())
	if err != nil {
		return outcome{}, chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	next, err := d.Write()
	if err != nil {
		return outcome{}, err
	}
	r.told = ""
	return e.adoptLocked(next, p), nil
}

// anyBase is the base of a change whatever there was before.
const anyBase = "*"

// checkCold returns why the gateway would not start with a configuration: what
// takes effect with the next start must not keep it from starting.
func (e *Engine) checkCold(o Options) error {
	if e.port == nil {
		return nil
	}
	g, err := endpoint.Read(o.Config.Section("gateway"), *o.Listen)
	if err != nil {
		return err
	}
	host, err := g.Host()
	if err != nil {
		return err
	}
	return g.Safe(host, o.Listen.Insecure)
}

// rewrite carries out what a client wants of the configuration.
func (e *Engine) rewrite(ctx context.Context, c configmethods.Change) (wire.ConfigWritten, error) {
	out, err := e.change(ctx, c.Base, func(now *config.Tree) (*config.Draft, error) {
		if c.Merge {
			return now.Merge([]byte(c.Text), c.Replace)
		}
		return now.Rewrite([]byte(c.Text))
	})
	if err != nil {
		return wire.ConfigWritten{}, err
	}
	if c.Note != "" {
		e.o.Log.Info("configuration written", "note", c.Note)
	}
	return e.written(out), nil
}

// written is what a client is told of a change.
func (e *Engine) written(o outcome) wire.ConfigWritten {
	w := wire.ConfigWritten{
		OK: true, Noop: len(o.changed) == 0, Path: o.tree.Path(), Hash: e.view().Sum(o.tree.Hash()), Config: o.tree.InForce(),
		Changed: o.changed, Restart: len(o.cold) > 0, Cold: o.cold, Starts: o.starts,
	}
	if w.Changed == nil {
		w.Changed = []string{}
	}
	for _, p := range append(o.tree.Warnings(), o.tree.Unguarded()...) {
		w.Warnings = append(w.Warnings, wire.ConfigIssue{Path: p.Path, Message: secret.Concealed(p.Message)})
	}
	return w
}
