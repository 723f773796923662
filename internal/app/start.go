package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/app/backup"
	"github.com/chela-ai/chela/internal/app/beacon"
	"github.com/chela-ai/chela/internal/app/diagnostics"
	"github.com/chela-ai/chela/internal/app/doctor"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/migrate"
	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/release"
	"github.com/chela-ai/chela/internal/app/removal"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/app/tunnel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/daemon"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/kit/process"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Build returns the application with the parts of a build, as the command line
// needs it.
func Build(r *standard.Registry) cli.App {
	s := starter{r}
	databases := backup.Database{Store: r.DefaultStore(), StoreOf: s.store, Version: Version, Attach: attach}
	return cli.App{
		Version:     Version,
		Start:       s.start,
		Attach:      Attach,
		Serve:       s.serve,
		Local:       local,
		Remote:      remote,
		Tunnel:      tunnel.Dialer{Broker: standard.Host(), Look: sandbox.Look(os.Environ()), Env: os.Environ()}.Dial,
		LocalPort:   endpoint.LocalPort,
		Discover:    beacon.Find,
		Providers:   model.Known(),
		Channels:    r.Channels(),
		SaveKey:     saveKey,
		Webhooks:    webhooks,
		Validate:    s.validate,
		Refuse:      s.refuse,
		Ineffective: s.ineffective,
		Unusable:    s.unusable,

		Check:     doctor.Doctor{Registry: r, Validate: s.validate, Ineffective: s.ineffective}.Check,
		Audit:     doctor.Doctor{Registry: r}.Audit,
		Services:  func() (daemon.Manager, error) { return daemon.Open(daemon.Env{Run: standard.RunProgram}) },
		OpenPage:  standard.OpenPage,
		NodeTools: s.node,
		NodeRuns:  nodeRuns,
		Store:     databases,
		Diagnostics: diagnostics.Collector{
			Version: Version,
			Names:   append(channelNames(r), model.Known()...),
			Counts:  databases.Counts,
			Attach:  Attach,
			Local:   local,
		},
		Releases: release.Releases{Version: Version, Env: os.Getenv},
		Removal:  removal.Remover{StoreOf: s.store, Default: r.DefaultStore()},
		Migrate: migrate.Migrator{
			Store:       s.store,
			Open:        standard.OpenForeign,
			Validate:    s.validate,
			Ineffective: s.ineffective,
			Providers:   model.Known(),
			Channels:    channelNames(r),
		},
	}
}

// channelNames returns the names of the chat apps of a build.
func channelNames(r *standard.Registry) []string {
	var names []string
	for _, f := range r.Channels() {
		names = append(names, f.Name)
	}
	return names
}

// starter starts engines of a build.
type starter struct{ registry *standard.Registry }

// store returns the store of an installation, for commands that need no engine.
func (b starter) store(s cli.Start) (standard.Store, error) {
	tree, err := load(s)
	if err != nil {
		return standard.Store{}, err
	}
	return b.registry.StoreOf(tree.Section, settings.Environ(tree), s.State)
}

// startLimit is how long a start waits for a process that owns the state directory
// and does not answer. Tests wait longer, so that a slow machine does not decide.
var startLimit = 5 * time.Second

// start returns an engine for the state directory: one in this process, or a
// connection to the one of the process that owns the directory.
func (b starter) start(ctx context.Context, s cli.Start) (cli.Engine, error) {
	limited, cancel := context.WithTimeout(ctx, startLimit) // not for the start itself, which may take longer
	defer cancel()
	for {
		tree, err := load(s) // anew, since the owner may have changed it
		if err != nil {
			return nil, err
		}
		e, err := b.begin(ctx, s, nil, tree)
		if !errors.Is(err, statedir.ErrOwned) {
			if err != nil {
				return nil, err
			}
			return e, nil
		}
		a, err := attach(limited, s)
		if err == nil {
			return a, nil
		}
		select { // the owner is starting or stopping
		case <-time.After(20 * time.Millisecond):
		case <-limited.Done():
			return nil, unanswered(s.State, statedir.Owner(s.State), err)
		}
	}
}

