package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/app/backup"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/methods"
	"github.com/chela-ai/chela/internal/app/metrics"
	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/services"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/engine/channels"
	"github.com/chela-ai/chela/internal/engine/deliver"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/relay"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/engine/spawn"
	"github.com/chela-ai/chela/internal/engine/tasks"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/httpapi"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Version is what `chela version` prints.
const Version = "0.1.0"

// Options is what an engine is made of. Tests set the fields below Registry.
type Options struct {
	Log    *slog.Logger
	State  string            // state directory, absolute
	Config settings.Sections // the configuration
	// ConfigPath is the file of the configuration, for clients to show; "": none.
	ConfigPath string
	Env        func(string) string // environment variables: keys, the home directory
	// EnvOf returns the variables for another configuration; nil: the same.
	EnvOf func(settings.Sections) func(string) string
	// Environ is the source of the variables of commands; nil: os.Environ().
	Environ []string
	// Secrets collects all secrets, so that logs can redact them; nil: a Redactor of
	// the engine's own.
	Secrets *secret.Redactor
	// Listen opens the gateway's port; nil: there is none.
	Listen *endpoint.Listen
	// Registry lists the parts of the build; nil: standard.New().
	Registry *standard.Registry

	HTTP      *http.Client                  // for model providers; nil: the network
	Providers map[string]llm.Provider       // used instead of the configured providers, by id
	NoProbe   bool                          // do not look for model servers on this machine
	NoSocket  bool                          // other processes cannot attach
	Step      func(string)                  // called at named points of a run; see runner.Options
	Wrap      func(store.Store) store.Store // replaces the engine's store; nil: it is used as it is
}

// endpointEnv is what the gateway's port may use.
func (o *Options) endpointEnv() endpoint.Env {
	return endpoint.Env{Log: o.Log, State: o.State, Env: o.Env, Secrets: o.Secrets}
}

// Engine is the running application.
type Engine struct {
	o        Options
	registry *standard.Registry
	lock     *statedir.Lock
	db       standard.Database
	store    store.Store // db, or what Options.Wrap made of it
	files    *media.Files
	holder   *leaseholder.Holder // of the leases of this start
	bus      *bus.Bus
	lanes    *lane.Lanes
	executor *invoke.Executor
	direct   *invoke.Direct // for tool calls that no model makes
	delivery *deliver.Worker
	channels *channels.Supervisor
	spawner  *spawn.Spawner
	relay    *relay.Relay
	dispatch *dispatch.Dispatcher
	metrics  *metrics.Metrics
	gateway  *methods.Gateway
	started  time.Time
	instance string // id of this start

	profiles *profile.Factory
	current  profile.Current // of the configuration in force
	makers   []services.Maker
	reload   reload

	work     *services.Supervisor // accepts messages and works on them
	outbound *services.Supervisor // sends answers; ends after work
	serving  sync.WaitGroup       // goroutines that serve listeners
	pipe     *gateway.Pipe
	socket   net.Listener
	port     *port           // nil: there is none
	ui       *os.Root        // files of the Control UI; may be nil
	web      []httpapi.Route // that the port serves
	sweepErr error           // set before Close waits for work
	draining atomic.Bool     // the engine is stopping
	restart  chan struct{}   // cap 1: a restart was requested
}

