// Package methods makes the gateway with all of its methods. The families of
// methods are packages of surface/method; each gets the few functions that it
// declares.
package methods

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/skillsource"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/installdir"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/canvas"
	"github.com/chela-ai/chela/internal/engine/channels"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/export"
	"github.com/chela-ai/chela/internal/engine/history"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/nodes"
	"github.com/chela-ai/chela/internal/engine/tasks"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/method/agents"
	"github.com/chela-ai/chela/internal/surface/method/approvals"
	browsermethods "github.com/chela-ai/chela/internal/surface/method/browser"
	canvasmethods "github.com/chela-ai/chela/internal/surface/method/canvas"
	channelmethods "github.com/chela-ai/chela/internal/surface/method/channels"
	"github.com/chela-ai/chela/internal/surface/method/chat"
	"github.com/chela-ai/chela/internal/surface/method/commands"
	configmethods "github.com/chela-ai/chela/internal/surface/method/config"
	cronmethods "github.com/chela-ai/chela/internal/surface/method/cron"
	"github.com/chela-ai/chela/internal/surface/method/devices"
	"github.com/chela-ai/chela/internal/surface/method/files"
	"github.com/chela-ai/chela/internal/surface/method/hooks"
	"github.com/chela-ai/chela/internal/surface/method/logs"
	memorymethods "github.com/chela-ai/chela/internal/surface/method/memory"
	"github.com/chela-ai/chela/internal/surface/method/messages"
	"github.com/chela-ai/chela/internal/surface/method/models"
	nodemethods "github.com/chela-ai/chela/internal/surface/method/nodes"
	"github.com/chela-ai/chela/internal/surface/method/proposals"
	sandboxmethods "github.com/chela-ai/chela/internal/surface/method/sandbox"
	"github.com/chela-ai/chela/internal/surface/method/sessions"
	speechmethods "github.com/chela-ai/chela/internal/surface/method/speech"
	"github.com/chela-ai/chela/internal/surface/method/system"
	talkmethods "github.com/chela-ai/chela/internal/surface/method/talk"
	taskmethods "github.com/chela-ai/chela/internal/surface/method/tasks"
	"github.com/chela-ai/chela/internal/surface/method/tools"
	"github.com/chela-ai/chela/internal/surface/method/usage"
	"github.com/chela-ai/chela/internal/surface/method/workspace"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All fields are required.
type Options struct {
	Log      *slog.Logger
	Version  string
	State    string // the state directory
	Database string // path of the database
	Instance string // id of this start
	Started  time.Time

	Store      store.Store
	Bus        *bus.Bus
	Files      *media.Files
	Inbound    *inbound.Gate
	Export     func(context.Context, io.Writer, export.Format, export.Target) error
	Forget     memorymethods.Forgetter
	Dispatcher *dispatch.Dispatcher
	Direct     *invoke.Direct
	Channels   *channels.Supervisor
	Act        func(context.Context, action.Request) (action.Result, error)
	Tasks      *tasks.List
	Nodes      *nodes.Registry
	Canvas     *canvas.Host
	Proposals  *proposal.Shelf
	Scheduler  cronmethods.Scheduler
	Lanes      *lane.Lanes // the queues of runs
	History    *history.History

	Current *profile.Current // the Generation in force
	Config  Configuration
	Redact  func(string) string // removes known secrets from a text
	// Heartbeats returns the settings of the heartbeats of all agents, as they are now.
	Heartbeats func() []heartbeat.Settings
	Port       Port
	Backup     func(ctx context.Context, file string) error

	Voice speech.Voice // says texts aloud

	Hooks       func() []hookdir.Hook // of folders and of Chela, as they are in force
	InstallHook func(ctx context.Context, path string, replace bool) (hookdir.Hook, error)

	InstallPlugin   func(ctx context.Context, path string, replace bool) (plugindir.Plugin, error)
	RemovePlugin    func(id string) error
	SkillSource     func() *skillsource.Fetcher
	MayInstallSkill func(ctx context.Context, from string) error
	RecordSkill     func(ctx context.Context, agent chela.AgentID) installdir.Record

	RefreshPlugins func() // looks for plug-ins that were added, changed or removed
}

