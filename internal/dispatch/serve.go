package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/agent"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

// serve does what there is to do for a session, until there is nothing left.
// first is what it does at once; nil: it looks.
func (c *Conductor) serve(ctx context.Context, s *served, first func(context.Context) (time.Time, error)) {
	pause := time.Duration(0) // after rows could not be read or written
	for {
		do := first
		if first = nil; do == nil {
			do = func(ctx context.Context) (time.Time, error) { return c.step(ctx, s) }
		}
		var again time.Time
		err := guard(func() error {
			var err error
			again, err = do(ctx)
			return err
		})
		switch {
		case err != nil && (c.isClosing() || ctx.Err() != nil):
			again = time.Time{}
		case errors.Is(err, errMoved):
			again = time.Now()
		case err != nil && isFenced(err):
			c.o.Log.Warn("run was superseded", "session", s.key, "err", err)
			again = time.Time{}
		case err != nil:
			pause = min(max(2*pause, time.Second), 10*time.Second)
			c.o.Log.Error("session cannot go on; trying again", "session", s.key, "err", err, "in", pause)
			again = time.Now().Add(pause)
		default:
			pause = 0
		}
		if again.IsZero() && c.leave(s) {
			return
		}
		s.rest(ctx, again)
	}
}

// rest returns when the session is to be looked at again: at a hint, or at t.
func (s *served) rest(ctx context.Context, t time.Time) {
	if t.IsZero() { // a hint is there, or the process is closing
		return
	}
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-s.hint:
		s.look()
	case <-timer.C:
		s.look()
	case <-ctx.Done():
	}
}

// waiting is what is to be done for a session, as its rows say.
type waiting struct {
	meta   session.Meta // when there is something to be done
	active []run.Run    // that have not ended
	orphan run.Run      // the one of them that is without a process
	items  []queue.Item
}

// look reads what waits for the session.
func (c *Conductor) look(ctx context.Context, key chela.SessionKey) (waiting, error) {
	return store.Get(ctx, c.o.Store, func(r store.Reader) (waiting, error) {
		return waitingFor(key, r.Runs(), r.Queue(), r.Sessions())
	})
}

func waitingFor(key chela.SessionKey, runs run.Reader, items queue.Reader, sessions session.Reader) (waiting, error) {
	var w waiting
	var err error
	if w.active, err = runs.Active(key); err != nil {
		return w, err
	}
	for _, a := range w.active {
		if a.State == run.Running {
			w.orphan = a
		}
	}
	if w.items, err = items.Waiting(key); err != nil || w.none() {
		return w, err
	}
	w.meta, err = session.Lookup(sessions, key)
	return w, err
}

// none reports whether nothing is to be done.
func (w *waiting) none() bool { return w.orphan.ID == "" && len(w.items) == 0 }

// all reports whether nothing goes on waiting.
func (w *waiting) all(d queue.Decision) bool { return len(w.items) == len(d.Start)+len(d.Drop) }

// arrived reads the messages that wait, for a run in progress.
func (c *Conductor) arrived(ctx context.Context, key chela.SessionKey) ([]queue.Item, error) {
	return store.Get(ctx, c.o.Store, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Waiting(key) })
}

// step does the next thing for the session. It returns when the session is to
// be looked at again; zero: when something wakes it.
func (c *Conductor) step(ctx context.Context, s *served) (time.Time, error) {
	select {
	case <-s.hint:
	default:
	}
	s.news.Store(false)
	if c.isClosing() {
		return time.Time{}, nil
	}
	w, err := c.look(ctx, s.key)
	if err != nil || w.none() {
		return time.Time{}, err
	}
	p := c.profile(w.meta)
	if w.orphan.ID == "" && !hasKind(w.items, queue.Resume) {
		d := queue.Plan(policyOf(p, w.meta), false, w.items, time.Now())
		if len(d.Start) == 0 && len(d.Drop) == 0 {
			return d.Until, nil
		}
	}
	looked := time.Now()
	var again time.Time
	err = c.o.Lanes.Do(ctx, cmp.Or(p.Lane, mainLane), string(s.key), func(ctx context.Context) error {
		if c.isClosing() {
			return nil
		}
		if time.Since(looked) > fresh {
			if w, err = c.look(ctx, s.key); err != nil {
				return err
			}
			p = c.profile(w.meta)
		}
		again, err = c.next(ctx, s, w, p)
		return err
	})
	return again, err
}

