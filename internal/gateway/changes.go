package gateway

import (
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// change is something that happened to a session.
type change struct {
	key    chela.SessionKey
	reason string
	phase  string
	run    chela.RunID
	time   time.Time
}

// changes sends sessions.changed. A row is read from the store, so that this
// is done by a goroutine of its own, and only when somebody watches.
type changes struct {
	s *Server

	mu      sync.Mutex
	waiting []change
	ready   chan struct{} // cap 1
}

// maxChanges bounds what waits; clients see a session's latest state anyway.
const maxChanges = 1024

func (cs *changes) init(s *Server) { cs.s, cs.ready = s, make(chan struct{}, 1) }

// add takes a change. It is called by observers and never waits.
func (cs *changes) add(c change) {
	if c.key == "" {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.waiting) < maxChanges {
		cs.waiting = append(cs.waiting, c)
	}
	select {
	case cs.ready <- struct{}{}:
	default:
	}
}

// run sends changes until the server stops.
func (cs *changes) run() {
	for {
		select {
		case <-cs.s.ctx.Done():
			return
		case <-cs.ready:
		}
		cs.mu.Lock()
		all := cs.waiting
		cs.waiting = nil
		cs.mu.Unlock()
		for _, c := range all {
			cs.send(c)
		}
	}
}

func (cs *changes) send(c change) {
	to := watchers(c.key)
	if !cs.s.anyone(to) {
		return
	}
	p := wire.SessionsChanged{
		SessionKey: string(c.key), AgentID: string(c.key.Agent()), Reason: c.reason, Phase: c.phase, RunID: string(c.run),
		Time: wire.At(c.time), Runs: []string{},
	}
	if cs.s.o.Session != nil && c.reason != "delete" {
		row, err := cs.s.o.Session(cs.s.ctx, c.key)
		if err != nil {
			cs.s.o.Log.Debug("session row for a change", "session", string(c.key), "err", err)
		}
		if p.Session = row; row != nil {
			p.Active, p.Runs = row.Active, row.Runs
		}
	}
	cs.s.broadcast(to, false, wire.EventSessionsChanged, func() any { return p })
}