// Configuration is the configuration of the running gateway.
type Configuration interface {
	// Path returns its file; "": there is none.
	Path() string
	// Tree returns the configuration in force; nil: it does not come from files.
	Tree() *config.Tree
	// View shows the configuration in force.
	View() config.View
	// Rewrite changes the files as a client asks, and puts the result in force.
	Rewrite(ctx context.Context, c Change) (wire.ConfigWritten, error)
	// Edit changes the files, whatever they are now, and puts the result in force.
	Edit(ctx context.Context, edit func(now *config.Tree) (*config.Draft, error)) error
	// KeysChanged puts saved keys of model providers in force.
	KeysChanged(ctx context.Context)
}

// Change is a change of the configuration by a client.
type Change = configmethods.Change

// Port is where other programs connect to the gateway.
type Port interface {
	// URL returns its address; "": there is no port.
	URL() string
	// Number returns its number; 0: there is no port.
	Number() int
	// Remote returns how clients authenticate, and the address for other machines;
	// "": they cannot connect.
	Remote() (mode, url string)
	// Page returns the address of the web page for this machine, and whether it is Chela's
	// own; "": there is none.
	Page() (url string, own bool)
}

// Gateway is the gateway with its methods.
type Gateway struct {
	*gateway.Server
	system system.Options
	set    rpc.Set
	o      Options
}

// New makes the gateway.
func New(o Options) *Gateway {
	g := &Gateway{o: o}
	rows := wireview.Rows{Model: o.sessionModel, Show: o.Files.FillScaled, Subagents: o.Current.Subagents,
		Sends: o.Current.Sends}
	g.system = g.systemOptions(rows)
	g.set = g.methods(rows).Logging(o.Log).
		Missing("talk.",
			"there is no live audio here; send what was said with chat.send, and have the answer said with talk.speak")
	g.Server = gateway.New(gateway.Options{
		Log: o.Log, Version: o.Version, Methods: g.set, Bus: o.Bus, Health: g.system.Health,
		Defaults: func() wire.SessionDefaults {
			return wire.SessionDefaults{
				Agent: string(chela.DefaultAgent), MainKey: chela.MainKey,
				MainSess: string(chela.MainSession(chela.DefaultAgent)), Scope: "per-sender", Configured: true,
			}
		},
		Session: func(ctx context.Context, key chela.SessionKey) (*wire.Session, error) {
			return sessions.Options{Store: o.Store, Rows: rows}.Describe(ctx, key, false)
		},
		Joined: o.Nodes.Join, Pages: o.Canvas,
		Tasks: func(ctx context.Context, e chela.Event) ([]wire.Task, error) {
			list, err := o.Tasks.ChangedBy(ctx, e)
			var out []wire.Task
			for _, t := range list {
				out = append(out, wireview.Task(t))
			}
			return out, err
		},
		Show: o.Files.FillScaled, Models: o.catalog().Snapshot, ConfigPath: o.Config.Path(), StateDir: o.State,
	})
	return g
}

// Status returns the state of the whole gateway.
func (g *Gateway) Status(ctx context.Context) (wire.Status, error) { return g.system.Status(ctx) }

// Agents returns the agents as clients see them, the default one first.
func (g *Gateway) Agents() []agents.Agent { return g.o.agents() }

// announce tells the clients that may decide about devices.
func (g *Gateway) announce(event string, payload any) {
	g.Broadcast(chela.ScopePairing, event, payload)
}

// announceTo tells the clients with a scope.
func (g *Gateway) announceTo(scope chela.Scope, event string, payload any) {
	g.Broadcast(scope, event, payload)
}

// systemOptions is what the methods about the whole gateway work with.
func (g *Gateway) systemOptions(rows wireview.Rows) system.Options {
	o := &g.o
	return system.Options{
		Store: o.Store, Path: o.Database, Version: o.Version, Started: o.Started, Default: chela.DefaultAgent,
		Agents: func() []chela.AgentID { return o.Current.Load().Settings.Roster() },
		Rows:   rows, Notify: o.Dispatcher.Notify, Heartbeats: o.Heartbeats, Redact: o.Redact, Channels: o.channelStates,
		Roster: func() []wire.Presence { return g.Roster() },
		Backup: o.Backup, URL: o.Port.URL, Port: o.Port.Number, Instance: o.Instance, Lanes: o.Lanes.States,
		Reason: func() string { _, why := o.Current.Load().Models.Default(); return why },
		Folder: func() string { return o.Current.Load().Workspace(chela.DefaultAgent) },
	}
}

