package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/kit/watch"
)

// madeHooks is the hooks of a configuration that are not in force yet.
type madeHooks struct {
	points *hook.Points
	found  []hookdir.Hook
}

// makeHooks makes the hooks of a configuration.
func (e *Engine) makeHooks(s settings.Sections, g *profile.Generation, env func(string) string) (*madeHooks, error) {
	broker, err := e.registry.NewBroker(standard.SandboxEnv{State: e.o.State}, s.Section)
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	m := new(madeHooks)
	h := standard.HookEnv{
		Log:      e.o.Log,
		Redact:   e.o.Secrets.Redact,
		State:    e.o.State,
		Instance: e.instance,
		Home:     env("HOME"),
		Environ:  e.o.Environ,
		Store:    e.store,
		Broker:   broker,
		Plugins:  g.Plugins,
		Data:     g.PluginData,
		Agents:   g.HookAgents(),

		Private: e.profiles.Private,
		Section: s.Section,
		Found:   func(list []hookdir.Hook) { m.found = list },
	}
	if cage := g.Cage(); cage != nil { // a nil Backend in h.Cage would not be nil
		h.Cage = cage
	}
	m.points, err = e.registry.NewHooks(h, s.Section)
	return m, err
}

// useHooks puts hooks in force, instead of those of the configuration before.
func (e *Engine) useHooks(m *madeHooks) {
	e.hooks.Use("configuration", m.points)
	e.found.Store(&m.found)
}

