package app

import (
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

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/channel"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/deliver"
	"github.com/chela-ai/chela/internal/dispatch"
	"github.com/chela-ai/chela/internal/egress"
	"github.com/chela-ai/chela/internal/endpoint"
	"github.com/chela-ai/chela/internal/gateway"
	"github.com/chela-ai/chela/internal/hook"
	"github.com/chela-ai/chela/internal/httpapi"
	"github.com/chela-ai/chela/internal/inbound"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/lane"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/media"
	"github.com/chela-ai/chela/internal/meter"
	"github.com/chela-ai/chela/internal/method/system"
	"github.com/chela-ai/chela/internal/prompt"
	"github.com/chela-ai/chela/internal/route"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/standard"
	"github.com/chela-ai/chela/internal/statedir"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/store/sqlite"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/upkeep"
	"github.com/chela-ai/chela/wire"
)

// Version is what `chela version` prints.
const Version = "0.1.0"

// cacheBytes bounds the compiled transcripts of all sessions together.
const cacheBytes = 48 << 20

// Options is what an engine is made of. Tests give their own HTTP client,
// channels and steps; the product leaves those out.
type Options struct {
	Log    *slog.Logger
	State  string            // state directory, absolute
	Config settings.Sections // the configuration
	// ConfigPath is its file, to be shown; empty: there is none.
	ConfigPath string
	Env        func(string) string // environment variables: keys, the home directory
	// EnvOf returns them when the configuration is another one; nil: the same.
	EnvOf func(settings.Sections) func(string) string
	// Environ is where commands get their variables from; nil: os.Environ().
	Environ []string
	HTTP    *http.Client // the way to models; nil: the network

	// Channels are the messaging accounts by channel name.
	Channels map[string]channel.Channel
	Limits   map[string]channel.Limits

	// Tools, and hooks of the tool door, beside those of this program.
	Tools  []tool.Tool
	Before []hook.Before
	After  []hook.After

	// Providers answer in place of those that the configuration describes, by
	// their ids.
	Providers map[string]llm.Provider
	// NoProbe keeps the choice of a model from asking the ports of this machine.
	NoProbe bool

	// Secrets is told the secrets that are known; nil: a Redactor of its own.
	Secrets *secret.Redactor

	// Step is called at named points of a run; see dispatch.Options.
	Step func(string)
	// Wrap stands between the engine and its store; nil: nothing does.
	Wrap func(store.Store) store.Store
	// Sole says that the process is the engine's alone, and its settings too.
	Sole bool
	// NoSocket keeps other processes from attaching.
	NoSocket bool
	// Listen opens the gateway's port; nil: there is none.
	Listen *endpoint.Listen
}

// place is what the gateway's port belongs to.
func (o *Options) place() endpoint.Place {
	return endpoint.Place{Log: o.Log, State: o.State, Env: o.Env, Secrets: o.Secrets}
}

// Engine is the running application.
type Engine struct {
	o     Options
	db    *sqlite.DB
	files *media.Files
	bus   *bus.Bus
	post  *deliver.Worker
	pipe  *gateway.Pipe
	sock  net.Listener
	port  *port    // nil: there is none
	ui    *os.Root // files of the Control UI; may be nil
	web   []httpapi.Route
	gate  *gateway.Server
	tools *invoke.Door
	desk  *invoke.Desk // for calls of tools that no model asks for
	meter *meter.Meter
	lock  *statedir.Lock
	stop  context.CancelFunc // ends what takes messages and works on them
	quit  context.CancelFunc // ends what sends answers
	work  sync.WaitGroup     // parts that stop before clients are told
	parts sync.WaitGroup     // parts that stop after it

	started time.Time
	boot    string
	profile atomic.Pointer[profiles] // of the configuration that is in force
	lanes   *lane.Lanes
	store   store.Store
	reload  reload
	state   system.Options

	draining atomic.Bool   // it is about to end
	again    chan struct{} // a start is asked for

	mu    sync.Mutex
	ended map[string]error // parts that ended though they should not
}

// New starts an engine on the state directory. statedir.ErrOwned is in the chain of the
// error when another process owns it.
func New(ctx context.Context, o Options) (_ *Engine, err error) {
	pile()
	e := &Engine{o: o, started: time.Now(), boot: uuid.NewString(), meter: meter.New(), ended: map[string]error{}, again: make(chan struct{}, 1)}
	lock, err := statedir.Own(o.State)
	if err != nil {
		return nil, err
	}
	e.lock = lock
	defer func() {
		if err != nil {
			e.Close(context.WithoutCancel(ctx))
		}
	}()
	opts, err := settings.Read(o.Config)
	if err != nil {
		return nil, err
	}
	if e.o.Secrets == nil {
		e.o.Secrets = new(secret.Redactor)
	}
	if err := e.listen(ctx); err != nil {
		return nil, err
	}
	e.db, err = sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(o.State, databaseName), Log: o.Log})
	if err != nil {
		return nil, damaged(err)
	}
	var st store.Store = e.db
	if o.Wrap != nil {
		st = o.Wrap(st)
	}
	if e.files, err = openMedia(&opts, o.State); err != nil {
		return nil, err
	}
	e.reload.keys = keysAt(o.State)
	e.store, e.bus, e.lanes = st, bus.New(o.Log), new(lane.Lanes)
	e.post = e.delivery(st)
	p, err := e.prepare(ctx, e.o, &opts, &kept{
		commands: background(&opts, st, o), ruleFile: allowlist.NewFile(filepath.Join(o.State, allowlist.FileName)), files: map[string]*prompt.Workspace{},
	}, nil)
	if err != nil {
		return nil, err
	}
	e.enforce(p)
	return e, e.assemble(ctx, st)
}

