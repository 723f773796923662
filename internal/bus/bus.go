// Package bus carries run events to observers. Events are published after they
// were committed; the bus gives them their sequence number and time.
//
// Observers are called one after the other in the publisher's goroutine and in
// the order of publication for each run. They must be quick: one that talks to
// somebody slow keeps a queue of its own, and none calls [Bus.Live] or
// [Bus.Publish] from inside. An observer that panics is taken off and does not
// disturb the others.
package bus

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
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

// live is what is known of a run between its start and its end.
type live struct {
	mu      sync.Mutex // held while an event of this run is given to the observers
	seq     int64
	session chela.SessionKey
	started time.Time
	text    strings.Builder // of the current message

	suspended bool // it waits for a decision and goes on under the same id
	over      bool // its end was published
}

// Live is a run in progress, for those who join late.
type Live struct {
	Run     chela.RunID
	Started time.Time
	Text    string // of the message that is being written
	Seq     int64  // of the last event
}

// New returns an empty bus.
func New(log *slog.Logger) *Bus {
	return &Bus{log: log, runs: map[chela.RunID]*live{}}
}

// Subscribe calls f for every event from now on, until cancel is called. Of an
// event that is being published then, f may still be told afterwards.
func (b *Bus) Subscribe(f func(chela.Event)) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	id := b.next
	b.subs = append(b.subs[:len(b.subs):len(b.subs)], sub{id, f})
	return func() { b.drop(id) }
}

func (b *Bus) drop(id int) {
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

// Publish gives e to every observer. Of an event that belongs to a run it sets
// Seq, rising by one from 1; of every event it sets Time when it is zero.
// Events of a run that has ended are not published.
func (b *Bus) Publish(e chela.Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	if e.Run == "" || !counted(e.Stream) {
		b.give(e)
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
	if r.over { // while this event waited for its turn
		return
	}
	r.seq++
	e.Seq = r.seq
	switch e.Stream {
	case chela.StreamAssistant:
		if e.Delta == "" && e.Text == "" { // the message begins again
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
			r.over = true
			b.mu.Lock()
			delete(b.runs, e.Run)
			b.mu.Unlock()
		}
	}
	b.give(e)
}

// counted reports whether events of the stream are numbered within their run.
func counted(s chela.Stream) bool {
	switch s {
	case chela.StreamLifecycle, chela.StreamAssistant, chela.StreamThinking, chela.StreamTool, chela.StreamNotice:
		return true
	}
	return false
}

func (b *Bus) give(e chela.Event) {
	b.mu.Lock()
	subs := b.subs
	b.mu.Unlock()
	for _, s := range subs {
		b.call(s, e)
	}
}

func (b *Bus) call(s sub, e chela.Event) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("observer panicked and was taken off", "observer", s.id, "panic", fmt.Sprint(p))
			b.drop(s.id)
		}
	}()
	s.f(e)
}

// Live returns the runs in progress of a session, or of all for the empty key.
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