// unanswered says that the owner of a state directory does not answer.
func unanswered(dir string, owner process.Process, err error) *chela.Error {
	return &chela.Error{
		Code: chela.CodeUnavailable, Message: fmt.Sprintf("%s owns %s and does not answer", owner, dir),
		Hint: "chela doctor", Err: err,
	}
}

// Attach connects to the engine of the process that owns the state directory.
func Attach(ctx context.Context, s cli.Start) (cli.Engine, error) {
	a, err := attach(ctx, s)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		err = nil // nobody listens; the cause adds nothing
	case err == nil:
		return a, nil
	}
	return nil, &chela.Error{Code: chela.CodeUnavailable, Message: "no gateway is running", Hint: "chela gateway run",
		Err: err}
}

// serve starts an engine that also serves its port. If it cannot start with a
// configuration that a running engine was to restart with, it starts with the last
// good one.
func (b starter) serve(ctx context.Context, s cli.Start, l cli.Listen) (cli.Gateway, error) {
	tree, err := load(s)
	if err != nil {
		return nil, err
	}
	e, err := b.serveWith(ctx, s, l, tree)
	if err == nil {
		return e, nil
	}
	if ctx.Err() != nil || !l.Restart && !tree.Untried() {
		return nil, err
	}
	good, err := tree.Previous(err)
	if err != nil {
		return nil, err
	}
	s.Log.Error("start; trying again with the last good configuration", "err", good.Broken(), "file", s.Config)
	if e, err = b.serveWith(ctx, s, l, good); err != nil {
		s.Log.Error("start with the last good configuration", "err", err)
		return nil, good.Broken()
	}
	return e, nil
}

// serveWith starts an engine that also serves its port, with a configuration. With
// l.Force it ends other chela processes of this user that own the directory or the
// port.
func (b starter) serveWith(ctx context.Context, s cli.Start, l cli.Listen, tree *config.Tree) (*Engine, error) {
	listen := &endpoint.Listen{Port: l.Port, Bind: l.Bind, Insecure: l.Insecure, Tailscale: l.Tailscale}
	const most = 2 // one may own the directory, and another one the port
	for ended := 0; ; ended++ {
		e, err := b.beginExclusive(ctx, s, listen, tree)
		if err == nil {
			return e, nil
		}
		o, ok := errors.AsType[*endpoint.TakenError](err)
		switch {
		case !ok, !l.Force, ended == most:
			return nil, err
		case !o.Process.IsOurs():
			o.Err.Message += "; --force does not end it, because it is not a chela process of this user"
			return nil, err
		}
		s.Log.Warn("ending another process", "process", o.Process.String())
		if err := o.Process.End(ctx); err != nil {
			return nil, err
		}
	}
}