// now returns what holds for the next run.
func (e *Engine) now() *profiles { return e.profile.Load() }

// knows reports whether there is such an agent.
func (e *Engine) knows(id chela.AgentID) bool { return e.now().opts.Has(id) }

// assemble makes the parts and starts them.
func (e *Engine) assemble(ctx context.Context, st store.Store) error {
	log := e.o.Log
	events, post := e.bus, e.post
	cache := session.NewCache(cacheBytes)

	e.tools = e.newDoor()
	conductor := dispatch.New(dispatch.Options{
		Log: log, Store: st, Bus: events, Owner: e.boot, Lanes: e.lanes, Cache: cache,
		Door: e.tools, Profile: func(m session.Meta) (*dispatch.Profile, error) { return e.now().of(m) },
		Ended: []dispatch.Ended{post.Ended}, Step: e.o.Step,
	})
	gate := inbound.New(inbound.Options{
		Log: log, Store: st, Bus: events, Route: e.route, Version: Version, Started: e.started,
		Reserve: func(key chela.SessionKey) inbound.Place {
			if p := conductor.Reserve(key); p != nil {
				return p
			}
			return nil
		},
		Live: conductor.Live, Abort: conductor.Abort, Decide: conductor.Decide, Tools: e.offered, Configuration: e.hand,
		Reset:   func(session.Meta) session.ResetPolicy { return e.now().opts.Session.Reset },
		Catalog: func() llm.Catalog { return e.now().models.Catalog() },
		Model:   func(m session.Meta) llm.Model { return e.now().model(m) },
		Inherit: func(m session.Meta) inbound.Settings { return e.now().inherited(m) },
		Chunks:  post.Chunks, Access: e.access, Keep: e.files.Keep,
	})
	e.desk = e.newDesk(e.tools, st)
	e.gate = e.server(parts{store: st, bus: events, gate: gate, conductor: conductor})
	if err := e.open(st, events); err != nil {
		return err
	}

	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	send, quit := context.WithCancel(context.WithoutCancel(ctx))
	e.stop, e.quit = stop, quit
	if e.lock.Killed() {
		e.start(&e.work, "sweep", func() error {
			_, err := standard.Sweep(run, log, e.o.State)
			return err
		})
	}
	e.start(&e.work, "upkeep", func() error {
		return upkeep.Work{Log: log, Store: st, Check: e.db.Check, Sweep: sweeper{e.files, st}.sweep, Deleted: deletions(run, events)}.Run(run)
	})
	e.start(&e.work, "conductor", func() error { return conductor.Run(run) })
	e.start(&e.work, "configuration", func() error { return e.watch(run) })
	e.start(&e.work, "commands", func() error { return e.now().serveCommands(run, events) })
	e.start(&e.work, "rest", func() error { return rest(run, events) })
	if e.o.Sole && e.o.Env("GOMAXPROCS") == "" {
		e.start(&e.work, "processors", func() error { return processors(run, events) })
	}
	for name, ch := range e.o.Channels {
		e.start(&e.work, "channel "+name, func() error {
			return ch.Run(run, func(ctx context.Context, in chela.Inbound) error { return gate.Receive(ctx, in) })
		})
	}
	e.start(&e.parts, "delivery", func() error { return post.Run(send) })
	e.pipe = gateway.NewPipe()
	e.start(&e.parts, "gateway", func() error { return e.gate.Serve(e.pipe, e.gate.Upgrade(owner("process"))) })
	if !e.o.NoSocket {
		sock, err := statedir.Listen(e.o.State)
		if err != nil {
			return err
		}
		e.sock = sock
		e.start(&e.parts, "gateway", func() error { return e.gate.Serve(sock, e.gate.Upgrade(owner("socket"))) })
	}
	return nil
}