// methods makes all methods.
func (g *Gateway) methods(rows wireview.Rows) rpc.Set {
	o := &g.o
	return rpc.NewSet(
		chat.Methods(chat.Options{
			Store: o.Store, Bus: o.Bus, Gate: o.Inbound, Dispatcher: o.Dispatcher, Rows: rows, Redact: o.Redact,
			Default: chela.DefaultAgent, Agent: o.Current.HasAgent, Metadata: func() wire.ChatMetadata {
				return wire.ChatMetadata{Models: o.catalog().List(false).Models,
					Commands: commands.List(o.Current.Load().Skills(chela.DefaultAgent), true).Commands}
			},
		}),
		sessions.Methods(sessions.Options{
			Store: o.Store, Path: o.Database, Bus: o.Bus, Gate: o.Inbound, Dispatcher: o.Dispatcher, Rows: rows,
			Default: chela.DefaultAgent, Agent: o.Current.HasAgent, Export: o.Export, StorePart: o.Files.StorePart,
			Model: func(name string) (string, error) { return o.Current.Load().Models.Name(name) },
		}),
		files.Methods(files.Options{
			Store: o.Store, Default: chela.DefaultAgent, Agent: o.Current.HasAgent,
			Workspace: func(id chela.AgentID) string { return o.Current.Load().Workspace(id) },
		}),
		agents.Methods(o.agentOptions()),
		o.skillMethods(),
		commands.Methods(commands.Options{Default: chela.DefaultAgent, Agent: o.Current.HasAgent, Skills: o.Current.Skills}),
		tools.Methods(tools.Options{
			Default: chela.DefaultAgent, Agent: o.Current.HasAgent,
			Tools: func(id chela.AgentID) tool.Set { return o.Current.Load().Tools(id) },
			Rules: o.Current.Rules, Invoke: o.Direct.Do, Store: o.Store,
			Type: func(id chela.AgentID, name string) (subagent.Type, error) {
				return subagent.FindType(o.Current.Types(id), name)
			},
		}),
		sandboxmethods.Methods(sandboxmethods.Options{
			Default: chela.DefaultAgent, Agent: o.Current.HasAgent,
			Config:   func(id chela.AgentID) sandbox.Config { return o.Current.Load().SandboxConfig(id) },
			Backends: func() (map[string]sandbox.Backend, []string) { return o.Current.Load().Backends() },
			Explain: func(ctx context.Context, who chela.Principal, key chela.SessionKey) (sandboxmethods.Explained, error) {
				return o.Current.Load().ExplainSandbox(ctx, who, key)
			},
		}),
		talkmethods.Methods(talkmethods.Options{Words: o.Nodes, Announce: g.announceTo, Voice: o.Current.Talker}),
		speechmethods.Methods(speechmethods.Options{Voice: o.Voice, Dir: filepath.Join(o.State, media.Dir),
			Store: o.Files.Store}),
		hooks.Methods(hooks.Options{
			Default:   chela.DefaultAgent,
			Agent:     o.Current.HasAgent,
			Managed:   standard.HookDir(o.State),
			Hooks:     o.Hooks,
			Install:   o.InstallHook,
			Workspace: func(id chela.AgentID) string { return o.Current.Load().Workspace(id) },
		}),
		browsermethods.Methods(
			browsermethods.Options{Do: func(ctx context.Context, args json.RawMessage) (map[string]any, error) {
				return o.Current.Load().Browse(ctx, args)
			}}),
		o.pluginMethods(),
		approvals.Methods(approvals.Options{
			Store:     o.Store,
			Default:   chela.DefaultAgent,
			Agent:     o.Current.HasAgent,
			Publish:   o.Bus.Publish,
			Subscribe: o.Bus.Subscribe,
			Decide:    o.Dispatcher.Decide,
			Rules:     func() *allowlist.Source { return o.Current.Load().Allowed },
			Redact:    o.Redact,
			Commands:  func() string { return o.Current.Load().Tools(chela.DefaultAgent).Role(tool.RunsCommands) },
		}),
		models.Methods(o.catalog()),
		devices.Methods(devices.Options{
			Store:     o.Store,
			Announce:  g.announce,
			Drop:      func(credential string, last func()) { g.Drop(credential, last) },
			Endpoint:  o.Port.Remote,
			Page:      o.Port.Page,
			Stop:      o.Dispatcher.Revoke,
			Connected: func(credential, role string) bool { return g.Connected(credential, role) },
		}),
		nodemethods.Methods(nodemethods.Options{
			Nodes:   o.Nodes,
			Store:   o.Store,
			Gate:    o.Inbound,
			Default: chela.DefaultAgent,
			Agent:   o.Current.HasAgent,
		}),
		canvasmethods.Methods(canvasmethods.Options{Host: o.Canvas, Gate: o.Inbound, Default: chela.DefaultAgent,
			Agent: o.Current.HasAgent}),
		channelmethods.Methods(o.guests(channelmethods.Options{Store: o.Store, Accounts: o.Channels.Accounts,
			Probe: o.probeChannel})),
		messages.Methods(messages.Options{Do: o.Act, Files: o.Files}),
		o.configMethods(),
		system.Methods(g.system),
		taskmethods.Methods(taskmethods.Options{
			Store:   o.Store,
			List:    o.Tasks,
			Default: chela.DefaultAgent,
			Agent:   o.Current.HasAgent,
			Show:    o.Files.FillScaled,
		}),
		cronmethods.Methods(cronmethods.Options{
			Scheduler: o.Scheduler,
			Store:     o.Store,
			Default:   chela.DefaultAgent,
			Agent:     o.Current.HasAgent,
			Database:  o.Database,
			Instance:  o.Instance,
		}),
		usage.Methods(usage.Options{Store: o.Store, Default: chela.DefaultAgent, Agent: o.Current.HasAgent,
			Limits: o.Current.Limits}),
		memorymethods.Methods(memorymethods.Options{
			Default: chela.DefaultAgent, Agent: o.Current.HasAgent,
			Workspace: func(id chela.AgentID) string { return o.Current.Load().Workspace(id) },
			Index:     func(id chela.AgentID) memory.Index { return o.Current.Load().Memory(id) },
			Forget:    o.Forget,
		}),
		workspace.Methods(workspace.Options{
			History: o.History,
			Default: chela.DefaultAgent,
			Agent:   o.Current.HasAgent,
			Zone:    o.Current.Location,
			Redact:  o.Redact,
		}),
		proposals.Methods(proposals.Options{
			Shelf: o.Proposals, Default: chela.DefaultAgent, Agent: o.Current.HasAgent, Skills: o.workspaceSkills,
		}),
		logs.Methods(logs.Options{Path: filepath.Join(o.State, "logs", "chela.log")}),
	)
}

