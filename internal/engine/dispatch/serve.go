package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// serve serves a session until there is nothing left to do for it. first, if
// not nil, replaces the first step.
func (d *Dispatcher) serve(ctx context.Context, w *sessionWorker, first func(context.Context) (time.Time, error)) {
	pause := time.Duration(0) // after an error of the store
	for {
		step := first
		if first = nil; step == nil {
			step = func(ctx context.Context) (time.Time, error) { return d.step(ctx, w) }
		}
		var next time.Time
		err := runner.Guard(func() error {
			var err error
			next, err = step(ctx)
			return err
		})
		switch {
		case err != nil && (d.isClosing() || ctx.Err() != nil):
			next = time.Time{}
		case errors.Is(err, runner.ErrChanged):
			next = time.Now()
		case errors.Is(err, chela.ErrFenced):
			d.o.Log.Warn("another process has the session", "session", w.key, "err", err)
			next = time.Time{}
		case err != nil:
			pause = min(max(2*pause, time.Second), 10*time.Second)
			d.o.Log.Error("serve session; retrying", "session", w.key, "err", err, "in", pause)
			w.rest(ctx, pause, d.isClosing)
			next = time.Now()
		default:
			pause = 0
		}
		if next.IsZero() && d.remove(w) {
			return
		}
		w.sleep(ctx, next)
	}
}

// pendingWork is the unfinished work of a session.
type pendingWork struct {
	meta   session.Meta // set unless empty
	active []run.Run    // that have not ended
	orphan run.Run      // the running one without a live process
	busy   bool         // another process carries out a run of the session
	items  []queue.Item
}

// read returns the unfinished work of a session.
func (d *Dispatcher) read(ctx context.Context, key chela.SessionKey) (pendingWork, error) {
	return store.Get(ctx, d.o.Store, func(r store.Reader) (pendingWork, error) {
		return d.readWork(key, r.Runs(), r.Queue(), r.Sessions())
	})
}

func (d *Dispatcher) readWork(key chela.SessionKey, runs run.Reader, items queue.Reader,
	sessions session.Reader) (pendingWork, error) {
	var p pendingWork
	var err error
	if p.active, err = runs.Active(key); err != nil {
		return p, err
	}
	if slices.ContainsFunc(p.active, func(a run.Run) bool { return a.State == run.Running }) {
		orphans, err := runs.Orphans(key, d.o.Owner.ID())
		if err != nil {
			return p, err
		}
		if p.busy = len(orphans) == 0; !p.busy {
			p.orphan = orphans[0]
		}
	}
	if p.items, err = items.Waiting(key); err != nil || p.empty() {
		return p, err
	}
	p.meta, err = session.Lookup(sessions, key)
	return p, err
}

func (p *pendingWork) empty() bool { return p.orphan.ID == "" && len(p.items) == 0 }

// idle reports whether the session has neither work nor a run in progress.
func (p *pendingWork) idle() bool { return p.empty() && !p.busy }

// suspended returns the run that is suspended; nil: none is. Runs that wait for another try
// are returned only if there is no other.
func (p *pendingWork) suspended() (live *queue.Live) {
	for _, r := range p.active {
		if r.State == run.Suspended && (live == nil || r.Waits != run.WaitsRetry) {
			live = &queue.Live{Run: r}
		}
	}
	return live
}

// plan decides about the waiting items of a session without a run in progress.
func (d *Dispatcher) plan(p *pendingWork) queue.Decision {
	policy := d.o.Profiles.Policy(p.meta, p.items[0].Inbound.Address)
	return queue.Plan(policy, p.suspended(), queue.Available(p.items, p.active), time.Now())
}

// lane returns the lane of what comes first.
func (d *Dispatcher) lane(p *pendingWork, decision queue.Decision) string {
	switch {
	case p.orphan.ID != "":
		return p.orphan.Lane
	case len(decision.Start) > 0:
		return runner.Draft(p.meta, decision.Start, d.o.Profiles.Sends).Lane
	}
	for _, a := range p.active {
		return a.Lane
	}
	return runner.MainLane
}

