package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Options are the dependencies of a Service. All fields but Step are required.
type Options struct {
	Log    *slog.Logger
	Store  store.Store
	Bus    *bus.Bus
	Hooks  *hook.Points // nil: there are none
	Config Config

	// Ready reports whether the account of an address is running.
	Ready func(chela.Address) bool
	// Chunks returns how texts are split for an address.
	Chunks func(chela.Address) chunk.Options
	// Step is called before the named step. Tests stop the process in it.
	Step func(name string)
}

// Config is the configuration in force. Its methods do no I/O, except File.
type Config interface {
	// Heartbeats returns the settings of all agents.
	Heartbeats() []heartbeat.Settings
	// HeartbeatFile returns the text of an agent's HEARTBEAT.md, and reports whether the
	// file exists.
	HeartbeatFile(chela.AgentID) (text string, exists bool)
	// HeartbeatVisibility returns what the account of an address shows.
	HeartbeatVisibility(chela.Address) heartbeat.Visibility
	// IsOwnerChat reports whether an address is a direct chat with a person who may
	// change settings.
	IsOwnerChat(chela.Address) bool
	// Sends reports whether what a session says is sent to a chat.
	Sends(session.Meta, chela.Address) bool
}

// Service runs heartbeats. It is safe for concurrent use.
type Service struct {
	o     Options
	again chan struct{} // cap 1: look again
	ended chan struct{} // cap 1: a run ended, which may have written a HEARTBEAT.md
	// waits is set while an agent has an interval and no HEARTBEAT.md with content.
	waits atomic.Bool

	waiting   []heartbeat.Settings // of those agents; used by Run only, like what follows
	published map[chela.AgentID]heartbeat.Result
}

// New returns a Service. It does nothing before Run; Ended and Sent can be used.
func New(o Options) *Service {
	if o.Hooks == nil {
		o.Hooks = hook.New(o.Log)
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	return &Service{o: o, again: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
}

// Changed says that the configuration or the switch may have changed.
func (s *Service) Changed() { signal(s.again) }

// signal sends, unless something is waiting to be received.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

const (
	maxWait    = time.Minute      // until the clock is looked at again
	retryAfter = 10 * time.Second // after an error of the store
)

// Run runs heartbeats until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	wakes := s.o.Store.Wakes(ctx, store.TopicHeartbeat)
	defer s.o.Bus.Subscribe(func(e chela.Event) {
		switch {
		case e.End == nil:
		case heartbeat.IsRun(e.Run):
			s.Changed()
		case s.waits.Load():
			signal(s.ended)
		}
	})()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-wakes:
			if !ok {
				return nil
			}
		case <-s.again:
		case <-s.ended: // almost every run of a conversation ends without one: the rows are not read for it
			if !slices.ContainsFunc(s.waiting, s.hasWork) {
				continue
			}
		case <-timer.C:
		}
		next, err := s.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.o.Log.Error("heartbeats; retrying", "err", err, "in", retryAfter)
			timer.Reset(retryAfter)
		case next.IsZero():
			timer.Stop()
		default:
			timer.Reset(min(time.Until(next), maxWait))
		}
	}
}

// rows is what a step reads.
type rows struct {
	wakes    []heartbeat.Wake
	states   map[chela.AgentID]heartbeat.State
	disabled bool
}

func (s *Service) read(ctx context.Context) (rows, error) {
	return store.Get(ctx, s.o.Store, func(r store.Reader) (rows, error) {
		out := rows{states: map[chela.AgentID]heartbeat.State{}}
		states, err1 := r.Heartbeats().States()
		for _, st := range states {
			out.states[st.Agent] = st
		}
		var err2, err3 error
		out.wakes, err2 = r.Heartbeats().Wakes()
		out.disabled, err3 = heartbeat.Disabled(r)
		return out, errors.Join(err1, err2, err3)
	})
}

