package gateway

import (
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// change is a change of a session.
type change struct {
	key    chela.SessionKey
	reason string // wire.ChangeCreate, …
	phase  string
	run    chela.RunID
	time   time.Time
}

// changes sends sessions.changed. The session's row is read from the store in a
// separate goroutine, and only if somebody subscribed.
type changes struct {
	s *Server

	mu      sync.Mutex
	waiting []change
	rows    map[chela.SessionKey]wire.Session // as last sent
	ready   chan struct{}                     // cap 1
}

// maxChanges limits the queued changes. Clients read the latest state anyway.
const maxChanges = 1024

// maxRows limits the cached rows.
const maxRows = 256

func (cs *changes) init(s *Server) { cs.s, cs.ready = s, make(chan struct{}, 1) }

// add queues a change if somebody subscribed to the session. It never blocks.
func (cs *changes) add(c change) {
	if c.key == "" || !cs.s.hasAudience(watchers(c.key)) {
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
	if cs.s.o.Session != nil && c.reason != wire.ChangeDelete {
		row, err := cs.s.o.Session(cs.s.ctx, c.key)
		if err != nil {
			cs.s.o.Log.Debug("read the session of a change", "session", string(c.key), "err", err)
		}
		if p.Row, p.Session = row, row; row != nil {
			p.Active, p.Runs = row.Active, row.Runs
		}
	}
	cs.cacheRow(c.key, p.Row)
	cs.s.broadcast(watchers(c.key), false, wire.EventSessionsChanged, func() any { return p })
}

// cacheRow stores a row for the session's messages; nil removes it.
func (cs *changes) cacheRow(key chela.SessionKey, row *wire.Session) {
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

// cachedRow returns the row last sent of a session, updated with the state of
// its run; nil if none was sent. Each message of a session comes with its row; reading the row
// again for each would cost a transaction a message.
func (cs *changes) cachedRow(key chela.SessionKey, run chela.RunID, active bool) *wire.Session {
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