// fresh is how old a look at the rows may be to be acted upon: a session that
// had to wait for its lane looks again. What is done checks its rows in its own
// commit, so that this bounds how much is done in vain and nothing else.
const fresh = 10 * time.Millisecond

// next carries out, inside the session's lane, what is first: a run that was
// interrupted, a call that was decided, or new messages.
func (c *Conductor) next(ctx context.Context, s *served, w waiting, p *Profile) (time.Time, error) {
	now := time.Now()
	if w.orphan.ID != "" {
		return now, c.orphaned(ctx, s, w.orphan)
	}
	for _, it := range w.items {
		if it.Kind == queue.Resume {
			return now, c.decided(ctx, s, it)
		}
	}
	d := queue.Plan(policyOf(p, w.meta), false, w.items, now)
	if len(d.Start) == 0 {
		return d.Until, c.drop(ctx, d.Drop)
	}
	j, err := c.begin(ctx, s.key, p, d)
	if errors.Is(err, errTakenBack) {
		return now, c.takeBack(ctx, s.key)
	}
	if err != nil {
		return now, err
	}
	j.alone = w.all(d)
	return c.answer(ctx, s, j)
}

// answer carries a new run to its end.
func (c *Conductor) answer(ctx context.Context, s *served, j *job) (time.Time, error) {
	if err := c.carry(ctx, s, j, chela.PhaseStart); err != nil || !j.idle {
		return time.Now(), err
	}
	return time.Time{}, nil // what came since has left a hint
}

func hasKind(items []queue.Item, k queue.Kind) bool {
	return slices.ContainsFunc(items, func(it queue.Item) bool { return it.Kind == k })
}

// policyOf is the profile's queue policy with the session's own settings.
func policyOf(p *Profile, m session.Meta) queue.Policy {
	q := p.Queue
	if m.Queue.Mode != "" {
		q.Mode = queue.Mode(m.Queue.Mode)
	}
	if m.Queue.Debounce != 0 {
		q.Debounce = m.Queue.Debounce
	}
	if m.Queue.Cap != 0 {
		q.Cap = m.Queue.Cap
	}
	if m.Queue.Drop != "" {
		q.Drop = queue.Drop(m.Queue.Drop)
	}
	return q
}

// drop takes items out of the queue and tells their senders' clients.
func (c *Conductor) drop(ctx context.Context, items []queue.Item) error {
	if len(items) == 0 {
		return nil
	}
	err := c.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		return tx.Queue().Set(queue.Dropped, items...)
	})
	if err != nil {
		return err
	}
	for _, it := range items {
		c.absorbed(it)
	}
	return nil
}

// orphaned goes on with a run that was interrupted, or closes it.
func (c *Conductor) orphaned(ctx context.Context, s *served, r run.Run) error {
	lease, err := store.Get(ctx, c.o.Store, func(rd store.Reader) (run.Lease, error) { return rd.Runs().Lease(s.key) })
	if err != nil {
		return err
	}
	crashed := lease.Owner != c.o.Owner
	if why := hopeless(r, time.Now()); why != "" && crashed {
		return c.giveUp(ctx, r, why)
	}
	j, err := c.again(ctx, r, nil, crashed)
	if err != nil {
		return err
	}
	if crashed {
		return c.carry(ctx, s, j, chela.PhaseStart)
	}
	return c.carry(ctx, s, j, chela.PhaseResume)
}

// decided goes on with the run whose call was decided, or carries the call out
// by itself when the conversation has gone on without it.
func (c *Conductor) decided(ctx context.Context, s *served, it queue.Item) error {
	var call session.Call
	var r run.Run
	err := c.o.Store.View(ctx, func(rd store.Reader) error {
		var err error
		if call, err = rd.Calls().Call(it.Call); err != nil {
			return err
		}
		r, err = rd.Runs().Get(call.Run)
		return err
	})
	switch {
	case errors.Is(err, chela.ErrNotFound) || err == nil && call.State == session.Closed:
		return c.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			return tx.Queue().Set(queue.Done, it)
		})
	case err != nil:
		return err
	case call.Detached:
		return c.detached(ctx, s, it, call, r)
	}
	j, err := c.again(ctx, r, []queue.Item{it}, false)
	if err != nil {
		return err
	}
	return c.carry(ctx, s, j, chela.PhaseResume)
}

