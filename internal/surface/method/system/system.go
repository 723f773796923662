// Package system implements the methods about the gateway itself: health,
// status, presence, system events and backups.
package system

import (
	"context"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. Channels may be nil.
type Options struct {
	Store   store.Store
	Path    string // display path of the store
	Version string
	Started time.Time
	Default chela.AgentID
	Agents  func() []chela.AgentID
	Rows    wireview.Rows
	Roster  func() []wire.Presence
	Folder  func() string                                         // the default agent's workspace
	Notify  func(context.Context, chela.SessionKey, string) error // queues an event for the session's next run

	// Heartbeats returns the settings of the heartbeats of all agents. nil: there are none.
	Heartbeats func() []heartbeat.Settings

	// Redact removes known secrets from the texts of events; nil: they are not changed.
	Redact func(string) string

	// Instance identifies this process; "": omitted.
	Instance string
	// URL returns the address of the gateway's port; nil: no port.
	URL func() string
	// Port returns the number of the gateway's port, 0 without one; nil: no
	// port.
	Port func() int

	// Backup writes a copy of the store to a file that must not exist.
	Backup func(ctx context.Context, path string) error

	// Channels returns the state of the messaging accounts by channel; nil:
	// none.
	Channels func() map[string]wire.ChannelState

	// Lanes returns what runs and waits; nil: nothing.
	Lanes func() ([]lane.State, lane.Keys)

	// Reason returns why the default model was chosen; nil: omitted.
	Reason func() string
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return slices.Concat(m.facts(), absent(), []rpc.Method{
		rpc.New(wire.MethodLanes, op, chela.ScopeRead, m.lanes),
		rpc.New(wire.MethodHealth, op, chela.ScopeRead,
			func(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.Health, error) {
				return o.Health(ctx)
			}),
		rpc.New(wire.MethodStatus, op, chela.ScopeRead,
			func(ctx context.Context, _ rpc.Peer, in wire.StatusGet) (wire.Status, error) {
				s, err := o.Status(ctx)
				if in.CLI {
					s.CLI = o.projection()
				}
				return s, err
			}),
		rpc.New(wire.MethodSystemPresence, op, chela.ScopeRead,
			func(context.Context, rpc.Peer, wire.None) ([]wire.Presence, error) {
				return o.Roster(), nil
			}),
		rpc.New(wire.MethodBackupCreate, op, chela.ScopeAdmin, m.backup),
		rpc.New(wire.MethodSystemEvent, op, chela.ScopeAdmin, m.event),
		rpc.New(wire.MethodWake, op, chela.ScopeWrite, m.wake).StartsWork(),
		rpc.New(wire.MethodLastHeartbeat, op, chela.ScopeRead, m.last),
		rpc.New(wire.MethodSetHeartbeats, op, chela.ScopeAdmin, m.set),
	})
}

type methods struct{ o Options }

// recent is the number of sessions listed in health and status.
const recent = 5

// Health returns the health of the gateway.
func (o Options) Health(ctx context.Context) (wire.Health, error) {
	now := time.Now()
	h := wire.Health{
		OK:            true,
		Time:          wire.At(now),
		Channels:      map[string]wire.ChannelState{},
		ChannelOrder:  []string{},
		ChannelLabels: map[string]string{},
		DefaultAgent:  string(o.Default),
	}
	if o.Channels != nil {
		h.Channels = o.Channels()
		for name := range h.Channels {
			h.ChannelOrder = append(h.ChannelOrder, name)
			h.ChannelLabels[name] = wireview.Label(name)
		}
		slices.Sort(h.ChannelOrder)
	}
	err := o.Store.View(ctx, func(r store.Reader) error {
		var err error
		if h.Sessions, err = o.sessions(r, "", now); err != nil {
			return err
		}
		h.Agents, err = o.agents(r, now, h.Sessions)
		for _, a := range h.Agents {
			if ms := a.Heartbeat.EveryMs; a.Default && ms != nil {
				h.HeartbeatSeconds = int(*ms / 1000)
			}
		}
		return err
	})
	h.OK = err == nil
	h.DurationMs = time.Since(now).Milliseconds()
	return h, err
}

// agents returns the health of each agent; all is the sessions of all agents.
func (o Options) agents(r store.Reader, now time.Time, all wire.SessionsHealth) ([]wire.AgentHealth, error) {
	out := []wire.AgentHealth{}
	ids := o.Agents()
	beats, err := o.heartbeats(r)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		of := all
		if len(ids) > 1 {
			if of, err = o.sessions(r, id, now); err != nil {
				return nil, err
			}
		}
		out = append(out, wire.AgentHealth{
			AgentID: string(id), Default: id == o.Default, Sessions: of,
			Heartbeat: interval(beats[id]),
		})
	}
	return out, nil
}

