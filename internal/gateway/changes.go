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
	rows    map[chela.SessionKey]wire.Session // as they were told last
	ready   chan struct{}                     // cap 1
}

// maxChanges bounds what waits; clients see a session's latest state anyway.
const maxChanges = 1024

// maxRows bounds the rows that are remembered.
const maxRows = 256

func (cs *changes) init(s *Server) { cs.s, cs.ready = s, make(chan struct{}, 1) }

// add takes a change that somebody watches. It is called by observers and never
// waits.
func (cs *changes) add(c change) {
	if c.key == "" || !cs.s.anyone(watchers(c.key)) {
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
	p := wire.SessionsChanged{
		SessionKey: string(c.key), AgentID: string(c.key.Agent()), Reason: c.reason, Phase: c.phase, RunID: string(c.run),
		Time: wire.At(c.time), Runs: []string{},
	}
	if cs.s.o.Session != nil && c.reason != "delete" {
		row, err := cs.s.o.Session(cs.s.ctx, c.key)
		if err != nil {
			cs.s.o.Log.Debug("session row for a change", "session", string(c.key), "err", err)
		}
		if p.Row, p.Session = row, row; row != nil {
			p.Active, p.Runs = row.Active, row.Runs
		}
	}
	cs.remember(c.key, p.Row)
	cs.s.broadcast(watchers(c.key), false, wire.EventSessionsChanged, func() any { return p })
}

// remember keeps a row for the session's messages; nil: there is none.
func (cs *changes) remember(key chela.SessionKey, row *wire.Session) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if row == nil {
		delete(cs.rows, key)
		return
	}
	if cs.rows == nil || len(cs.rows) >= maxRows {
		cs.rows = map[chela.SessionKey]wire.Session{}
	}
	cs.rows[key] = *row
}

// known returns a session as it was told last, with what is known now of a run
// of it; nil when it was not told.
func (cs *changes) known(key chela.SessionKey, run chela.RunID, active bool) *wire.Session {
	cs.mu.Lock()
	row, ok := cs.rows[key]
	cs.mu.Unlock()
	if !ok {
		return nil
	}
	if active {
		row.Active, row.Status, row.Runs = true, "running", []string{string(run)}
	}
	return &row
}
