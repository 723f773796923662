package gateway

import (
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// tasks sends the event task. The tasks are read from the store in a separate goroutine,
// and only if somebody receives them.
type tasks struct {
	s *Server

	mu       sync.Mutex
	waiting  []chela.Event
	sessions map[string]int // number of open tasks that were sent, by session
	ready    chan struct{}  // cap 1

	open map[string]wire.Task // as last sent; used by run only
}

// maxTasks limits the queued events and the open tasks that are remembered. A client that
// needs a complete list reads it.
const maxTasks = 1024

func (ts *tasks) init(s *Server) {
	ts.s, ts.ready, ts.sessions, ts.open = s, make(chan struct{}, 1), map[string]int{}, map[string]wire.Task{}
}

// add queues an event that may have changed a task. It never blocks.
func (ts *tasks) add(e chela.Event) {
	if ts.s.o.Tasks == nil || !ts.s.hasAudience(readers) {
		return
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	// Every run has events of its session. Those of a session without a task are not worth
	// reading the store.
	if e.Stream != chela.StreamTask && ts.sessions[string(e.Session)] == 0 && !e.Session.IsChild() {
		return
	}
	if len(ts.waiting) < maxTasks {
		ts.waiting = append(ts.waiting, e)
	}
	select {
	case ts.ready <- struct{}{}:
	default:
	}
}

// run sends tasks until the server stops.
func (ts *tasks) run() {
	for {
		select {
		case <-ts.s.ctx.Done():
			return
		case <-ts.ready:
		}
		ts.mu.Lock()
		all := ts.waiting
		ts.waiting = nil
		ts.mu.Unlock()
		for _, e := range all {
			list, err := ts.s.o.Tasks(ts.s.ctx, e)
			if err != nil {
				ts.s.o.Log.Debug("read the tasks of an event", "session", string(e.Session), "err", err)
			}
			for _, t := range list {
				ts.send(t)
			}
		}
	}
}

// send sends a task unless it is as it was last sent.
func (ts *tasks) send(t wire.Task) {
	last, known := ts.open[t.ID]
	if known && last == t {
		return
	}
	open := t.EndedAt == 0 || t.Delivery == wire.DeliveryPending || t.Delivery == wire.DeliveryQueued
	ts.mu.Lock()
	if known {
		ts.countLocked(last, -1)
		delete(ts.open, t.ID)
	}
	if open && len(ts.open) < maxTasks {
		ts.countLocked(t, 1)
		ts.open[t.ID] = t
	}
	ts.mu.Unlock()
	ts.s.broadcast(readers, false, wire.EventTask, func() any { return wire.TaskChanged{Action: "upserted", Task: t} })
}

// countLocked adds n to the number of open tasks of the sessions of t.
func (ts *tasks) countLocked(t wire.Task, n int) {
	for _, key := range [...]string{t.SessionKey, t.ChildSessionKey} {
		if ts.sessions[key] += n; ts.sessions[key] <= 0 {
			delete(ts.sessions, key)
		}
	}
}
