package profile

import (
	"context"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
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
	env := standard.ToolEnv{
		Log: g.o.Log, Getenv: c.Env, Environ: g.o.Environ, Store: g.o.Store, Files: g.o.Files, Publish: g.o.Bus.Publish,
		Plugins: c.Sections.Section("plugins"),
		Broker:  broker, Never: g.private, Commands: g.commands, Rules: g.Allowed.Rules, RecordUse: g.recordUse,
		Status: g.status, Location: g.zone, Vision: g.vision, RecordUsage: g.recordUsage, ImageSide: g.Settings.Agent.ImageSide,
		Channels: g.o.Channels, Chunks: g.o.Delivery.Chunks, Await: g.o.Delivery.Await,
	}
	if g.o.Spawner != nil {
		env.Spawner = g.o.Spawner
	}
	if g.o.Relay != nil {
		env.Sender = g.o.Relay
	}
	env.Sessions = sessions.ReadOptions{
		Store: g.o.Store, Sharing: g.sharing, Agents: g.agents, Redact: g.o.Redact,
		Allowed: func(from, to chela.AgentID) bool { return g.Settings.Subagents(from).Allows(from, to) },
	}
	env.Backends = g.backends
	if b := g.backends[sandbox.Native]; b != nil {
		env.Cage = b
	}
	shared, err := g.o.Registry.NewTools(env, c.Sections.Section)
	if err != nil {
		return err
	}
	own := map[chela.AgentID][]tool.Tool{}
	for _, id := range g.Settings.Roster() {
		if own[id], err = g.o.Registry.NewFileTools(env, g.Settings.Paths(id, g.private), c.Sections.Section); err != nil {
			return err
		}
	}
	g.tools = toolSets(shared, own)
	for _, note := range g.tools[chela.DefaultAgent].Notes() {
		g.o.Log.Warn("tools", "note", note)
	}
	return nil
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
	m, err := store.Get(ctx, g.o.Store, func(r store.Reader) (session.Meta, error) { return session.Lookup(r.Sessions(), key) })
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
	info, _, err := g.AgentModels(m.Agent).Resolve(m.Model)
	if err != nil {
		return status.Status{}, err
	}
	s := status.Status{
		Model: info.Ref(), Context: int(m.Context), Window: info.Context, Input: m.Tokens.Prompt(), Output: m.Tokens.Output,
		Session: key, SessionID: m.ID, Queue: g.queueMode(m), Version: g.o.Version, Uptime: time.Since(g.started),
	}
	if m.Priced {
		s.Cost = float64(m.NanoUSD) / 1e9
	}
	return s, nil
}

// vision returns the model that looks at pictures for a session.
func (g *Generation) vision(ctx context.Context, key chela.SessionKey) (llm.Model, llm.Provider, error) {
	m, err := g.meta(ctx, key)
	if err != nil {
		return llm.Model{}, nil, err
	}
	return g.Models.Vision(m.Model)
}

// recordUsage records a model call that a tool made.
func (g *Generation) recordUsage(ctx context.Context, c tool.Call, m llm.Model, u llm.Usage) error {
	row := usage.Row{
		Run: c.Run, Session: c.Session, Agent: c.Agent, Provider: m.Provider, Model: m.ID, Time: time.Now(), Tokens: u, Priced: m.Price != nil,
	}
	if row.Priced {
		row.NanoUSD = m.Price.Cost(u)
	}
	return g.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error { return tx.Usage().Add(row) })
}
