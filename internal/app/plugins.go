package app

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/watch"
)

// tellTime limits the time in which a notice is stored.
const tellTime = 10 * time.Second

// tellOwner tells the owner something in the main session, and in their last chat.
func (e *Engine) tellOwner(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	var told chela.Event
	err := e.store.Update(ctx, store.Synced, func(tx store.Tx) error {
		place, err := e.notices.Owner(tx, chela.DefaultAgent, nil)
		if err != nil {
			return err
		}
		told, err = e.notices.Write(tx, place, "notice", text, time.Now())
		return err
	})
	if err == nil {
		e.bus.Publish(told)
	}
	return err
}

// discoverServers has the tools of MCP servers listed that are not known: a gateway
// at once, and an engine without a port, which may serve one command only, when the
// first run begins.
func (e *Engine) discoverServers() {
	if e.port != nil {
		e.profiles.DiscoverServers()
		return
	}
	once := sync.OnceFunc(e.profiles.DiscoverServers)
	e.bus.Subscribe(func(ev chela.Event) {
		if ev.Stream == chela.StreamLifecycle && ev.Phase == chela.PhaseStart {
			once()
		}
	})
}

const pluginsChanged = "plug-ins changed" // in the log

// remake makes what depends on plug-ins again from the same configuration. It is the same as a
// change of the configuration, without the steps that only another text needs.
func (e *Engine) remake(why string) {
	e.reload.mu.Lock()
	defer e.reload.mu.Unlock()
	if e.draining.Load() {
		return
	}
	before := e.now()
	env := e.envOf(before.Config)
	g, err := e.profiles.New(context.Background(), profile.Config{Sections: before.Config, Env: env},
		before.Settings, before)
	if err != nil {
		e.o.Log.Error("plug-ins cannot be used; continuing with the previous ones", "err", err)
		return
	}
	hooks, err := e.makeHooks(before.Config, g, env)
	if err != nil {
		e.o.Log.Error("hooks of plug-ins cannot be used; continuing with the previous ones", "err", err)
		return
	}
	accounts, err := e.channels.Prepare(before.Config.Section, g.Channels...)
	if err != nil {
		e.o.Log.Error("channels", "err", err) // the others run
	}
	e.adopt(g)
	before.Models.CloseIdle()
	e.channels.Apply(accounts)
	if !reflect.DeepEqual(hooks.found, *e.found.Load()) { // otherwise hooks that run go on
		e.useHooks(hooks)
	}
	e.o.Log.Info(why)
}

// pluginFiles returns the files and folders that plug-ins are found by.
func (e *Engine) pluginFiles() []string {
	g := e.now()
	names := []string{plugindir.Dir(e.o.State)}
	for _, id := range g.Settings.Roster() {
		for _, dir := range plugindir.WorkspaceDirs {
			names = append(names, filepath.Join(g.Workspace(id), filepath.FromSlash(dir)))
		}
	}
	for _, p := range g.Plugins {
		names = append(names, p.Dir, p.File)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}

// watchPlugins puts plug-ins in force that were added, changed or removed, until ctx
// ends.
func (e *Engine) watchPlugins(ctx context.Context) error {
	return watch.Files{
		Every: hookPoll, Quiet: func() time.Duration { return defaultDebounce }, Names: e.pluginFiles, Changed: func() {
			if g := e.now(); g.PluginsChanged(profile.Config{Sections: g.Config, Env: e.envOf(g.Config)}) {
				e.remake(pluginsChanged)
			}
		},
	}.Run(ctx)
}

// installPlugin copies a plug-in into the folder of the installed ones, unless a hook
// forbids it.
func (e *Engine) installPlugin(ctx context.Context, from string, replace bool) (plugindir.Plugin, error) {
	if err := e.mayInstall(ctx, "plugin", from); err != nil {
		return plugindir.Plugin{}, err
	}
	p, err := plugindir.Install(from, plugindir.Dir(e.o.State), replace)
	if err == nil {
		e.remake(pluginsChanged)
	}
	return p, err
}

// removePlugin removes an installed plug-in with its files.
func (e *Engine) removePlugin(id string) error {
	if err := plugindir.Uninstall(plugindir.Dir(e.o.State), id); err != nil {
		return err
	}
	e.remake(pluginsChanged)
	return os.RemoveAll(e.profiles.PluginData(id))
}