// step does what is due, and returns when the next step is due; zero: after a wake.
func (s *Service) step(ctx context.Context) (next time.Time, err error) {
	all := map[chela.AgentID]heartbeat.Settings{}
	for _, a := range s.o.Config.Heartbeats() {
		all[a.Agent] = a
	}
	r, err := s.read(ctx)
	if err != nil {
		return next, err
	}
	now, changed := time.Now(), false
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	var errs []error // one agent does not keep the others from running
	ticks, waiting := map[chela.AgentID]bool{}, s.waiting[:0]
	for id, a := range all {
		if a.Every <= 0 || r.disabled {
			continue
		}
		if a.NeedsFile && !s.hasWork(a) {
			waiting = append(waiting, a)
			continue
		}
		ticks[id] = true
		st := r.states[id]
		base, due := heartbeat.Next(st.Ticked, a.Every, now)
		if !base.Equal(st.Ticked) {
			errs = append(errs, s.begin(ctx, id, st.Ticked, base))
		}
		if due.After(now) {
			sooner(due)
			continue
		}
		tick := heartbeat.Tick(base, a.Every, now)
		errs = append(errs, s.tick(ctx, a, base, tick))
		sooner(tick.Add(a.Every))
		changed = true
	}
	for id := range r.states {
		if _, ok := all[id]; !ok {
			errs = append(errs, s.forget(ctx, id))
		}
	}
	s.waiting = waiting
	s.waits.Store(len(waiting) > 0)
	if changed {
		if r, err = s.read(ctx); err != nil {
			return next, errors.Join(append(errs, err)...)
		}
	}
	for _, w := range r.wakes {
		a, ok := all[w.Agent]
		var err error
		switch {
		case !ok, w.Mode == heartbeat.NextTick && !ticks[w.Agent]:
			err = s.drop(ctx, w)
		case w.Mode == heartbeat.NextTick:
		case w.Due.After(now):
			sooner(w.Due)
		default:
			var until time.Time
			if until, err = s.claim(ctx, a, w); !until.IsZero() {
				sooner(until)
			}
		}
		errs = append(errs, err)
	}
	s.publish(r.states)
	return next, errors.Join(errs...)
}

// Settings returns the settings of all agents. Every is 0 for an agent that has no ticks
// because it has nothing to do.
func (s *Service) Settings() []heartbeat.Settings {
	all := s.o.Config.Heartbeats()
	for i, a := range all {
		if a.NeedsFile && a.Every > 0 && !s.hasWork(a) {
			all[i].Every = 0
		}
	}
	return all
}

// hasWork reports whether HEARTBEAT.md of an agent has content.
func (s *Service) hasWork(a heartbeat.Settings) bool {
	file, _ := s.file(a)
	return !file.Empty()
}

// publish tells observers of outcomes since it was last called.
func (s *Service) publish(states map[chela.AgentID]heartbeat.State) {
	first := s.published == nil
	before := s.published
	s.published = map[chela.AgentID]heartbeat.Result{}
	for id, st := range states {
		s.published[id] = st.Last
		if !first && st.Last != before[id] {
			s.o.Bus.Publish(chela.Event{Session: st.Last.Session, Stream: chela.StreamHeartbeat, Data: st.Last})
		}
	}
}

// update changes the state of an agent in a transaction.
func (s *Service) update(ctx context.Context, id chela.AgentID, f func(store.Tx, *heartbeat.State) error) error {
	return s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		st, err := tx.Heartbeats().State(id)
		if err != nil {
			return err
		}
		if err := f(tx, &st); err != nil {
			return err
		}
		return tx.Heartbeats().PutState(st)
	})
}

// begin stores the beginning of an interval: of the first one, or after the clock was set
// back.
func (s *Service) begin(ctx context.Context, id chela.AgentID, had, base time.Time) error {
	return s.update(ctx, id, func(_ store.Tx, st *heartbeat.State) error {
		if !st.Ticked.Equal(had) {
			return nil // another process did
		}
		st.Ticked = base
		for name, at := range st.Tasks {
			if at.After(base) {
				st.Tasks = maps.Clone(st.Tasks)
				st.Tasks[name] = base
			}
		}
		return nil
	})
}

// forget deletes the state of an agent that does not exist any more.
func (s *Service) forget(ctx context.Context, id chela.AgentID) error {
	return s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return tx.Heartbeats().DeleteState(id) })
}

// drop deletes a wake that cannot have an effect.
func (s *Service) drop(ctx context.Context, w heartbeat.Wake) error {
	return s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		have, err := tx.Heartbeats().Wake(w.Session)
		if errors.Is(err, chela.ErrNotFound) || err == nil && have.Mode != w.Mode {
			return nil
		}
		return errors.Join(err, tx.Heartbeats().DeleteWake(w.Session))
	})
}
