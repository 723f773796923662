package profile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/budget"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/plugin/tool/sessions"
	"github.com/chela-ai/chela/internal/plugin/tool/status"
)

// makeTools makes the tools of the agents. Agents differ in the files that their
// tools may name.
func (g *Generation) makeTools(c Config) error {
	broker, err := g.o.Registry.NewBroker(standard.SandboxEnv{State: g.o.State}, c.Sections.Section)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := g.makeUnderstander(c, broker); err != nil {
		return err
	}
	g.makeSpeakers(c, broker)
	env := standard.ToolEnv{
		Store: g.o.Store, Location: g.zone,
		Files: standard.FileEnv{Media: g.o.Files, Vision: g.vision, ImageSide: g.Settings.Agent.ImageSide},
		Commands: exec.Options{
			Broker:      broker,
			Backends:    g.backends,
			Granted:     standard.Granted(g.o.Store),
			Never:       g.private,
			Notes:       g.notes,
			Commands:    g.commands,
			Rules:       g.Allowed.Rules,
			RecordUse:   g.recordUse,
			Environ:     g.o.Environ,
			Interactive: true,
		},
		Sessions: standard.SessionEnv{
			Publish: g.o.Bus.Publish, Status: g.status, Memory: g.Memory,
			Read: sessions.ReadOptions{
				Store: g.o.Store, Sharing: g.sharing, Agents: g.agents, Redact: g.o.Redact,
				Allowed: func(from, to chela.AgentID) bool { return g.Settings.Subagents(from).Allows(from, to) },
			},
		},
		Web: standard.WebEnv{Log: g.o.Log, Getenv: c.Env, Plugins: c.Sections.Section("plugins"), Browsers: g.browsers},
		Assistant: standard.AssistantEnv{
			Act:       g.o.Act,
			Actions:   g.actions(c),
			Gateway:   g.o.Gateway,
			Proposals: g.o.Proposals,
			Said:      g.Settings.Speech.Limit(),
		},
	}
	// A nil pointer in an interface is not nil.
	if g.Settings.Skills.Registry.URL != "" && g.o.Skills != nil {
		env.Assistant.Skills = g.o.Skills
	}
	if g.Settings.Speech.Chosen() {
		env.Assistant.Speaker = g.Speaker
	}
	if g.Settings.Drawing.On() && g.studio != nil {
		env.Assistant.Painter, env.Assistant.Studio, env.Assistant.Defer = g.painter(broker), g.studio, g.deferred
	}
	if g.o.Schedule != nil {
		env.Assistant.Scheduler = g.o.Schedule
	}
	if g.o.Journal != nil {
		env.Files.Journal = g.o.Journal
		env.Commands.Starts = func(ctx context.Context) func() []string {
			return g.o.Journal.Started(ctx, journal.SourceFrom(ctx))
		}
	}
	if g.o.Spawner != nil {
		env.Sessions.Spawner, env.Sessions.Coders = g.o.Spawner, g.readyCoders()
	}
	if g.o.Nodes != nil {
		env.Nodes, env.Commands.Nodes = g.o.Nodes, g.o.Nodes
	}
	if g.o.Canvas != nil && g.Settings.Canvas.In(c.Env).On() {
		env.Canvas = g.o.Canvas
	}
	if g.o.Relay != nil {
		env.Sessions.Sender = g.o.Relay
	}
	if g.mcp != nil {
		env.Web.Servers = func() []tool.Tool { return g.mcp.Tools(g.Servers) }
	}
	if b := g.Cage(); b != nil {
		env.Commands.Cage = b
	}
	shared, err := g.o.Registry.NewTools(env, c.Sections.Section)
	if err != nil {
		return err
	}
	g.tools, g.catalogs, g.roles = map[chela.AgentID]tool.Set{}, map[chela.AgentID]policy.Catalog{},
		map[chela.AgentID]map[tool.Role]string{}
	for _, id := range g.Settings.Roster() {
		rule := g.Settings.Paths(id, g.private)
		rule.Library = func() []string { return g.libraries(id) }
		rule.Unshared = g.notes
		own, err := g.o.Registry.NewFileTools(env, rule, c.Sections.Section)
		if err != nil {
			return err
		}
		g.tools[id] = g.joinTools(shared, own)
		if g.Settings.Memory(id).Off() {
			g.tools[id] = g.tools[id].Filter(func(s tool.Spec) bool { return !s.In("group:memory") })
		}
		g.catalogs[id], g.roles[id] = policy.NewCatalog(g.tools[id]), g.tools[id].Roles()
	}
	for _, note := range g.tools[chela.DefaultAgent].Notes() {
		g.o.Log.Warn("tools", "note", note)
	}
	return nil
}

