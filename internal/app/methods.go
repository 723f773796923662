package app

import (
	"context"
	"path/filepath"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/config/spoken"
	"github.com/chela-ai/chela/internal/dispatch"
	"github.com/chela-ai/chela/internal/gateway"
	"github.com/chela-ai/chela/internal/inbound"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/method/agents"
	"github.com/chela-ai/chela/internal/method/approvals"
	"github.com/chela-ai/chela/internal/method/channels"
	"github.com/chela-ai/chela/internal/method/chat"
	"github.com/chela-ai/chela/internal/method/commands"
	configmethods "github.com/chela-ai/chela/internal/method/config"
	"github.com/chela-ai/chela/internal/method/devices"
	"github.com/chela-ai/chela/internal/method/files"
	"github.com/chela-ai/chela/internal/method/logs"
	"github.com/chela-ai/chela/internal/method/models"
	"github.com/chela-ai/chela/internal/method/nodes"
	"github.com/chela-ai/chela/internal/method/sessions"
	"github.com/chela-ai/chela/internal/method/system"
	"github.com/chela-ai/chela/internal/method/tools"
	"github.com/chela-ai/chela/internal/method/usage"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/wire"
)

// parts are what the gateway's methods work with.
type parts struct {
	store     store.Store
	bus       *bus.Bus
	gate      *inbound.Gate
	conductor *dispatch.Conductor
}

// server makes the gateway with all of its methods.
func (e *Engine) server(p parts) *gateway.Server {
	rows := shape.Rows{Model: e.sessionModel, Show: e.files.Show}
	e.state = e.system(p, rows)
	return gateway.New(gateway.Options{
		Log: e.o.Log, Version: Version, Methods: e.methods(p, rows), Bus: p.bus, Health: e.state.Health,
		Defaults: func() wire.SessionDefaults {
			return wire.SessionDefaults{
				Agent: string(chela.DefaultAgent), MainKey: chela.MainKey,
				MainSess: string(chela.MainSession(chela.DefaultAgent)), Scope: "per-sender", Configured: true,
			}
		},
		Session: func(ctx context.Context, key chela.SessionKey) (*wire.Session, error) {
			return sessions.Options{Store: p.store, Rows: rows}.Describe(ctx, key, false)
		},
		Show: e.files.Show, Models: e.catalog().Snapshot, ConfigPath: e.o.ConfigPath, StateDir: e.o.State,
	})
}

// system is what is told of the whole.
func (e *Engine) system(p parts, rows shape.Rows) system.Options {
	return system.Options{
		Store: p.store, Path: filepath.Join(e.o.State, databaseName), Version: Version, Started: e.started, Default: chela.DefaultAgent,
		Agents: func() []chela.AgentID { return e.now().opts.Roster() },
		Rows:   rows, Notify: p.conductor.Notify, Channels: e.accounts,
		Roster: func() []wire.Presence { return e.gate.Roster() },
		Backup: e.backup, URL: e.URL, Port: e.portNumber, Instance: e.boot,
		Reason: func() string { _, why := e.now().models.Default(); return why },
		Folder: func() string { return e.now().workspace(chela.DefaultAgent) },
	}
}

