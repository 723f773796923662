// Package system is the methods about the gateway itself: health, status, who
// is connected, and news for the next run.
package system

import (
	"context"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. Channels may be nil.
type Options struct {
	Store   store.Store
	Path    string // of the store, as it is shown
	Version string
	Started time.Time
	Default chela.AgentID
	Agents  func() []chela.AgentID
	Rows    shape.Rows
	Roster  func() []wire.Presence
	Folder  func() string                  // the default agent's workspace
	Notify  func(chela.SessionKey, string) // a line for the session's next run

	// Instance names this run of the process; "": nothing is said.
	Instance string
	// URL returns where the gateway's port is; nil: there is none.
	URL func() string
	// Port returns the number of the gateway's port, 0 when there is none; nil:
	// there is none.
	Port func() int

	// Backup writes a copy of the store to a file that is not there.
	Backup func(ctx context.Context, path string) error

	// Channels returns the state of the messaging accounts by channel name;
	// nil: there are none.
	Channels func() map[string]wire.ChannelState

	// Reason says in a few words why new sessions have the model that they
	// have; nil: nothing is said.
	Reason func() string
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return append(m.facts(), []rpc.Method{
		rpc.New(wire.MethodHealth, op, chela.ScopeRead, func(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.Health, error) {
			return o.Health(ctx)
		}).Accepting("probe", "timeoutMs"),
		rpc.New(wire.MethodStatus, op, chela.ScopeRead, func(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.Status, error) {
			return o.Status(ctx)
		}),
		rpc.New(wire.MethodSystemPresence, op, chela.ScopeRead, func(context.Context, rpc.Peer, wire.None) ([]wire.Presence, error) {
			return o.Roster(), nil
		}),
		rpc.New(wire.MethodBackupCreate, op, chela.ScopeAdmin, m.backup),
		rpc.New(wire.MethodSystemEvent, op, chela.ScopeAdmin, m.event),
		rpc.New(wire.MethodWake, op, chela.ScopeWrite, m.wake).Works(),
	}...)
}

type methods struct{ o Options }

// recent is how many sessions health and status name.
const recent = 5

// Health returns the state of the gateway as the method health and the hello
// tell it.
func (o Options) Health(ctx context.Context) (wire.Health, error) {
	now := time.Now()
	h := wire.Health{
		OK: true, Time: wire.At(now), Channels: map[string]wire.ChannelState{}, ChannelOrder: []string{}, ChannelLabels: map[string]string{},
		DefaultAgent: string(o.Default),
	}
	if o.Channels != nil {
		h.Channels = o.Channels()
		for name := range h.Channels {
			h.ChannelOrder = append(h.ChannelOrder, name)
			h.ChannelLabels[name] = shape.Label(name)
		}
		slices.Sort(h.ChannelOrder)
	}
	err := o.Store.View(ctx, func(r store.Reader) error {
		var err error
		if h.Sessions, err = o.sessions(r, "", now); err != nil {
			return err
		}
		h.Agents, err = o.agents(r, now, h.Sessions)
		return err
	})
	h.OK = err == nil
	h.DurationMs = time.Since(now).Milliseconds()
	return h, err
}

// agents returns the sessions of each agent; all is those of all agents.
func (o Options) agents(r store.Reader, now time.Time, all wire.SessionsHealth) ([]wire.AgentHealth, error) {
	out := []wire.AgentHealth{}
	ids := o.Agents()
	for _, id := range ids {
		of := all
		if len(ids) > 1 {
			var err error
			if of, err = o.sessions(r, id, now); err != nil {
				return nil, err
			}
		}
		out = append(out, wire.AgentHealth{
			AgentID: string(id), Default: id == o.Default, Sessions: of,
			Heartbeat: wire.AgentPulse{Every: "off", Target: "none"}, // agents do not wake by themselves yet
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

// Status returns what runs and what waits.
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
	s.Sessions.Defaults = wire.StatusDefaults{Model: model.Model, Provider: model.Provider, ContextWindow: model.ContextWindow}
	if m.o.Reason != nil {
		s.Sessions.Defaults.Reason = m.o.Reason()
	}
	err := m.o.Store.View(ctx, func(r store.Reader) error { return m.read(r, &s, now) })
	return s, err
}

// read fills in what the store knows.
func (m methods) read(r store.Reader, s *wire.Status, now time.Time) error {
	all, err := m.o.sessions(r, "", now)
	if err != nil {
		return err
	}
	s.Sessions.Count = all.Count
	if s.Sessions.ByAgent, err = m.o.agents(r, now, all); err != nil {
		return err
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
	return m.owed(r, s)
}

// owed counts what waits: messages, decisions, deliveries.
func (m methods) owed(r store.Reader, s *wire.Status) error {
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
		for _, it := range items {
			if it.Kind == queue.Message {
				s.Queued++
			}
		}
	}
	asked, err := r.Approvals().Pending("")
	if err != nil {
		return err
	}
	rows, err := r.Outbox().Open(0)
	s.Approvals, s.Undelivered = len(asked), len(rows)
	return err
}

// memory returns how many bytes the process has from the system.
func memory() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64() - sample[1].Value.Uint64())
}

// backup writes a copy of the store where the caller says.
func (m methods) backup(ctx context.Context, _ rpc.Peer, p wire.BackupCreate) (wire.OK, error) {
	if !filepath.IsAbs(p.Path) {
		return wire.OK{}, rpc.Invalid(wire.MethodBackupCreate, "path %q is not absolute", p.Path)
	}
	if _, err := os.Lstat(p.Path); err == nil {
		return wire.OK{}, rpc.Invalid(wire.MethodBackupCreate, "%s exists", p.Path)
	}
	return wire.OK{OK: true}, m.o.Backup(ctx, p.Path)
}