// actions returns what the configured channels support and the configuration allows; nil:
// no channel is configured.
func (g *Generation) actions(c Config) []action.Action {
	can := map[action.Action]bool{}
	for _, f := range g.o.Registry.Channels() {
		sections, err := f.AccountSections(c.Sections.Section("channels." + f.Name))
		if f.Internal || err != nil { // the supervisor of the channels reports it
			continue
		}
		for _, section := range sections {
			for _, a := range action.Of(f.Can) {
				can[a] = can[a] || action.Allowed(section, a)
			}
		}
	}
	return slices.DeleteFunc(action.All(), func(a action.Action) bool { return !can[a] })
}

// sharing returns the rule about the other sessions that a session may see.
func (g *Generation) sharing(m session.Meta) session.Sharing {
	t := g.Settings.Tools
	s := session.Sharing{Visibility: t.Sessions.Visibility, Sandboxed: g.isSandboxed(m), Viewer: m.Agent}
	if t.AgentToAgent.Enabled {
		if s.Agents = t.AgentToAgent.Allow; len(s.Agents) == 0 {
			s.Agents = []string{"*"}
		}
	}
	return s
}

// recordUse records that entries of the allowlist let a command run.
func (g *Generation) recordUse(uses []allowlist.Use, command string) {
	if err := g.Allowed.RecordUse(uses, command, time.Now()); err != nil {
		g.o.Log.Warn("record the use of an allowlist entry", "err", err)
	}
}

// meta returns a session, also one that is not stored yet.
func (g *Generation) meta(ctx context.Context, key chela.SessionKey) (session.Meta, error) {
	m, err := store.Get(ctx, g.o.Store,
		func(r store.Reader) (session.Meta, error) { return session.Lookup(r.Sessions(), key) })
	if err != nil {
		return m, fmt.Errorf("session %s: %w", key, err)
	}
	return m, nil
}

// status is what the tool session_status tells a model about its session.
func (g *Generation) status(ctx context.Context, key chela.SessionKey) (status.Status, error) {
	m, err := g.meta(ctx, key)
	if err != nil {
		return status.Status{}, err
	}
	info := g.Model(m)
	if m.External == nil {
		if info, _, err = g.AgentModels(m.Agent).Resolve(m.Model); err != nil {
			return status.Status{}, err
		}
	}
	s := status.Status{
		Model:     info.Ref(),
		Context:   int(m.Context),
		Window:    g.window(m, info).Tokens,
		Input:     m.Tokens.Prompt(),
		Output:    m.Tokens.Output,
		Session:   key,
		SessionID: m.ID,
		Queue:     g.queueMode(m),
		Version:   g.o.Version,
		Uptime:    time.Since(g.started),
	}
	if m.Priced {
		s.Cost = float64(m.NanoUSD) / 1e9
	}
	return s, nil
}

// vision returns the model that looks at pictures for a call of a tool. Its usage is
// recorded, and counts against the budgets.
func (g *Generation) vision(ctx context.Context, c tool.Call) (llm.Model, llm.Provider, error) {
	m, err := g.meta(ctx, c.Session)
	if err != nil {
		return llm.Model{}, nil, err
	}
	info, p, err := g.Models.Vision(m.Model)
	if err == nil && g.pricedOnly(c.Agent) {
		info, p, err = model.Priced(info, p)
	}
	if err != nil {
		return llm.Model{}, nil, err
	}
	return info, g.o.Budgets.Provider(p, info, budget.Call{Run: c.Run, Agent: c.Agent, Session: c.Session},
		g.Settings.Limits(c.Agent, g.zone)), nil
}