// New starts an engine on the state directory. The chain of the error contains
// statedir.ErrOwned when another process owns the directory.
func New(ctx context.Context, o Options) (_ *Engine, err error) {
	if o.Registry == nil {
		o.Registry = standard.New()
	}
	e := &Engine{o: o, registry: o.Registry, started: time.Now(), instance: uuid.NewString(), metrics: metrics.New(), restart: make(chan struct{}, 1)}
	if e.o.Secrets == nil {
		e.o.Secrets = new(secret.Redactor)
	}
	e.learn(o.Config)
	if e.lock, err = statedir.Own(o.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.Close(context.WithoutCancel(ctx))
		}
	}()
	opts, err := settings.Read(o.Config)
	if err != nil {
		return nil, err
	}
	if err := e.listen(ctx); err != nil {
		return nil, err
	}
	if err := e.openStore(ctx, &opts); err != nil {
		return nil, err
	}
	if e.holder, err = leaseholder.New(ctx, leaseholder.Options{Log: o.Log, Store: e.store, ID: e.instance, Step: o.Step}); err != nil {
		return nil, err
	}
	e.bus, e.lanes = bus.New(o.Log), new(lane.Lanes)
	e.channels = channels.New(channels.Options{
		Log: o.Log, Store: e.store, Owner: e.holder, Factories: e.registry.Channels(), HTTP: e.publicHTTP(), Dir: filepath.Join(o.State, "channels"),
	})
	e.delivery = deliver.New(deliver.Options{
		Log: o.Log, Store: e.store, Bus: e.bus, Load: e.files.Load, Typing: true,
		Preview: func(a chela.Address) bool { return a.Peer.Kind == chela.Direct },
		Track:   e.holder.Track, Channel: e.channels.Acquire, Elsewhere: e.channels.Elsewhere, Limits: e.channels.Limits,
		Timeout: func(row outbox.Row) time.Duration {
			if row.Origin.Kind != chela.OriginSubagent {
				return 0
			}
			return e.current.Subagents(row.Session.Agent()).AnnounceTimeout()
		},
	})
	e.spawner = spawn.New(spawn.Options{
		Log: o.Log, Store: e.store, Bus: e.bus, Config: &e.current,
		Stop: func(tx store.Tx, key chela.SessionKey) (func(), error) { return e.dispatch.StopIn(tx, key) },
		Delete: func(ctx context.Context, key chela.SessionKey) error {
			_, err := e.dispatch.DeleteSession(ctx, key, nil)
			return err
		},
	})
	e.relay = relay.New(relay.Options{
		Store: e.store, Bus: e.bus, Config: &e.current,
		Redact: func(s string) string { return secret.RedactCredentials(e.o.Secrets.Redact(s)) },
	})
	if e.profiles, err = profile.NewFactory(profile.Options{
		Log: o.Log, Version: Version, Instance: e.instance, State: o.State, Environ: o.Environ, Getenv: o.Env, Registry: e.registry, Store: e.store, Bus: e.bus, Files: e.files,
		Delivery: e.delivery, Spawner: e.spawner, Relay: e.relay, Channels: e.channelErrors, Redact: e.o.Secrets.Redact, HTTP: o.HTTP, Providers: o.Providers, NoProbe: o.NoProbe,
	}, o.Config); err != nil {
		return nil, err
	}
	e.reload.keys = keysChanged(o.State)
	g, err := e.profiles.New(ctx, profile.Config{Sections: o.Config, Env: o.Env}, &opts, nil)
	if err != nil {
		return nil, err
	}
	e.adopt(g)
	return e, e.assemble(ctx)
}

// learn makes the secrets of a configuration known, before anything uses it.
func (e *Engine) learn(s settings.Sections) {
	if t, ok := s.(*config.Tree); ok {
		e.o.Secrets.Add(t.Secrets()...)
	}
}

// openStore opens the database and the directory of media files.
func (e *Engine) openStore(ctx context.Context, opts *settings.Settings) (err error) {
	if err := statedir.CheckDatabase(e.o.State, e.registry.DefaultStore().File); err != nil {
		return err
	}
	if e.db, err = e.registry.DefaultStore().Open(ctx, e.databasePath(), e.o.Log); err != nil {
		return cmp.Or(statedir.Writable(e.o.State), err)
	}
	e.store = e.db
	if e.o.Wrap != nil {
		e.store = e.o.Wrap(e.store)
	}
	e.files, err = media.Open(filepath.Join(e.o.State, media.Dir), opts.Agent.ImageSide)
	return err
}

func (e *Engine) databasePath() string {
	return filepath.Join(e.o.State, e.registry.DefaultStore().File)
}

// now returns the Generation in force, which the next run uses.
func (e *Engine) now() *profile.Generation { return e.current.Load() }

// assemble makes the other parts and starts them.
func (e *Engine) assemble(ctx context.Context) error {
	o := &e.o
	hooks, err := e.registry.NewHooks(standard.HookEnv{Log: o.Log, Redact: o.Secrets.Redact}, o.Config.Section)
	if err != nil {
		return err
	}
	e.executor = invoke.New(invoke.Options{
		Log: o.Log, Redact: o.Secrets.Redact, StoreImage: e.files.StorePart, Before: hooks.Before, After: append(hooks.After, e.metrics.Hook()),
	})
	e.direct = invoke.NewDirect(invoke.DirectOptions{
		Executor: e.executor, Store: e.store, Default: chela.DefaultAgent, Agent: e.current.HasAgent,
		Direct: e.current.Direct, Scope: e.current.Scope,
	})
	e.dispatch = dispatch.New(dispatch.Options{
		Lanes: e.lanes, Stopping: e.spawner.Stop, Deleting: e.spawner.Deleted,
		Runner: runner.Options{
			Log: o.Log, Store: e.store, Bus: e.bus, Owner: e.holder, Executor: e.executor,
			Profiles: &e.current, Ended: []runner.Ended{e.delivery.Ended, e.spawner.Ended, e.relay.Ended}, Children: e.spawner.Open, Step: o.Step,
		},
	})
	list := tasks.New(tasks.Options{
		Store: e.store, Abort: e.dispatch.Abort, Kill: e.profiles.KillCommand,
		Changed: func(t task.Task) {
			e.bus.Publish(chela.Event{Session: t.Requester, Stream: chela.StreamTask, Text: t.ID})
		},
	})
	in := e.inbound(e.dispatch)
	e.gateway = methods.New(methods.Options{
		Log: o.Log, Version: Version, State: o.State, Database: e.databasePath(), Instance: e.instance, Started: e.started,
		Store: e.store, Bus: e.bus, Files: e.files, Inbound: in, Dispatcher: e.dispatch, Direct: e.direct, Channels: e.channels, Tasks: list,
		Current: &e.current, Config: configuration{e}, Redact: o.Secrets.Redact, Port: portInfo{e}, Backup: e.backup,
	})
	e.makers = e.serviceMakers()
	e.outbound, e.work = services.New(ctx, o.Log), services.New(ctx, o.Log)
	if err := e.open(); err != nil {
		return err
	}
	return e.run(in)
}