// carry carries a run to its end. phase says whether observers have seen it
// begin. When it returns an error the run's rows say what is left to do.
func (c *Conductor) carry(ctx context.Context, s *served, j *job, phase string) error {
	ctx = chela.WithPrincipal(ctx, j.r.Principal)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if j.p.Timeout > 0 {
		var stop context.CancelFunc
		from := j.r.Started
		if phase == chela.PhaseResume { // what a person took to decide is not the run's
			from = time.Now()
		}
		ctx, stop = context.WithDeadlineCause(ctx, from.Add(j.p.Timeout), errTimeout)
		defer stop()
	}
	c.o.Step("run.carry")
	s.begun(j.r.ID, cancel)
	defer s.ended()
	j.over = s.ended
	c.publish(j, chela.Event{Stream: chela.StreamLifecycle, Phase: phase, Data: j.r.Address})
	if phase == chela.PhaseStart {
		c.announceInput(ctx, j)
	}
	if j.resumed && phase == chela.PhaseStart {
		c.publish(j, chela.Event{Stream: chela.StreamNotice, Text: "interrupted by a restart; going on"})
	}
	id, policy := j.r.ID, policyOf(j.p, j.meta)
	var watching sync.WaitGroup
	s.watched(sync.OnceFunc(func() {
		watching.Go(func() { c.watch(ctx, s, id, policy) })
	}))
	defer func() { s.watched(nil); cancel(nil); watching.Wait() }()
	if !j.alone {
		s.look()
	}

	err := guard(func() error { return c.attempts(ctx, s, j) })
	if p, ok := errors.AsType[*crashed](err); ok {
		c.o.Log.Error("run crashed", "session", s.key, "run", j.r.ID, "err", p, "stack", string(p.stack))
		j.final = nil
		err = c.finish(ctx, j, agent.Event{Kind: agent.End, Reason: agent.Failed, Err: p})
	}
	if isFenced(err) { // its session was deleted: nothing more is written, and observers need not wait
		j.r.State, j.r.Error, j.r.Ended = run.Superseded, wording.Error(err), time.Now()
		c.publishEnd(j)
	}
	if err == nil || isFenced(err) || errors.Is(err, errShutdown) {
		return err
	}
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), errShutdown) {
		c.publish(j, chela.Event{Stream: chela.StreamNotice, Text: "the state directory cannot be written; waiting: " + wording.Line(err.Error(), 200)})
	}
	return err
}

// attempts runs the loop until it ends in a way that cannot be mended here: the
// outer loop of a run.
func (c *Conductor) attempts(ctx context.Context, s *served, j *job) error {
	if j.answered {
		return c.finish(ctx, j, agent.Event{Kind: agent.End, Reason: agent.Done})
	}
	most := j.p.MaxLoops
	if most <= 0 {
		most = defaultMaxLoops
	}
	retries := 0
	for loop := 1; ; loop++ {
		end, err := c.attempt(ctx, s, j)
		if err != nil {
			return err
		}
		if errors.Is(context.Cause(ctx), errShutdown) && end.Reason == agent.Aborted {
			return errShutdown // its rows say where it is; the next start goes on
		}
		if end.Reason == agent.Failed && loop < most && ctx.Err() == nil {
			mended, err := c.mend(ctx, j, end.Err, &retries)
			if err != nil {
				return err
			}
			if mended {
				continue
			}
		}
		if loop >= most && end.Reason == agent.Failed {
			end.Err = &chela.Error{Code: chela.CodeUnavailable, Message: fmt.Sprintf("gave up after %d attempts", loop), Err: end.Err}
		}
		return c.finish(ctx, j, end)
	}
}

// watch looks at what arrives for the session while its run is in progress: a
// message that interrupts ends the run; what the cap drops is dropped at once.
// What steers the run is taken by the run itself. It begins with the first hint.
func (c *Conductor) watch(ctx context.Context, s *served, id chela.RunID, p queue.Policy) {
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			s.look() // what was hinted at is looked at after the run, too
			return
		case <-s.hint:
		case <-due:
		}
		items, err := c.arrived(ctx, s.key)
		if err != nil {
			continue
		}
		d := queue.Plan(p, true, items, time.Now())
		if d.Interrupt {
			s.stop(id, errSuperseded)
		}
		if err := c.drop(ctx, d.Drop); err != nil && ctx.Err() == nil {
			c.o.Log.Error("drop messages over the cap", "session", s.key, "err", err)
		}
		if !d.Until.IsZero() {
			due = time.After(time.Until(d.Until))
		}
	}
}