// beginExclusive starts an engine on a state directory that no other process
// owns. It waits for an owner that does not answer, because that is stopping.
func (b starter) beginExclusive(ctx context.Context, s cli.Start, l *endpoint.Listen,
	tree *config.Tree) (*Engine, error) {
	for limit := time.Now().Add(startLimit); ; {
		e, err := b.begin(ctx, s, l, tree)
		if !errors.Is(err, statedir.ErrOwned) {
			return e, err
		}
		owner := statedir.Owner(s.State)
		_, aerr := attach(ctx, s)
		switch {
		case aerr == nil:
			return nil, &endpoint.TakenError{Process: owner, Err: &chela.Error{
				Code: chela.CodeConflict, Message: fmt.Sprintf("%s already serves %s", owner, s.State),
				Hint: "chela gateway status",
			}}
		case time.Now().After(limit):
			return nil, &endpoint.TakenError{Process: owner, Err: unanswered(s.State, owner, aerr)}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// local returns the address of the gateway's port according to the configuration,
// and the credential for it.
func local(s cli.Start) (cli.Port, error) {
	tree, err := load(s)
	if err != nil {
		return cli.Port{}, err
	}
	return endpoint.Local(tree.Section("gateway"), endpoint.Env{State: s.State, Env: settings.Environ(tree)})
}

// remote returns the gateway on another machine that the configuration names; nil: none.
func remote(s cli.Start) (*cli.Remote, error) {
	tree, err := load(s)
	if err != nil {
		return nil, err
	}
	return endpoint.Remote(tree.Section("gateway"),
		endpoint.Env{State: s.State, Env: settings.Environ(tree), Secrets: s.Secrets})
}

// webhooks returns the configured webhooks.
func webhooks(s cli.Start) (*webhook.Hooks, error) {
	tree, err := load(s)
	if err != nil {
		return nil, err
	}
	return webhook.Parse(tree.Section("hooks"), settings.Environ(tree), s.State)
}

// load reads the configuration.
func load(s cli.Start) (*config.Tree, error) {
	return (config.Options{LastGood: s.LastGood}).Load(s.Config)
}

// begin starts an engine in this process, with a port unless l is nil.
func (b starter) begin(ctx context.Context, s cli.Start, l *endpoint.Listen, tree *config.Tree) (*Engine, error) {
	if err := tree.Broken(); err != nil {
		s.Log.Warn("configuration is broken; continuing with the last good one", "err", err)
	} else if before := tree.Before(); before != nil {
		warnLoosened(s.Log.With("file", s.Config), before, tree)
	}
	for _, w := range tree.Warnings() {
		s.Log.Warn("configuration", "file", s.Config, "problem", w.String())
	}
	if keys := unguarded(tree); len(keys) > 0 {
		s.Log.Warn("these security keys have no effect in this version", "file", s.Config, "keys", strings.Join(keys, ", "),
			"hint", "chela doctor")
	}
	e, err := New(ctx, Options{
		Log:        s.Log,
		State:      s.State,
		Config:     tree,
		ConfigPath: s.Config,
		Env:        settings.Environ(tree),
		EnvOf:      settings.Environ,
		Environ:    os.Environ(),
		Listen:     l,
		Secrets:    s.Secrets,
		Registry:   b.registry,
	})
	if err != nil {
		return nil, err
	}
	if keys := unused(tree, slices.Concat(b.registry.Channels(), e.now().Channels)); len(keys) > 0 {
		s.Log.Info("these settings have no effect in this version", "file", s.Config, "keys", strings.Join(keys, ", "))
	}
	if tree.Broken() == nil {
		if err := tree.SaveLastGood(); err != nil {
			s.Log.Warn("save the configuration as the last good one", "err", err)
		}
	}
	return e, nil
}

// warnLoosened logs what a configuration allows that the one before it did not.
func warnLoosened(log *slog.Logger, before, now *config.Tree) {
	if keys := before.Loosened(now); len(keys) > 0 {
		log.Warn("the configuration allows more than before", "keys", strings.Join(keys, ", "))
	}
}

// unguarded returns the security keys that are set and have no effect.
func unguarded(t *config.Tree) []string {
	var keys []string
	for _, p := range t.Unguarded() {
		keys = append(keys, p.Path)
	}
	return keys
}

// attached is the engine of another process.
type attached struct{ state string }

// attach connects to the process that owns the state directory.
func attach(ctx context.Context, s cli.Start) (cli.Engine, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := statedir.Ask(ctx, s.State); err != nil {
		return nil, err
	}
	return &attached{s.State}, nil
}

// Dial connects to the other process.
func (a *attached) Dial(ctx context.Context) (net.Conn, error) {
	return statedir.Dial(ctx, a.state)
}

// Close does nothing, because the engine belongs to the other process.
func (a *attached) Close(context.Context) error { return nil }

// saveKey saves a key of a model provider in the state directory.
func saveKey(s cli.Start, provider, name, key string) error {
	if err := statedir.Make(s.State); err != nil {
		return err
	}
	return model.SaveKey(settings.KeyDir(s.State), provider, name, key)
}