// run starts everything that works in the background, and serves connections.
func (e *Engine) run(in *inbound.Gate) error {
	o := &e.o
	accounts, err := e.channels.Prepare(o.Config.Section)
	if err != nil {
		o.Log.Error("channels", "err", err) // the others run
	}
	e.channels.Apply(accounts) // before the delivery looks for them
	e.outbound.Start("leases", e.holder.Run)
	e.outbound.Start("delivery", e.delivery.Run)
	if e.lock.Killed() {
		e.work.Start("sweep", func(ctx context.Context) error {
			e.sweepErr = e.registry.Sweep(ctx, o.Log, standard.SandboxEnv{State: o.State})
			return e.sweepErr
		})
	}
	e.work.Start("dispatcher", together(e.dispatch.Run, e.profiles.RunCommands))
	e.work.Start("subagents", e.spawner.Run)
	e.work.Start("configuration", e.watch)
	e.work.Start("channels", func(ctx context.Context) error { return e.channels.Run(ctx, in.Receive) })
	plan, err := e.work.Prepare(e.makers, o.Config.Section)
	if err != nil {
		return err
	}
	e.work.Apply(plan)
	e.pipe = gateway.NewPipe()
	e.serve(e.pipe, e.gateway.Upgrade(owner("process")))
	if o.NoSocket {
		return nil
	}
	if e.socket, err = statedir.Listen(o.State); err != nil {
		return err
	}
	e.serve(e.socket, e.gateway.Upgrade(owner("socket")))
	return nil
}

// together runs two functions at the same time. The runs in progress wait for
// commands in the background, so that both must be stopped together.
func together(a, b func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		var errA, errB error
		var wg sync.WaitGroup
		wg.Go(func() { errA = a(ctx) })
		wg.Go(func() { errB = b(ctx) })
		wg.Wait()
		return errors.Join(errA, errB)
	}
}

// inbound makes the part that admits messages.
func (e *Engine) inbound(d *dispatch.Dispatcher) *inbound.Gate {
	return inbound.New(inbound.Options{
		Log: e.o.Log, Store: e.store, Bus: e.bus, Version: Version, Started: e.started,
		Reserve: d.Reserve, Redact: e.o.Secrets.Redact, Live: d.Live, StopRuns: d.StopRuns, StopChildren: d.StopOthers, Subagents: e.spawner, Agents: e.current.Agents, Decide: d.Decide, Configuration: e.chatConfig, Chunks: e.delivery.Chunks, StoreMedia: e.files.Store,
		Route: e.current.Route, Access: e.current.Access, Tools: e.current.Offered, Reset: e.current.Reset, Focus: e.current.Focus,
		Catalog: e.current.Catalog, Model: e.current.Model, Inherit: e.current.Inherited, Elevated: e.current.Elevated,
	})
}

// serviceMakers returns how the registered services are made.
func (e *Engine) serviceMakers() []services.Maker {
	env := standard.ServiceEnv{
		Log: e.o.Log, State: e.o.State, Store: e.store, Bus: e.bus, HTTP: e.publicHTTP(),
		Check: func(ctx context.Context) error {
			if c, ok := e.db.(standard.Checker); ok {
				return c.Check(ctx)
			}
			return nil
		},
		Sweep: e.sweepMedia, DeleteSession: e.dispatch.DeleteIdle,
	}
	return e.registry.Services(env)
}

// publicHTTP returns a function that makes an HTTP client for public addresses,
// once.
func (e *Engine) publicHTTP() func() *http.Client {
	return sync.OnceValue(func() *http.Client {
		return egress.Client(egress.Options{Proxy: egress.Proxies(e.o.Env), ProxyResolves: true})
	})
}

