package dispatch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/kit/lane"
)

// Options are the dependencies of a Dispatcher.
type Options struct {
	Runner runner.Options // how runs are carried out
	Lanes  *lane.Lanes

	// Drain is how long Run waits for runs in progress when its context ends.
	// Runs that take longer are resumed at the next start. 0: 8 s.
	Drain time.Duration
}

// Dispatcher serves sessions. It is safe for concurrent use.
type Dispatcher struct {
	o      runner.Options
	lanes  *lane.Lanes
	drain  time.Duration
	runner *runner.Runner

	mu      sync.Mutex
	live    map[chela.SessionKey]*sessionWorker
	closing bool
	// retrying says that a run that was interrupted several times is in progress.
	retrying bool
	work     context.Context // of all runs; cancelled at the end of the drain
	wg       sync.WaitGroup
}

// New returns a Dispatcher. It does nothing before Run.
func New(o Options) *Dispatcher {
	if o.Runner.Step == nil {
		o.Runner.Step = func(string) {}
	}
	if o.Runner.Children == nil {
		o.Runner.Children = runner.NoChildren{}
	}
	d := &Dispatcher{
		lanes: o.Lanes, drain: cmp.Or(o.Drain, 8*time.Second), live: map[chela.SessionKey]*sessionWorker{},
	}
	d.o, d.runner = o.Runner, runner.New(o.Runner)
	return d
}

// recoverPause is the pause before the next attempt to find unfinished work.
const recoverPause = time.Second

// Run serves sessions until ctx ends. Then it starts nothing new, waits up to
// Options.Drain for the runs in progress, and returns when all its goroutines have
// ended.
func (d *Dispatcher) Run(ctx context.Context) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(runner.ErrShutdown)
	d.mu.Lock()
	d.work = work
	d.mu.Unlock()

	wakes := d.o.Store.Wakes(ctx, store.TopicQueue)
	var again <-chan time.Time // after an error of the store
	find := func(of string) {
		again = nil
		if err := d.recover(ctx); err != nil && ctx.Err() == nil {
			d.o.Log.Error("find unfinished work"+of+"; retrying", "err", err)
			again = time.After(recoverPause)
		}
	}
	find("")
	d.expire(ctx)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	others, stop := d.o.Owner.Tick()
	defer stop()
	for ctx.Err() == nil {
		select {
		case t, ok := <-wakes:
			if ok {
				d.wake(t.Session)
			}
		case <-tick.C:
			d.expire(ctx)
		case <-again:
			find("")
		case <-others: // another process may have ended
			find(" of other processes")
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	d.closing = true
	for _, w := range d.live {
		w.wake()
	}
	d.mu.Unlock()

	done := make(chan struct{})
	go func() { d.wg.Wait(); close(done) }()
	t := time.NewTimer(d.drain)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		cancel(runner.ErrShutdown)
		<-done
	}
	return nil
}

// recover wakes every session with unfinished work. Items that a process that
// ended had deferred are released.
func (d *Dispatcher) recover(ctx context.Context) error {
	deferred, err := store.Get(ctx, d.o.Store, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Deferred() })
	if err == nil && len(deferred) > 0 {
		err = d.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			_, err := queue.Release(tx.Queue(), func(owner string) (bool, error) {
				if owner == d.o.Owner.ID() {
					return true, nil
				}
				return tx.Leases().Alive(owner)
			})
			return err
		})
	}
	if err != nil {
		return err
	}
	keys, err := store.Get(ctx, d.o.Store, func(r store.Reader) ([]chela.SessionKey, error) {
		keys, err := r.Queue().Sessions()
		if err != nil {
			return nil, err
		}
		orphans, err := r.Runs().Orphans("", d.o.Owner.ID())
		for _, o := range orphans {
			keys = append(keys, o.Session)
		}
		return keys, err
	})
	for _, k := range keys {
		d.wake(k)
	}
	return err
}

func (d *Dispatcher) isClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// Live reports whether a run of the session is in progress in this process.
func (d *Dispatcher) Live(key chela.SessionKey) bool {
	w := d.worker(key)
	return w != nil && w.activeRun() != ""
}

// Aside is [runner.Runner.Aside].
func (d *Dispatcher) Aside(ctx context.Context, it queue.Item, question string) (string, error) {
	return d.runner.Aside(ctx, it, question)
}

// Notify queues an event that joins the session's next run and starts none. The
// newest [queue.MaxNext] are kept.
func (d *Dispatcher) Notify(ctx context.Context, key chela.SessionKey, text string) error {
	id := uuid.NewString()
	return d.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		return store.Enqueue(tx, queue.NewEvent(id, key, chela.Origin{Kind: chela.OriginHook}, text, time.Now()))
	})
}

// Wait returns the run when it is final, or ctx's error. The id may be that of a
// message; then Wait returns the run that took it. An unknown id is
// chela.ErrNotFound.
func (d *Dispatcher) Wait(ctx context.Context, id chela.RunID) (run.Run, error) {
	changed := make(chan struct{}, 1)
	cancel := d.o.Bus.Subscribe(func(e chela.Event) {
		if e.End != nil || e.Stream == chela.StreamSession || e.Stream == chela.StreamCommand {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	defer cancel()
	for {
		r, err := d.Find(ctx, id)
		if err != nil || r.State.Final() {
			return r, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// Find returns the run with the id, or the run that took the message with the id. An
// unknown id is chela.ErrNotFound.
func (d *Dispatcher) Find(ctx context.Context, id chela.RunID) (run.Run, error) {
	return store.Get(ctx, d.o.Store, func(rd store.Reader) (run.Run, error) { return find(rd, id) })
}

// find returns the run with the id, or the run that took the message with the id.
// A message that waits is returned as a run that has not started.
func find(rd store.Reader, id chela.RunID) (run.Run, error) {
	r, err := rd.Runs().Get(id)
	if !errors.Is(err, chela.ErrNotFound) {
		return r, err
	}
	it, err := rd.Queue().Get(string(id))
	if err != nil {
		return r, err
	}
	if it.Run != "" && it.Run != id {
		return rd.Runs().Get(it.Run)
	}
	return pendingRun(it), nil
}

// pendingRun describes a message without a run as a run.
func pendingRun(it queue.Item) run.Run {
	r := run.Run{ID: chela.RunID(it.ID), Session: it.Session, State: run.Running, Started: it.Created}
	switch it.State {
	case queue.Cancelled:
		r.State, r.Error, r.Ended = run.Aborted, cmp.Or(it.Note, "cancelled before it began"), it.Created
	case queue.Dropped:
		r.State, r.Error, r.Ended = run.Aborted, cmp.Or(it.Note, "dropped: too many messages were waiting"), it.Created
	case queue.Done:
		r.State, r.Ended = run.OK, it.Created
		if it.Kind == queue.Command {
			r.Text = it.Result.Text
		}
	}
	return r
}