// sessionModel returns the model of the session's next run.
func (o *Options) sessionModel(m session.Meta) wire.SessionModel {
	g := o.Current.Load()
	info := g.Model(m)
	return wireview.SessionModel(info, g.Think(m.Agent, info))
}

// probeChannel asks the platform of an account whether it works.
func (o *Options) probeChannel(ctx context.Context, name string, id chela.AccountID) (asked bool, err error) {
	in, err := o.Channels.Acquire(ctx, name, id)
	if err != nil {
		return !errors.Is(err, chela.ErrFenced), err // another process may run it
	}
	defer in.Release()
	p, ok := channel.As[channel.Prober](in.Channel)
	if !ok {
		return false, nil
	}
	return true, p.Probe(ctx)
}

// channelStates returns the state of the configured channels. One with several
// accounts runs while all of them do.
func (o *Options) channelStates() map[string]wire.ChannelState {
	out := map[string]wire.ChannelState{}
	for name, accounts := range o.Channels.States() {
		s := wire.ChannelState{Configured: true, Running: true}
		for _, err := range accounts {
			if err != nil {
				text := err.Error()
				s.Running, s.Error = false, &text
			}
		}
		out[name] = s
	}
	return out
}

// configMethods returns the methods about the configuration; none when it does
// not come from files.
func (o *Options) configMethods() []rpc.Method {
	if o.Config.Tree() == nil {
		return nil
	}
	return configmethods.Methods(configmethods.Options{
		Snapshot: func() (wire.ConfigSnapshot, error) { return o.Config.View().Snapshot() },
		Schema:   o.Config.View().Schema, Lookup: config.Lookup, Change: o.Config.Rewrite,
	})
}