// methods makes all of the gateway's methods.
func (e *Engine) methods(p parts, rows shape.Rows) rpc.Set {
	return rpc.NewSet(
		chat.Methods(chat.Options{
			Store: p.store, Admit: p.gate.Admit, Conductor: p.conductor, Publish: p.bus.Publish, Live: p.bus.Live, Rows: rows,
			Default: chela.DefaultAgent, Agent: e.knows, Metadata: func() wire.ChatMetadata {
				return wire.ChatMetadata{Models: e.catalog().List(false).Models, Commands: commands.List(true).Commands}
			},
		}),
		sessions.Methods(sessions.Options{
			Store: p.store, Path: e.state.Path, Conductor: p.conductor, Publish: p.bus.Publish, Admit: p.gate.Admit, Rows: rows,
			Default: chela.DefaultAgent, Agent: e.knows, Model: func(name string) (string, error) { return e.now().models.Name(name) }, Export: export(e.files), Keep: e.files.KeepPart,
		}),
		files.Methods(files.Options{Store: p.store, Default: chela.DefaultAgent, Agent: e.knows, Workspace: func(id chela.AgentID) string { return e.now().workspace(id) }}),
		agents.Methods(e.agentMethods()),
		commands.Methods(commands.Options{Default: chela.DefaultAgent, Agent: e.knows}),
		tools.Methods(tools.Options{
			Default: chela.DefaultAgent, Agent: e.knows,
			Tools: func(id chela.AgentID) tool.Set { return e.now().tools[id] },
			Rules: func(ctx context.Context, who chela.Principal, key chela.SessionKey, c policy.Conversation) (policy.Pipeline, llm.Ref, error) {
				return e.now().ask(ctx, p.store, who, key, c)
			},
			Invoke: e.desk.Do, Store: p.store,
		}),
		approvals.Methods(approvals.Options{
			Store: p.store, Default: chela.DefaultAgent, Agent: e.knows, Publish: p.bus.Publish, Subscribe: p.bus.Subscribe,
			Decide: p.conductor.Decide, Rules: func() *allowlist.Source { return e.now().allowed },
		}),
		models.Methods(e.catalog()),
		devices.Methods(devices.Options{
			Store: p.store, Announce: e.announce, Drop: func(credential string) { e.gate.Drop(credential) }, Place: e.place,
			Stop:      p.conductor.Revoke,
			Connected: func(device string) bool { return e.gate.Connected(pairing.Credential(device), "") },
		}),
		nodes.Methods(nodes.Options{
			Store: p.store, Announce: e.announce, Drop: func(credential string) { e.gate.Drop(credential) },
			Connected: func(device, role string) bool { return e.gate.Connected(pairing.Credential(device), role) },
		}),
		channels.Methods(channels.Options{States: e.accounts}),
		e.configMethods(),
		system.Methods(e.state),
		usage.Methods(usage.Options{Store: p.store, Default: chela.DefaultAgent, Agent: e.knows}),
		logs.Methods(logs.Options{Path: filepath.Join(e.o.State, "logs", "chela.log")}),
	)
}

// sessionModel is the model that the session's next run asks.
func (e *Engine) sessionModel(m session.Meta) wire.SessionModel {
	p := e.now()
	agent, _ := p.opts.Of(m.Agent)
	return shape.SessionModel(p.model(m), llm.Level(agent.Think))
}

// accounts is the state of the messaging accounts.
func (e *Engine) accounts() map[string]wire.ChannelState {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]wire.ChannelState{}
	for name := range e.o.Channels {
		s := wire.ChannelState{Configured: true, Running: true}
		if err := e.ended["channel "+name]; err != nil {
			text := err.Error()
			s.Running, s.Error = false, &text
		}
		out[name] = s
	}
	return out
}

// configMethods returns the methods about the configuration; none when
// there is no file that it comes from.
func (e *Engine) configMethods() []rpc.Method {
	if e.tree() == nil {
		return nil
	}
	return configmethods.Methods(configmethods.Options{
		Snapshot: func() (wire.ConfigSnapshot, error) { return e.view().Snapshot() },
		Schema:   e.view().Schema, Lookup: config.Lookup, Change: e.rewrite,
	})
}

// hand is the configuration as /config changes it; nil when that is off.
func (e *Engine) hand() inbound.Configuration {
	if e.tree() == nil || !e.now().opts.Slash.Config {
		return nil
	}
	return spoken.Config{Tree: e.tree, Change: func(ctx context.Context, draft func(*config.Tree) (*config.Draft, error)) (bool, error) {
		out, err := e.change(ctx, anyBase, draft)
		return len(out.cold) == 0, err
	}}
}