// maxAge bounds the age of rows that are acted upon: a session that waited longer
// for its lane reads them again. Each commit checks the rows that it changes, so
// that this only avoids useless work.
const maxAge = 10 * time.Millisecond

// step does what comes first for the session. It returns when the rows are to be
// read again; the zero time: at the next wake.
func (d *Dispatcher) step(ctx context.Context, w *sessionWorker) (time.Time, error) {
	select {
	case <-w.hint:
	default:
	}
	w.changed.Store(false)
	if d.isClosing() {
		return time.Time{}, nil
	}
	p, err := d.read(ctx, w.key)
	if err != nil || p.empty() || p.busy {
		return time.Time{}, err
	}
	var decision queue.Decision
	if p.orphan.ID == "" {
		if decision = d.plan(&p); len(decision.Resume) == 0 && len(decision.Start) == 0 && len(decision.Drop) == 0 {
			return decision.Until, nil
		}
	}
	read := time.Now()
	var next time.Time
	err = d.lanes.Do(ctx, d.lane(&p, decision), string(w.key), func(ctx context.Context) error {
		if d.isClosing() {
			return nil
		}
		if time.Since(read) > maxAge {
			if p, err = d.read(ctx, w.key); err != nil || p.empty() || p.busy {
				return err
			}
		}
		next, err = d.next(ctx, w, &p)
		return err
	})
	return next, err
}

// next does, in the session's lane, what comes first: an interrupted run, a
// decided call, or new items.
func (d *Dispatcher) next(ctx context.Context, w *sessionWorker, p *pendingWork) (time.Time, error) {
	now := time.Now()
	if p.orphan.ID != "" {
		e, err := d.runner.ResumeInterrupted(ctx, p.orphan)
		if err == nil && e != nil {
			err = d.execute(ctx, w, e)
		}
		return now, err
	}
	decision := d.plan(p)
	switch {
	case len(decision.Resume) > 0 && decision.Resume[0].Kind == queue.Resume:
		return d.resume(ctx, w, decision.Resume[0])
	case len(decision.Resume) > 0:
		e, err := d.runner.Resume(ctx, p.suspended().Run, decision.Resume...)
		if err == nil {
			err = d.execute(ctx, w, e)
		}
		return now, err
	case len(decision.Start) == 0:
		return decision.Until, d.drop(ctx, decision)
	}
	e, err := d.runner.Start(ctx, runner.Start{
		Meta: p.meta, Items: decision.Start, Drop: decision.Drop, Summary: decision.Summary,
		NoneWaiting: len(p.items) == len(decision.Start)+len(decision.Drop),
	})
	if err != nil {
		return now, err
	}
	return d.answer(ctx, w, e)
}

// answer executes a new run. It returns the zero time when the commit that ended
// the run found nothing waiting: later items have woken the worker.
func (d *Dispatcher) answer(ctx context.Context, w *sessionWorker, e *runner.Execution) (time.Time, error) {
	if err := d.execute(ctx, w, e); err != nil || !e.NoneWaiting() {
		return time.Now(), err
	}
	return time.Time{}, nil
}

// drop takes items out of the queue.
func (d *Dispatcher) drop(ctx context.Context, decision queue.Decision) error {
	if len(decision.Drop) == 0 {
		return nil
	}
	err := d.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		return errors.Join(tx.Queue().Set(queue.Dropped, decision.Drop...),
			tx.Queue().Set(queue.Waiting, decision.Changed...))
	})
	if err == nil {
		d.runner.PublishAbsorbed(decision.Drop...)
	}
	return err
}