// hookFiles returns the files and folders that the hooks of folders are made of.
func (e *Engine) hookFiles() []string {
	names := []string{standard.HookDir(e.o.State)}
	for _, h := range *e.found.Load() {
		if h.Dir != "" {
			names = append(names, filepath.Dir(h.Dir), h.Dir, h.File, h.Handler)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}

// ending asks hooks about the end of a run; see runner.Options.Ending.
func (e *Engine) ending(ctx context.Context, r *run.Run) {
	e.delivery.Ending(ctx, r)
	e.spawner.Ending(ctx, r)
}

// hookPoll is the interval at which the files of hooks are checked.
const hookPoll = 3 * time.Second

// watchHooks puts hooks of folders in force that were added, changed or removed,
// until ctx ends.
func (e *Engine) watchHooks(ctx context.Context) error {
	return watch.Files{
		Every: hookPoll, Quiet: func() time.Duration { return defaultDebounce }, Names: e.hookFiles, Changed: e.reloadHooks,
	}.Run(ctx)
}

// reloadHooks makes the hooks again after their files changed. A program is started
// again for each event, so that nothing has to be done if only its content changed.
func (e *Engine) reloadHooks() {
	e.reload.mu.Lock()
	defer e.reload.mu.Unlock()
	g := e.now()
	m, err := e.makeHooks(g.Config, g, e.envOf(g.Config))
	if err != nil {
		e.o.Log.Error("hooks cannot be used; continuing with the previous ones", "err", err)
		return
	}
	if reflect.DeepEqual(m.found, *e.found.Load()) {
		return
	}
	e.useHooks(m)
	e.o.Log.Info("hooks changed", "hooks", len(m.found))
}

// envOf returns the variables for a configuration.
func (e *Engine) envOf(s settings.Sections) func(string) string {
	if e.o.EnvOf != nil {
		return e.o.EnvOf(s)
	}
	if e.o.Env != nil {
		return e.o.Env
	}
	return os.Getenv
}

// maxHookSessions is the number of sessions whose end is reported when the gateway
// stops.
const maxHookSessions = 1000

// hookSessions is the sessions that had runs in this process.
type hookSessions struct {
	mu   sync.Mutex
	keys map[chela.SessionKey]bool
}

// observeSessions tells hooks of sessions that were created, changed and deleted.
func (e *Engine) observeSessions() {
	e.active.keys = map[chela.SessionKey]bool{}
	e.bus.Subscribe(func(ev chela.Event) {
		at := hook.Context{Agent: ev.Session.Agent(), Session: ev.Session}
		switch {
		case ev.Stream == chela.StreamLifecycle && ev.Phase == chela.PhaseStart && e.hooks.SessionEnd.Any():
			e.active.mu.Lock()
			if len(e.active.keys) < maxHookSessions {
				e.active.keys[ev.Session] = true
			}
			e.active.mu.Unlock()
		case ev.Stream == chela.StreamSession && ev.Phase == chela.PhaseCreated:
			e.hooks.SessionStart.Notify(context.Background(), hook.SessionStart{Context: at})
		case ev.Stream == chela.StreamSession && ev.Phase == chela.PhaseDeleted:
			e.active.mu.Lock()
			delete(e.active.keys, ev.Session)
			e.active.mu.Unlock()
			e.hooks.SessionEnd.Notify(context.Background(), hook.SessionEnd{Context: at, Reason: hook.EndDeleted})
		case ev.Stream == chela.StreamSession && ev.Phase == chela.PhasePatched && ev.Data == nil: // otherwise by a run
			e.hooks.SessionPatch.Notify(context.Background(), hook.SessionPatch{Context: at})
		}
	})
}

// startHooks tells hooks that the gateway has started. An engine without a port works
// for one command of a person and is no gateway.
func (e *Engine) startHooks() {
	if e.port == nil {
		return
	}
	e.hooks.GatewayStart.Notify(context.Background(), hook.Gateway{Port: portInfo{e}.Number()})
}

// stopHooks tells hooks that the gateway stops, and waits for them as long as their
// time limits allow.
func (e *Engine) stopHooks(ctx context.Context, restart bool) {
	if e.hooks == nil {
		return
	}
	if e.port != nil {
		e.notifyStop(ctx, restart)
	}
	within(ctx, hook.StopTime, e.hooks.Wait)
	last, cancel := atLeast(ctx, time.Second) // for the programs that still run
	defer cancel()
	e.hooks.Close(last)
}

// notifyStop tells hooks that the gateway stops.
func (e *Engine) notifyStop(ctx context.Context, restart bool) {
	reason := hook.EndShutdown
	if restart {
		reason = hook.EndRestart
		within(ctx, hook.PreRestartTime, func(ctx context.Context) {
			e.hooks.GatewayPreRestart.Notify(ctx, hook.Gateway{Reason: reason})
			e.hooks.GatewayPreRestart.Wait(ctx)
		})
	}
	within(ctx, hook.StopTime, func(ctx context.Context) {
		e.hooks.GatewayStop.Notify(ctx, hook.Gateway{Reason: reason})
		e.hooks.GatewayStop.Wait(ctx)
	})
	within(ctx, hook.SessionEndTime, func(ctx context.Context) {
		e.active.mu.Lock()
		for key := range e.active.keys {
			e.hooks.SessionEnd.Notify(ctx, hook.SessionEnd{Context: hook.Context{Agent: key.Agent(), Session: key},
				Reason: reason})
		}
		e.active.mu.Unlock()
		e.hooks.SessionEnd.Wait(ctx)
	})
}

// within calls f with a context that ends after d at the latest.
func within(ctx context.Context, d time.Duration, f func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	f(ctx)
}

// mayInstall asks hooks whether something may be installed.
func (e *Engine) mayInstall(ctx context.Context, kind, from string) error {
	out, err := e.hooks.BeforeInstall.Decide(ctx, hook.BeforeInstall{Kind: kind, Name: filepath.Base(from), Source: from})
	if err == nil && out.Answer.Block {
		err = chela.Errorf(chela.CodeForbidden, "not installed: %s", out.Answer.Reason)
	}
	return err
}

// installHook copies a hook into the folder of the installed ones, unless a hook
// forbids it, and puts it in force.
func (e *Engine) installHook(ctx context.Context, from string, replace bool) (hookdir.Hook, error) {
	if err := e.mayInstall(ctx, "hook", from); err != nil {
		return hookdir.Hook{}, err
	}
	h, err := hookdir.Install(from, standard.HookDir(e.o.State), replace)
	if err == nil {
		e.reloadHooks()
	}
	return h, err
}