// sweepMedia removes the media files that no row refers to.
func (e *Engine) sweepMedia(ctx context.Context) (int, error) {
	return e.files.Sweep(ctx, func(ctx context.Context) ([]string, error) {
		return store.Get(ctx, e.store, func(r store.Reader) ([]string, error) { return r.Media() })
	})
}

// backup writes a copy of the database while it is in use.
func (e *Engine) backup(ctx context.Context, file string) error {
	b, ok := e.db.(standard.Backuper)
	if !ok {
		return chela.Errorf(chela.CodeInvalid, "this database cannot be copied while it is in use")
	}
	return backup.WithMedia(e.o.State, file, func() error { return b.Backup(ctx, file) })
}

// channelErrors returns the configured channels, with why one is not running.
func (e *Engine) channelErrors() map[string]string {
	out := map[string]string{}
	for name, accounts := range e.channels.States() {
		out[name] = ""
		for _, err := range accounts {
			if err != nil {
				out[name] = err.Error()
			}
		}
	}
	return out
}

// serve serves a listener until it is closed.
func (e *Engine) serve(l net.Listener, h http.Handler) {
	e.serving.Go(func() {
		if err := e.gateway.Serve(l, h); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			e.o.Log.Error("gateway stopped serving", "address", l.Addr().String(), "err", err)
		}
	})
}

// owner authenticates connections from inside the state directory, which is open
// to its owner only.
func owner(credential string) gateway.Authenticator { return gateway.Trust(chela.Owner(credential)) }

// EntryPoints returns the methods of the gateway and the HTTP routes of its port,
// as they are served. There are no routes without a port.
func (e *Engine) EntryPoints() ([]rpc.MethodInfo, []httpapi.Route) {
	return e.gateway.MethodInfos(), e.web
}

// Dial connects to the engine's gateway over memory.
func (e *Engine) Dial(ctx context.Context) (net.Conn, error) { return e.pipe.Dial(ctx) }

// Close stops the engine. Runs in progress get time to end, and their clients see
// them end; then clients are disconnected. Unfinished work resumes at the next
// start. Close takes little longer than ctx lasts.
func (e *Engine) Close(ctx context.Context) error {
	return e.close(ctx, wire.Shutdown{Reason: "gateway stopping"})
}

// CloseForRestart is Close for an engine that is started again immediately; clients
// are told so.
func (e *Engine) CloseForRestart(ctx context.Context) error {
	return e.close(ctx, wire.Shutdown{Reason: "gateway restarting", RestartMs: restartTime.Milliseconds()})
}

// restartTime is the longest duration of a restart, for clients.
const restartTime = 2 * time.Second

// disconnectTime is how long clients may take to receive the message that the
// gateway stops when ctx has ended already.
const disconnectTime = 500 * time.Millisecond

func (e *Engine) close(ctx context.Context, why wire.Shutdown) error {
	e.draining.Store(true)
	var errs []error
	orderly := false // all commands of this and earlier processes have ended
	if e.work != nil {
		if orderly = e.work.Stop(ctx); !orderly {
			e.o.Log.Warn("work did not end in time; it resumes at the next start")
		}
		orderly = orderly && e.sweepErr == nil
		e.executor.Wait(ctx)
	}
	last, cancel := atLeast(ctx, disconnectTime)
	defer cancel()
	if e.outbound != nil {
		e.outbound.Cancel()
	}
	if e.gateway != nil {
		errs = append(errs, e.gateway.Shutdown(last, why))
	}
	e.closeListeners()
	if e.outbound != nil && !e.outbound.Stop(last) || !wait(last, &e.serving) {
		errs = append(errs, errors.New("stop: a part of the gateway did not end in time"))
	}
	if e.db != nil {
		errs = append(errs, e.db.Close())
	}
	if e.files != nil {
		errs = append(errs, e.files.Close())
	}
	switch {
	case e.lock == nil:
	case orderly:
		errs = append(errs, e.lock.Leave())
	default:
		errs = append(errs, e.lock.Unlock())
	}
	return errors.Join(errs...)
}

// atLeast returns a context that ends with ctx, but not before d has passed.
func atLeast(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	end := time.Now().Add(d)
	if t, ok := ctx.Deadline(); ok && t.After(end) {
		end = t
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

// wait waits for a group, and reports whether it ended before ctx.
func wait(ctx context.Context, group *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) closeListeners() {
	if e.pipe != nil {
		e.pipe.Close()
	}
	if e.socket != nil {
		e.socket.Close()
	}
	if e.port != nil {
		e.port.listener.Close()
	}
	if e.ui != nil {
		e.ui.Close()
	}
}
