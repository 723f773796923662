// Package bus distributes run events to observers. Events are published after they are
// committed. The bus sets their sequence numbers and times.
//
// Observers are called one after the other in the goroutine of the publisher, for each
// run in the order of publication. They must return quickly: an observer with a slow
// client needs its own queue. They must not call [Bus.Live] or
// [Bus.Publish]. An observer that panics is removed; the others continue.
package bus

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Bus is a set of observers. The zero value is not usable; see [New].
type Bus struct {
	log *slog.Logger

	mu   sync.Mutex
	next int
	subs []sub // in order of subscription
	runs map[chela.RunID]*live
}

type sub struct {
	id int
	f  func(chela.Event)
}

// live is the state of a run between its start and its end.
type live struct {
	mu      sync.Mutex // held while observers receive an event of this run
	seq     int64
	session chela.SessionKey
	started time.Time
	text    strings.Builder // of the current message

	suspended bool // the run is suspended, and will continue under the same id
	ended     bool // the end of the run was published
}

// Live is the state of a run in progress, for observers that subscribe during the run.
type Live struct {
	Run     chela.RunID
	Started time.Time
	Text    string // of the message in progress
	Seq     int64  // of the last event
}

// New returns an empty bus.
func New(log *slog.Logger) *Bus {
	return &Bus{log: log, runs: map[chela.RunID]*live{}}
}

// Subscribe calls f for every further event until cancel is called. f may still receive
// an event that is being published when cancel is called.
func (b *Bus) Subscribe(f func(chela.Event)) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	id := b.next
	b.subs = append(b.subs[:len(b.subs):len(b.subs)], sub{id, f})
	return func() { b.unsubscribe(id) }
}

func (b *Bus) unsubscribe(id int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := make([]sub, 0, len(b.subs))
	for _, s := range b.subs {
		if s.id != id {
			kept = append(kept, s)
		}
	}
	b.subs = kept
}

// Publish sends e to every observer. It sets Time if it is zero, and Seq, counted
// from 1, for events of a run. Events of a run that has ended are discarded.
func (b *Bus) Publish(e chela.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if e.Run == "" || !counted(e.Stream) {
		b.deliver(e)
		return
	}
	b.mu.Lock()
	r := b.runs[e.Run]
	if r == nil {
		if e.Stream != chela.StreamLifecycle || e.Phase != chela.PhaseStart && e.Phase != chela.PhaseResume {
			b.mu.Unlock()
			return
		}
		r = &live{session: e.Session, started: e.Time}
		b.runs[e.Run] = r
	}
	b.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended { // ended while this call waited for the lock
		return
	}
	r.seq++
	e.Seq = r.seq
	switch e.Stream {
	case chela.StreamAssistant:
		if e.Delta == "" && e.Text == "" { // the message starts over
			r.text.Reset()
		}
		r.text.WriteString(e.Delta)
		e.Text = r.text.String()
	case chela.StreamLifecycle:
		switch e.Phase {
		case chela.PhaseModel:
			r.text.Reset()
		case chela.PhaseSuspended:
			r.suspended = true
		case chela.PhaseResume:
			r.suspended = false
		case chela.PhaseEnd, chela.PhaseError:
			r.ended = true
			b.mu.Lock()
			delete(b.runs, e.Run)
			b.mu.Unlock()
		}
	}
	b.deliver(e)
}

// counted reports whether events of the stream are numbered within their run.
func counted(s chela.Stream) bool {
	switch s {
	case chela.StreamLifecycle, chela.StreamAssistant, chela.StreamThinking, chela.StreamTool,
		chela.StreamNotice, chela.StreamPlan:
		return true
	}
	return false
}

// deliver calls all observers.
func (b *Bus) deliver(e chela.Event) {
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	for _, s := range subs {
		b.call(s, e)
	}
}

// call calls one observer. It removes the observer if it panics.
func (b *Bus) call(s sub, e chela.Event) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("observer panicked and was removed", "observer", s.id, "panic", fmt.Sprint(p))
			b.unsubscribe(s.id)
		}
	}()
	s.f(e)
}

// Live returns the runs in progress of a session, or of all sessions for the empty key.
func (b *Bus) Live(key chela.SessionKey) []Live {
	b.mu.Lock()
	runs := make(map[chela.RunID]*live, len(b.runs))
	for id, r := range b.runs {
		if key == "" || r.session == key {
			runs[id] = r
		}
	}
	b.mu.Unlock()
	var out []Live
	for id, r := range runs {
		r.mu.Lock()
		if !r.suspended {
			out = append(out, Live{id, r.started, r.text.String(), r.seq})
		}
		r.mu.Unlock()
	}
	return out
}