// open serves other programs on the gateway's port.
func (e *Engine) open(st store.Store, events *bus.Bus) error {
	if e.port == nil {
		return nil
	}
	p := e.port
	var err error
	if p.door, p.token, p.made, err = p.o.Door(e.o.place(), st, e.asked); err != nil {
		return err
	}
	e.o.Secrets.Add(p.token)
	if p.o.Opens(e.o.place(), hooksToken(e.o)) {
		e.o.Log.Warn("hooks.token is the credential of the gateway: whoever may call a hook may do everything", "hint", "openssl rand -hex 24")
	}
	e.meter.Watch(events)
	routes, err := e.routes(p, st)
	if err != nil {
		return err
	}
	e.web = httpapi.Routes(routes)
	l := p.lobby.Next()
	e.start(&e.parts, "port", func() error { return e.gate.Serve(l, httpapi.New(routes)) })
	attrs := []any{"url", p.url, "auth", p.door.Mode()}
	if p.pin != "" {
		attrs = append(attrs, "certificate", p.pin)
	}
	e.o.Log.Info("gateway listens", attrs...)
	return nil
}

// start runs a part until the engine is closed, in the group with which it
// stops.
func (e *Engine) start(group *sync.WaitGroup, name string, run func() error) {
	group.Go(func() {
		if err := run(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			e.o.Log.Error("part ended", "part", name, "err", err)
			e.mu.Lock()
			e.ended[name] = err
			e.mu.Unlock()
		}
	})
}

// owner says who a connection from inside the state directory is: the
// directory is open to its owner only.
func owner(credential string) gateway.Authenticator { return gateway.Trust(chela.Owner(credential)) }

// channel returns a messaging account by the name of its channel.
func (e *Engine) channel(name string, _ chela.AccountID) (channel.Channel, channel.Limits, bool) {
	ch, ok := e.o.Channels[name]
	return ch, e.o.Limits[name], ok
}

// Dial connects to the engine's gateway over memory.
func (e *Engine) Dial(ctx context.Context) (net.Conn, error) { return e.pipe.Dial(ctx) }

// Close stops the engine. Runs in progress get time to end, and their clients
// see it; then clients are told, and what is not done by then is resumed at the
// next start. It takes little longer than ctx lasts.
func (e *Engine) Close(ctx context.Context) error {
	return e.close(ctx, wire.Shutdown{Reason: "gateway stopping"})
}

// Renew is Close for an engine that is started again at once: clients are told
// that it comes back.
func (e *Engine) Renew(ctx context.Context) error {
	return e.close(ctx, wire.Shutdown{Reason: "gateway restarting", RestartMs: back.Milliseconds()})
}

// back is how long a restart takes at most, as clients are told.
const back = 2 * time.Second

// parting is how long clients may take to hear that the gateway stops, when
// there is no other time left.
const parting = 500 * time.Millisecond

func (e *Engine) close(ctx context.Context, why wire.Shutdown) error {
	e.draining.Store(true)
	var errs []error
	orderly := false // no command is left, neither ours nor of the owner before
	if e.stop != nil {
		e.stop()
		if orderly = ends(ctx, &e.work); !orderly {
			e.o.Log.Warn("work did not end in time; it is gone on with at the next start")
		}
		e.mu.Lock()
		orderly = orderly && e.ended["sweep"] == nil
		e.mu.Unlock()
		e.tools.Wait(ctx)
		e.quit()
	}
	if e.gate != nil {
		last, cancel := longer(ctx, parting)
		defer cancel()
		errs = append(errs, e.gate.Leave(last, why))
		e.closeListeners()
		if !ends(last, &e.parts) {
			errs = append(errs, errors.New("stop: a part of the gateway does not end"))
		}
	}
	if e.gate == nil {
		e.closeListeners()
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

// longer returns a context that ends with ctx, but not before d has passed.
func longer(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	end := time.Now().Add(d)
	if t, ok := ctx.Deadline(); ok && t.After(end) {
		end = t
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

// ends waits for a group of parts, and reports whether it ended before ctx.
func ends(ctx context.Context, group *sync.WaitGroup) bool {
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
	if e.sock != nil {
		e.sock.Close()
	}
	if e.port != nil {
		e.port.lobby.Close()
	}
	if e.ui != nil {
		e.ui.Close()
	}
}

// route says where messages from an address go.
func (e *Engine) route(a chela.Address) route.Route {
	t := route.Table{DMScope: route.DMScope(e.now().opts.Session.DMScope)}
	return t.Resolve(a)
}

// access decides whether a principal may have the agent work, and as whom.
func (e *Engine) access(who chela.Principal, in chela.Inbound) (chela.Principal, error) {
	return e.now().opts.Senders().Access(who, in)
}

// modelClient is the way out for providers: to their services, wherever those
// are. It waits for no host for ever, and for an answer as long as its caller.
func modelClient(o *settings.Settings, env func(string) string) *http.Client {
	return egress.Client(egress.Options{
		Policy: egress.Policy{Hosts: o.Models.Hosts()}, Proxy: egress.Proxies(env), ProxyResolves: true,
		Connect: 30 * time.Second, Idle: 64,
	})
}
