package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"encoding/json"

	"github.com/chela-ai/chela/internal/app/backup"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/inventory"
	"github.com/chela-ai/chela/internal/app/methods"
	"github.com/chela-ai/chela/internal/app/metrics"
	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/services"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/app/trigger"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/daemon"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/budget"
	"github.com/chela-ai/chela/internal/engine/canvas"
	"github.com/chela-ai/chela/internal/engine/channels"
	"github.com/chela-ai/chela/internal/engine/cron"
	"github.com/chela-ai/chela/internal/engine/deliver"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/export"
	"github.com/chela-ai/chela/internal/engine/forget"
	"github.com/chela-ai/chela/internal/engine/heartbeat"
	"github.com/chela-ai/chela/internal/engine/history"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/message"
	"github.com/chela-ai/chela/internal/engine/nodes"
	"github.com/chela-ai/chela/internal/engine/notice"
	"github.com/chela-ai/chela/internal/engine/relay"
	"github.com/chela-ai/chela/internal/engine/restart"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/engine/spawn"
	"github.com/chela-ai/chela/internal/engine/tasks"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/kit/secret"
	webhookchannel "github.com/chela-ai/chela/internal/plugin/channel/webhook"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/httpapi"
	"github.com/chela-ai/chela/internal/surface/modelapi"
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

	HTTP      *http.Client            // for model providers and the hosts of channels; nil: the network
	Providers map[string]llm.Provider // used instead of the configured providers, by id
	NoProbe   bool                    // do not look for model servers on this machine
	NoGit     bool                    // do not make repositories of new workspaces
	NoSocket  bool                    // other processes cannot attach
	Step      func(string)            // called at named points of a run; see runner.Options
	// Run runs a program of this machine to its end; nil: standard.RunProgram.
	Run  daemon.Runner
	Now  func() time.Time              // the wall clock of the schedule; nil: time.Now
	Wrap func(store.Store) store.Store // replaces the engine's store; nil: it is used as it is
}

// endpointEnv is what the gateway's port may use.
func (o *Options) endpointEnv() endpoint.Env {
	return endpoint.Env{Log: o.Log, State: o.State, Env: o.Env, Secrets: o.Secrets}
}

// Engine is the running application.
//
// Its parts are made by New and assemble and stay; what changes later is of types for concurrent
// use, or says so. Parts that end before others are in two supervisors: what makes work, and what
// carries answers out.
type Engine struct {
	o         Options
	registry  *standard.Registry
	lock      *statedir.Lock
	db        standard.Database
	database  string      // its path or address
	standby   standby     // while another gateway has the database
	store     store.Store // db, or what Options.Wrap made of it
	files     *media.Files
	holder    *leaseholder.Holder // of the leases of this start
	bus       *bus.Bus
	lanes     *lane.Lanes
	hooks     *hook.Points
	found     atomic.Pointer[[]hookdir.Hook] // the hooks of folders
	active    hookSessions
	executor  *invoke.Executor
	direct    *invoke.Direct // for tool calls that no model makes
	delivery  *deliver.Worker
	actor     *message.Actor
	notices   notice.Writer
	budgets   *budget.Budgets
	channels  *channels.Supervisor
	spawner   *spawn.Spawner
	relay     *relay.Relay
	restarts  restart.Requests
	proposed  *proposal.Shelf // proposals of skills
	asked     bool            // the assistant asked for this start
	cron      *cron.Scheduler
	history   *history.History
	nodes     *nodes.Registry
	canvas    *canvas.Host
	webhooks  *webhook.Acceptor
	beats     *heartbeat.Service
	dispatch  *dispatch.Dispatcher
	forgetter *forget.Forgetter
	metrics   *metrics.Metrics
	gateway   *methods.Gateway
	inbox     *inbound.Gate
	models    *modelapi.API // of the port; nil: there is none
	started   time.Time
	instance  string // id of this start

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
	draining atomic.Bool     // the engine is stopping; nothing new is put in force
	restart  chan struct{}   // cap 1: a restart was requested
}