func (o Options) sessions(r store.Reader, agent chela.AgentID, now time.Time) (wire.SessionsHealth, error) {
	metas, total, err := r.Sessions().List(session.Query{Agent: agent, Limit: recent})
	out := wire.SessionsHealth{Path: o.Path, Count: total, Recent: []wire.RecentSession{}}
	for _, m := range metas {
		out.Recent = append(out.Recent, wire.RecentSession{
			Key: string(m.Key), UpdatedAt: wire.At(m.Updated), AgeMs: now.Sub(m.Updated).Milliseconds(),
		})
	}
	return out, err
}

// Status returns the status of the gateway.
func (o Options) Status(ctx context.Context) (wire.Status, error) {
	m := methods{o}
	now := time.Now()
	model := m.o.Rows.Model(session.Meta{Agent: m.o.Default})
	s := wire.Status{
		Version: m.o.Version, UptimeMs: now.Sub(m.o.Started).Milliseconds(), Memory: memory(),
		Heartbeat: wire.HeartbeatStatus{DefaultAgent: string(m.o.Default), Agents: []wire.AgentHeartbeat{}},
		Channels:  []string{}, SystemEvents: []string{}, Runs: []wire.ActiveRun{},
		Workspace: m.o.Folder(),
	}
	if m.o.URL != nil {
		s.URL = m.o.URL()
	}
	s.Sessions.Paths = []string{m.o.Path}
	s.Sessions.Defaults = wire.StatusDefaults{Model: model.Model, Provider: model.Provider,
		ContextWindow: model.ContextWindow}
	if m.o.Reason != nil {
		s.Sessions.Defaults.Reason = m.o.Reason()
	}
	err := m.o.Store.View(ctx, func(r store.Reader) error { return m.read(r, &s, now) })
	return s, err
}

// projection returns what OpenClaw's command line would read of the configuration.
func (o Options) projection() *wire.CLIProjection {
	p := &wire.CLIProjection{Agents: wire.CLIAgents{Default: string(o.Default), Ownership: "sole"}}
	for _, id := range o.Agents() {
		p.Agents.Rows = append(p.Agents.Rows, wire.CLIAgent{ID: string(id)})
	}
	return p
}

// read sets the parts of the status that are in the store.
func (m methods) read(r store.Reader, s *wire.Status, now time.Time) error {
	all, err := m.o.sessions(r, "", now)
	if err != nil {
		return err
	}
	s.Sessions.Count = all.Count
	agents, err := m.o.agents(r, now, all)
	if err != nil {
		return err
	}
	s.Heartbeat.Agents, s.Sessions.ByAgent = []wire.AgentHeartbeat{}, []wire.AgentSessions{}
	for _, a := range agents {
		s.Sessions.ByAgent = append(s.Sessions.ByAgent, wire.AgentSessions{AgentID: a.AgentID, SessionsHealth: a.Sessions})
		h := wire.AgentHeartbeat{AgentID: a.AgentID, Enabled: a.Heartbeat.Enabled, Every: a.Heartbeat.Every}
		if ms := a.Heartbeat.EveryMs; ms != nil {
			h.EveryMs = *ms
		}
		s.Heartbeat.Agents = append(s.Heartbeat.Agents, h)
	}
	metas, _, err := r.Sessions().List(session.Query{Limit: recent})
	if err != nil {
		return err
	}
	s.Sessions.Recent = []wire.Session{}
	for _, meta := range metas {
		row, err := m.o.Rows.Session(r, meta)
		if err != nil {
			return err
		}
		s.Sessions.Recent = append(s.Sessions.Recent, row)
	}
	runs, err := r.Runs().Active("")
	if err != nil {
		return err
	}
	s.Runs = []wire.ActiveRun{}
	for _, x := range runs {
		s.Runs = append(s.Runs, wire.ActiveRun{
			RunID: string(x.ID), SessionKey: string(x.Session), State: string(x.State), StartedAt: wire.At(x.Started),
		})
	}
	return m.pending(r, s)
}

// pending counts queued messages, pending approvals and undelivered messages.
func (m methods) pending(r store.Reader, s *wire.Status) error {
	keys, err := r.Queue().Sessions()
	if err != nil {
		return err
	}
	s.Queued = 0
	for _, k := range keys {
		items, err := r.Queue().Waiting(k)
		if err != nil {
			return err
		}
		s.Queued += queue.Messages(items)
	}
	asked, err := r.Approvals().Pending("")
	if err != nil {
		return err
	}
	rows, err := r.Outbox().Open(0)
	s.Approvals, s.Undelivered = len(asked), len(rows)
	return err
}

// memory returns the number of bytes the process has obtained from the system.
func memory() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}

// backup writes a copy of the store to the path in the request.
func (m methods) backup(ctx context.Context, _ rpc.Peer, p wire.BackupCreate) (wire.OK, error) {
	if !filepath.IsAbs(p.Path) {
		return wire.OK{}, rpc.Invalid("path %q is not absolute", p.Path)
	}
	if _, err := os.Lstat(p.Path); err == nil {
		return wire.OK{}, rpc.Invalid("%s exists", p.Path)
	}
	return wire.OK{OK: true}, m.o.Backup(ctx, p.Path)
}