// resume resumes the run whose call was decided, whose background command has ended, or for
// which it is time for another try. If that run was superseded, a decided call is carried
// out without it. resume returns when the rows are to be read again.
func (d *Dispatcher) resume(ctx context.Context, w *sessionWorker, it queue.Item) (time.Time, error) {
	now := time.Now()
	var call session.Call
	r, err := store.Get(ctx, d.o.Store, func(rd store.Reader) (run.Run, error) {
		if it.Call == "" {
			return rd.Runs().Get(it.Parent)
		}
		var err error
		if call, err = rd.Calls().Call(it.Call); err != nil {
			return run.Run{}, err
		}
		return rd.Runs().Get(call.Run)
	})
	switch {
	case errors.Is(err, chela.ErrNotFound) ||
		err == nil && (call.State == session.Closed || it.Call == "" && r.State.Final()):
		return now, d.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return tx.Queue().Set(queue.Done, it) })
	case err != nil:
		return now, err
	case call.Detached:
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		w.begin(r.ID, cancel)
		defer w.Ended()
		return now, d.runner.ExecuteDetached(ctx, it, call, r)
	case r.Waits == run.WaitsRetry:
		return d.retry(ctx, w, it, r)
	}
	e, err := d.runner.Resume(ctx, r, it)
	if err != nil {
		return now, err
	}
	return now, d.execute(ctx, w, e)
}

const (
	retryCheck = 500 * time.Millisecond // between looks whether another try can begin
	retryLate  = time.Minute            // after which it begins beside runs of other sessions
)

// retry starts a run that was interrupted several times again. It may end the process, so
// that runs of other sessions go first, unless they take long, and there is only one such
// run at a time.
func (d *Dispatcher) retry(ctx context.Context, w *sessionWorker, it queue.Item, r run.Run) (time.Time, error) {
	now := time.Now()
	if !d.beginRetry(w, now.Sub(it.Inbound.Time) > retryLate) {
		return now.Add(retryCheck), nil
	}
	defer d.endRetry()
	e, err := d.runner.Retry(ctx, r, it)
	if err == nil {
		err = d.execute(ctx, w, e)
	}
	return now, err
}

// beginRetry reports whether a run that was interrupted several times may start again.
func (d *Dispatcher) beginRetry(w *sessionWorker, late bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retrying {
		return false
	}
	for _, other := range d.live {
		if !late && other != w && other.activeRun() != "" {
			return false
		}
	}
	d.retrying = true
	return true
}

func (d *Dispatcher) endRetry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retrying = false
}

// execute carries out a run to its end, and watches the queue meanwhile.
func (d *Dispatcher) execute(ctx context.Context, w *sessionWorker, e *runner.Execution) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.o.Step("run.execute")
	w.begin(e.ID(), cancel)
	defer w.Ended()
	policy, live := d.runner.Policy(e), e.Live()
	var watching sync.WaitGroup
	w.setOnWake(sync.OnceFunc(func() {
		watching.Go(func() { d.watch(ctx, w, live, policy) })
	}))
	defer func() { w.setOnWake(nil); cancel(nil); watching.Wait() }()
	if !e.NoneWaiting() {
		w.wake()
	}
	return d.runner.Execute(ctx, e, w)
}

// watch reads what arrives for the session during a run, from the first wake on.
// A requested stop ends the run. A message that interrupts ends the run, and messages over the cap are dropped.
// Messages that steer are taken by the run itself.
func (d *Dispatcher) watch(ctx context.Context, w *sessionWorker, live queue.Live, policy queue.Policy) {
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			w.wake() // the rows are read again after the run
			return
		case <-w.hint:
		case <-due:
		}
		stop := false
		items, err := store.Get(ctx, d.o.Store, func(r store.Reader) ([]queue.Item, error) {
			row, err := r.Runs().Get(live.Run.ID)
			if err != nil {
				return nil, err
			}
			stop = row.Stop != ""
			return r.Queue().Waiting(w.key)
		})
		if err != nil {
			continue
		}
		if stop {
			w.stop(live.Run.ID, runner.ErrStopped)
		}
		decision := queue.Plan(policy, &live, items, time.Now())
		if decision.Interrupt {
			w.stop(live.Run.ID, runner.ErrSuperseded)
		}
		if err := d.drop(ctx, decision); err != nil && ctx.Err() == nil {
			d.o.Log.Error("drop messages over the cap", "session", w.key, "err", err)
		}
		if !decision.Until.IsZero() {
			due = time.After(time.Until(decision.Until))
		}
	}
}