// New starts an engine on the state directory. The chain of the error contains
// statedir.ErrOwned when another process owns the directory.
func New(ctx context.Context, o Options) (_ *Engine, err error) {
	if o.Registry == nil {
		o.Registry = standard.New()
	}
	if o.Run == nil {
		o.Run = standard.RunProgram
	}
	e := &Engine{
		o:        o,
		registry: o.Registry,
		started:  time.Now(),
		instance: uuid.NewString(),
		metrics:  metrics.New(),
		restart:  make(chan struct{}, 1),
	}
	if e.o.Secrets == nil {
		e.o.Secrets = new(secret.Redactor)
	}
	e.standby.log = o.Log
	if !o.NoSocket {
		e.standby.state = o.State
	}
	e.learn(o.Config)
	// Nothing in the directory is touched without the lock. From here on Close ends whatever has
	// been made, so that a failed start leaves nothing behind.
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
	// Before the store, which may take long to open, or wait for another gateway: clients get the
	// answer that this one is starting, rather than none.
	if err := e.listen(ctx); err != nil {
		return nil, err
	}
	if err := e.openStore(ctx, &opts); err != nil {
		return nil, err
	}
	if e.holder, err = leaseholder.New(ctx, leaseholder.Options{
		Log:   o.Log,
		Store: e.store,
		ID:    e.instance,
		Step:  o.Step,
		Held:  e.held(),
	}); err != nil {
		return nil, err
	}
	e.bus, e.lanes, e.hooks = bus.New(o.Log), new(lane.Lanes), hook.New(o.Log)
	// The parts that follow need each other: messages are divided as the channel wants, and
	// the owner is told about a channel in another one. A function below may name a part
	// that is made after it, since none is called before run.
	e.notices = notice.New(notice.Options{OwnerChat: e.current.IsOwnerChat, Sends: e.current.Sends,
		Chunks: func(a chela.Address) chunk.Options { return e.delivery.Chunks(a) }})
	e.channels = channels.New(channels.Options{
		Log:       o.Log,
		Store:     e.store,
		Bus:       e.bus,
		Notices:   e.notices,
		Moved:     e.groupMoved,
		Owner:     e.holder,
		Factories: append(e.registry.Channels(), e.outgoingWebhooks()),
		Env:       channelEnv(o.Env, o.HTTP),
		Dir:       filepath.Join(o.State, "channels"),
		Menu:      menu(),
	})
	e.delivery = deliver.New(deliver.Options{
		Log:       o.Log,
		Store:     e.store,
		Bus:       e.bus,
		Hooks:     e.hooks,
		Load:      e.files.Load,
		Say:       e.current.Say,
		Style:     e.current.Style,
		Sends:     e.current.Sends,
		Track:     e.holder.Track,
		Channel:   e.channels.Acquire,
		Elsewhere: e.channels.Elsewhere,
		Limits:    e.channels.Limits,
		Timeout: func(row outbox.Row) time.Duration {
			if row.Origin.Kind != chela.OriginSubagent {
				return 0
			}
			return e.current.Subagents(row.Session.Agent()).AnnounceTimeout()
		},
		Sent: []deliver.Sent{
			func(row outbox.Row) func(store.Tx) error { return e.beats.Sent(row) },
			func(row outbox.Row) func(store.Tx) error { return e.cron.Sent(row) },
		},
	})
	e.actor = message.New(message.Options{
		Store:    e.store,
		Publish:  e.bus.Publish,
		Accounts: e.channels.Accounts,
		Acquire:  e.channels.Acquire,
		Track:    e.holder.Track,
		Chunks:   e.delivery.Chunks,
		Await:    e.delivery.Await,
		Sends:    e.current.Sends,
	})
	e.budgets = budget.New(budget.Options{Store: e.store, Bus: e.bus, Notices: e.notices})
	e.beats = heartbeat.New(heartbeat.Options{
		Log:    o.Log,
		Store:  e.store,
		Bus:    e.bus,
		Hooks:  e.hooks,
		Config: &e.current,
		Ready:  e.channels.Ready,
		Chunks: e.delivery.Chunks,
		Step:   o.Step,
	})
	e.spawner = spawn.New(spawn.Options{
		Log: o.Log, Store: e.store, Bus: e.bus, Config: &e.current, Hooks: e.hooks,
		Stop: func(tx store.Tx, key chela.SessionKey) (func(), error) { return e.dispatch.StopIn(tx, key) },
		Delete: func(ctx context.Context, key chela.SessionKey) error {
			_, err := e.dispatch.DeleteSession(ctx, key, nil)
			return err
		},
		Thread: e.actor.Thread,
	})
	e.canvas = canvas.New(canvas.Options{
		Log:       o.Log,
		Config:    e.current.Canvas,
		Workspace: func(id chela.AgentID) string { return e.now().Workspace(id) },
		Publish:   e.bus.Publish,
		URL:       portInfo{e}.Pages,
	})
	e.nodes = nodes.New(nodes.Options{Log: o.Log, Store: e.store, Policy: e.current.Nodes, Params: e.canvas.Params})
	e.cron = e.scheduler()
	e.history = e.newHistory()
	e.relay = relay.New(relay.Options{
		Store: e.store, Bus: e.bus, Config: &e.current,
		Redact: func(s string) string { return secret.RedactCredentials(e.o.Secrets.Redact(s)) },
	})
	e.restarts = restart.New(restart.Options{Store: e.store, Owner: e.instance, Sends: e.current.Sends,
		Chunks: e.delivery.Chunks})
	e.proposed = &proposal.Shelf{
		Dir: filepath.Join(o.State, "proposals"), Step: o.Step, Record: e.recordSkill,
		Skills: func(id chela.AgentID) string { return e.now().SkillsDir(id) },
	}
	if err := e.newWebhooks(); err != nil {
		return nil, err
	}
	if e.profiles, err = profile.NewFactory(profile.Options{
		Log:      o.Log,
		Version:  Version,
		Instance: e.instance,
		State:    o.State,
		Hooks:    e.hooks,
		Budgets:  e.budgets,
		Environ:  o.Environ,
		Getenv:   o.Env,
		Registry: e.registry,
		Store:    e.store,
		Bus:      e.bus,
		Files:    e.files,
		Spawner:  e.spawner,
		Schedule: e.cron,
		Journal:  e.history,
		Skills:   skillRegistry{e},
		Relay:    e.relay,
		Nodes:    e.nodes,

		Canvas:       e.canvas,
		Gateway:      e.assistantGateway(),
		Proposals:    e.proposed,
		Act:          e.actor.Do,
		Redact:       e.o.Secrets.Redact,
		HTTP:         o.HTTP,
		Providers:    o.Providers,
		NoProbe:      o.NoProbe,
		NoGit:        o.NoGit,
		Reserved:     func(dir string) bool { return inventory.Holds(o.State, dir) },
		ToolsChanged: func() { e.remake("tools of MCP servers changed") },
		Hide:         func(v secret.Value) { e.o.Secrets.Add(v) },

		Tell: e.tellOwner,
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

// openStore opens the database and the directory of media files. A store that another gateway
// owns is waited for, if this one has a port; without one, a person waits for a command, which
// fails.
func (e *Engine) openStore(ctx context.Context, opts *settings.Settings) (err error) {
	s, err := e.registry.StoreOf(e.o.Config.Section, e.o.Env, e.o.State)
	if err != nil {
		return err
	}
	e.database = filepath.Join(e.o.State, s.File)
	o := standard.StoreOptions{Log: e.o.Log, Used: statedir.Used(e.o.State)}
	if e.port != nil {
		o.Standby = e.standby.wait
	}
	e.db, err = s.Open(ctx, e.database, o)
	e.standby.end()
	if err != nil {
		return cmp.Or(statedir.Writable(e.o.State), err)
	}
	if l, ok := e.db.(standard.Located); ok {
		e.database = l.Location()
		e.o.Log.Info("conversations are kept in the database of storage.postgres", "database", e.database)
		if file := filepath.Join(e.o.State, e.registry.DefaultStore().File); exists(file) {
			e.o.Log.Warn("the database in the state directory is not used; its conversations are not in the other one",
				"file", file)
		}
	}
	e.store = e.db
	if e.o.Wrap != nil {
		e.store = e.o.Wrap(e.store)
	}
	e.files, err = media.Open(filepath.Join(e.o.State, media.Dir), opts.Agent.ImageSide)
	return err
}

// now returns the Generation in force, which the next run uses.
func (e *Engine) now() *profile.Generation { return e.current.Load() }

// assemble makes the other parts and starts them.
func (e *Engine) assemble(ctx context.Context) error {
	o := &e.o
	hooks, err := e.makeHooks(o.Config, e.now(), o.Env)
	if err != nil {
		return err
	}
	e.useHooks(hooks)
	e.observeSessions()
	e.watchRuns()
	own := hook.New(o.Log)
	own.AfterToolCall.Add(e.metrics.Hook())
	e.hooks.Use("metrics", own)
	e.executor = invoke.New(invoke.Options{
		Log:         o.Log,
		Redact:      o.Secrets.Redact,
		StoreImage:  e.files.StorePart,
		StoreOutput: e.files.PutOutput,
		Hooks:       e.hooks,
	})
	e.direct = invoke.NewDirect(invoke.DirectOptions{
		Executor: e.executor, Store: e.store, Default: chela.DefaultAgent, Agent: e.current.HasAgent,
		Direct: e.current.Direct, Scope: e.current.Scope,
	})
	e.dispatch = dispatch.New(dispatch.Options{
		Lanes: e.lanes,
		Runner: runner.Options{
			Log:      o.Log,
			Store:    e.store,
			Bus:      e.bus,
			Owner:    e.holder,
			Executor: e.executor,
			Hooks:    e.hooks,
			Ending:   e.ending,
			Profiles: &e.current,
			Budgets:  e.budgets,
			Ended: []runner.Ended{e.beats.Ended, e.delivery.Ended, e.spawner.Ended, e.relay.Ended,
				e.cron.Ended, e.webhooks.Ended},
			Children: e.spawner,
			Step:     o.Step,
		},
	})
	list := tasks.New(tasks.Options{
		Store: e.store, Abort: e.dispatch.Abort, Kill: e.profiles.KillCommand,
		Changed: func(t task.Task) {
			e.bus.Publish(chela.Event{Session: t.Requester, Stream: chela.StreamTask, Text: t.ID})
		},
	})
	exporter := e.exporter()
	e.forgetter = e.makeForgetter()
	in := e.inbound(e.dispatch, exporter)
	e.inbox = in
	e.gateway = methods.New(methods.Options{
		Log:        o.Log,
		Version:    Version,
		State:      o.State,
		Database:   e.database,
		Instance:   e.instance,
		Started:    e.started,
		Store:      e.store,
		Bus:        e.bus,
		Files:      e.files,
		Inbound:    in,
		Proposals:  e.proposed,
		Export:     exporter.Write,
		Forget:     e.forgetter,
		Dispatcher: e.dispatch,
		Direct:     e.direct,
		Channels:   e.channels,
		Act:        e.actor.Do,
		Tasks:      list,
		Nodes:      e.nodes,
		Canvas:     e.canvas,
		Scheduler:  e.cron,
		History:    e.history,
		Lanes:      e.lanes,
		Current:    &e.current,
		Config:     configuration{e},
		Redact:     o.Secrets.Redact,
		Port:       portInfo{e},

		Backup:        e.backup,
		Heartbeats:    e.beats.Settings,
		Voice:         voice{e},
		Hooks:         func() []hookdir.Hook { return *e.found.Load() },
		InstallHook:   e.installHook,
		InstallPlugin: e.installPlugin,

		SkillSource:     e.skillSource,
		MayInstallSkill: func(ctx context.Context, from string) error { return e.mayInstall(ctx, "skill", from) },
		RecordSkill:     e.recordSkill,
		RemovePlugin:    e.removePlugin,
		RefreshPlugins:  func() { e.remake(pluginsChanged) },
	})
	e.makers = e.serviceMakers()
	e.outbound, e.work = services.New(ctx, o.Log), services.New(ctx, o.Log)
	// Before the port is served: clients change files, too, and a change that one has begun
	// must not be taken for one that a killed process left.
	if e.lock.Killed() {
		e.recoverSkills()
	}
	if err := e.history.Recover(context.Background()); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := e.open(ctx); err != nil {
		return err
	}
	return e.run(in)
}

// run starts everything that works in the background, and serves connections.
func (e *Engine) run(in *inbound.Gate) error {
	o := &e.o
	accounts, err := e.channels.Prepare(o.Config.Section, e.now().Channels...)
	if err != nil {
		o.Log.Error("channels", "err", err) // the others run
	}
	e.channels.Apply(accounts) // before the delivery looks for them
	// Leases are renewed, and answers sent, until the last work has ended.
	e.outbound.Start("leases", e.holder.Run)
	e.outbound.Start("delivery", e.delivery.Run)
	if e.lock.Killed() { // the commands of the killed process may still run
		e.work.Start("sweep", func(ctx context.Context) error {
			e.sweepErr = e.registry.Sweep(ctx, o.Log, standard.SandboxEnv{State: o.State})
			return e.sweepErr
		})
	}
	if err := e.answerRestarts(); err != nil {
		o.Log.Error("tell who waits for this start", "err", err)
	}
	e.work.Start("dispatcher", together(e.dispatch.Run, e.profiles.RunCommands))
	e.work.Start("recordings", in.Run)
	e.work.Start("forgetting", e.resumeForgetting)
	e.work.Start("history", e.history.Run)
	e.work.Start("subagents", e.spawner.Run)
	e.work.Start("cron", e.cron.Run)
	e.work.Start("heartbeats", e.beats.Run)
	e.work.Start("configuration", e.watch)
	e.work.Start("hooks", e.watchHooks)
	e.work.Start("plug-ins", e.watchPlugins)
	e.discoverServers()
	e.work.Start("channels", func(ctx context.Context) error { return e.channels.Run(ctx, in.Receive) })
	if owned, ok := e.db.(standard.Owned); ok {
		e.work.Start("ownership", func(ctx context.Context) error { return e.watchOwnership(ctx, owned) })
	}
	plan, err := e.work.Prepare(e.makers, o.Config.Section)
	if err != nil {
		return err
	}
	e.work.Apply(plan)
	e.pipe = gateway.NewPipe()
	e.serve(e.pipe, e.gateway.Upgrade(owner("process")))
	e.startHooks()
	if o.NoSocket {
		return nil
	}
	if e.socket, err = statedir.Listen(o.State); err != nil {
		return err
	}
	e.serve(e.socket, e.gateway.Upgrade(owner("socket")))
	return nil
}

// jobFile returns the content of a file of jobs, if it has changed.
func (e *Engine) jobFile(path, since string) (raw []byte, stamp string, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.o.State, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	stamp = fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano())
	if stamp == since {
		return nil, stamp, nil
	}
	raw, err = os.ReadFile(path)
	return raw, stamp, err
}

// outgoingWebhooks returns the internal channel that sends the webhooks of jobs.
func (e *Engine) outgoingWebhooks() channel.Factory {
	return webhookchannel.Factory(cron.WebhookChannel, webhookchannel.Options{
		Token: func() secret.Value {
			v, err := e.current.Cron().Token.Resolve(e.o.Env)
			if err != nil {
				e.o.Log.Warn("cron.webhookToken; webhooks are sent without it", "err", err)
			}
			return v
		},
		Client: func() *http.Client {
			return egress.Client(egress.Options{
				Policy: egress.Policy{Hosts: e.current.Cron().Webhook.Hosts}, Proxy: egress.Proxies(e.o.Env), ProxyResolves: true,
			})
		},
	})
}

// scheduler makes the scheduler of jobs.
func (e *Engine) scheduler() *cron.Scheduler {
	commands := sync.OnceValue(func() *invoke.Direct { // there is no executor yet
		return invoke.NewDirect(invoke.DirectOptions{
			Executor: e.executor, Store: e.store, Default: chela.DefaultAgent, Agent: e.current.HasAgent, Scope: e.current.Scope,
			Direct: func() (deny, allow []string) { return nil, []string{policy.Commands} },
		})
	})
	checks := trigger.New(trigger.Options{
		Files: e.current.Files, HTTP: e.publicHTTP(),
		Run: func(ctx context.Context, who chela.Principal, agent chela.AgentID, command string) (string, error) {
			args, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				return "", err
			}
			a, err := commands().Do(ctx, who, invoke.DirectCall{Tool: e.tools(agent).Role(tool.RunsCommands), Args: args,
				Agent: string(agent)})
			if err == nil && a.Refusal != "" {
				err = errors.New(a.Text)
			}
			return trigger.Text(a.Result), err
		},
	})
	return cron.New(cron.Options{
		Log:    e.o.Log,
		Store:  e.store,
		Bus:    e.bus,
		Hooks:  e.hooks,
		Config: &e.current,
		Has:    e.channels.Has,
		Check:  checks.Check,
		Ready:  e.channels.Settled,
		Rows: func(base outbox.Row, text string) []outbox.Row {
			return outbox.Rows(base, text, e.delivery.Chunks(base.Address))
		},
		Abort: func(ctx context.Context, key chela.SessionKey, id chela.RunID) ([]chela.RunID, error) {
			return e.dispatch.Abort(ctx, key, id)
		},
		Delete: func(ctx context.Context, key chela.SessionKey,
			may func(store.Tx, session.Meta) (bool, error)) (bool, error) {
			return e.dispatch.DeleteIdle(ctx, key, may)
		},
		Journal: func() bool { return e.now().Settings.Undo.On() },
		File:    e.jobFile,
		Now:     e.o.Now,
		Step:    e.o.Step,
	})
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
func (e *Engine) inbound(d *dispatch.Dispatcher, x *export.Exporter) *inbound.Gate {
	return inbound.New(inbound.Options{
		Log:           e.o.Log,
		Store:         e.store,
		Bus:           e.bus,
		Version:       Version,
		Started:       e.started,
		Hooks:         e.hooks,
		Workspace:     func(id chela.AgentID) string { return e.now().Workspace(id) },
		Reserve:       d.Reserve,
		Redact:        e.o.Secrets.Redact,
		Live:          d.Live,
		StopRuns:      d.StopRuns,
		StopChildren:  d.StopOthers,
		Subagents:     e.spawner,
		Coders:        coders{&e.current, e.profiles},
		Thread:        e.actor.Thread,
		Agents:        e.current.Agents,
		Types:         e.current.Types,
		Decide:        d.Decide,
		Configuration: e.chatConfig,
		FixedConfig:   e.fixedConfig,
		Debug:         e.chatDebug,
		Chunks:        e.delivery.Chunks,
		StoreMedia:    e.files.Store,
		Fetch:         e.channels.Fetch,
		Route:         e.current.Route,
		Rules:         e.current.Admission,
		Access:        e.current.Access,
		Tools:         e.current.Offered,

		Reset:       e.current.Reset,
		Focus:       e.current.Focus,
		Transcribes: e.current.Transcribes,
		Transcribe:  e.current.Transcribe,
		Echo:        e.current.EchoTranscript,

		Mentions: e.current.Mentions,
		Aside:    d.Aside,
		Rights:   e.current.Rights,
		Allowed:  e.current.Commands,
		Admin:    e.chatAdmin,
		Bash:     e.shell().run,

		Skills:    e.current.Skills,
		CallSkill: e.callSkill,
		Catalog:   e.current.Catalog,
		Model:     e.current.Model,
		Unusable:  e.current.Unusable,
		Window:    e.current.Window,

		Inspect:   d.Inspect,
		Export:    x.Save,
		Undo:      e.history,
		Zone:      e.current.Location,
		Inherit:   e.current.Inherited,
		Forget:    e.forgetter,
		Sends:     e.current.Sends,
		Limits:    e.current.Limits,
		Voice:     voice{e},
		OwnerChat: e.current.IsOwnerChat,
		Elevated:  e.current.Elevated,
		Exec:      e.current.Exec,
	})
}

// coders is what commands do with coding agents.
type coders struct {
	*profile.Current
	*profile.Factory
}

// exporter makes the part that exports sessions. Exports leave the machine, so that
// whatever looks like a credential is hidden, too.
func (e *Engine) exporter() *export.Exporter {
	return export.New(export.Options{
		Store:   e.store,
		Version: Version,
		Preview: e.dispatch.Preview,
		Fill:    e.files.Fill,
		Scaled:  e.files.FillScaled,
		Files:   e.current.Files,
		Redact:  func(s string) string { return secret.Mask(e.o.Secrets.Redact(s)) },
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
		Rest: e.dispatch.Rest, Sweep: e.sweepMedia, DeleteSession: e.dispatch.DeleteIdle,
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

// menu returns the commands that chat apps list: those for which nobody has to be an
// administrator.
func menu() []channel.Command {
	var out []channel.Command
	for _, c := range inbound.Commands() {
		if c.Scope != chela.ScopeAdmin {
			out = append(out, channel.Command{Name: c.Name, Doc: c.Help})
		}
	}
	return out
}

// channelEnv returns what all channels may use. trusted reaches the hosts that the
// configuration names; nil: a client under the egress rules.
func channelEnv(getenv func(string) string, trusted *http.Client) channel.Env {
	options := func(hosts []string) egress.Options {
		return egress.Options{Policy: egress.Policy{Hosts: hosts}, Proxy: egress.Proxies(getenv), ProxyResolves: true}
	}
	return channel.Env{
		Getenv: getenv, HTTP: egress.Client(options(nil)),
		Trusted: func(hosts ...string) *http.Client {
			if trusted != nil {
				return trusted
			}
			return egress.Client(options(hosts))
		},
		Dial: func(ctx context.Context, addr string, hosts ...string) (net.Conn, error) {
			return egress.New(options(hosts)).Dial(ctx, "tcp", addr)
		},
	}
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
		st, _ := e.registry.StoreOf(e.o.Config.Section, e.o.Env, e.o.State) // it was opened, so that there is one
		return &chela.Error{Code: chela.CodeInvalid, Message: "chela does not copy this database: its own programs do",
			Hint: st.Hint}
	}
	g := e.now()
	if err := backup.Private(file, e.o.State, g.Home(), g.Settings); err != nil {
		return err
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
		if err := e.gateway.Serve(l, h); err != nil && !errors.Is(err, net.ErrClosed) &&
			!errors.Is(err, http.ErrServerClosed) {
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

// The order: work ends and hooks are told, while clients and channels still get its results. Then
// delivery and clients are told to end at the same time, since either may take as long as ctx
// allows. Rows are written until then, so that the database is closed last. The lock is left in
// good order only if no command can be running any more; otherwise the next start looks for them,
// as after a kill.
func (e *Engine) close(ctx context.Context, why wire.Shutdown) error {
	e.draining.Store(true)
	var errs []error
	if owned, ok := e.db.(standard.Owned); ok && !owned.Held() { // nothing that ends now could be stored
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lostTime)
		defer cancel()
	}
	orderly := false // all commands of this and earlier processes have ended
	if e.work != nil {
		if orderly = e.work.Stop(ctx); !orderly {
			e.o.Log.Warn("work did not end in time; it resumes at the next start")
		}
		orderly = orderly && e.sweepErr == nil
	}
	e.stopHooks(ctx, why.RestartMs > 0)
	last, cancel := atLeast(ctx, disconnectTime)
	defer cancel()
	if e.models != nil {
		e.models.Close(last)
	}
	if e.outbound != nil {
		e.outbound.Cancel()
	}
	if e.gateway != nil {
		errs = append(errs, e.gateway.Shutdown(last, why))
		e.nodes.Wait()
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

// forwardStop limits the end of the forwarding of Tailscale's program.
const forwardStop = 3 * time.Second

// stopForwarding ends the forwarding of Tailscale's program to the port.
func (e *Engine) stopForwarding() {
	t := e.port.tailnet
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), forwardStop)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		e.o.Log.Warn("end the forwarding of Tailscale", "err", err)
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
		if e.port.silence != nil {
			e.port.silence()
		}
		e.port.listener.Close()
		e.stopForwarding()
	}
	if e.ui != nil {
		e.ui.Close()
	}
}
