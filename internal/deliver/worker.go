package deliver

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/backoff"
	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/channel"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/store"
)

const (
	maxAttempts = 5
	parallel    = 16               // addresses that are sent to at once
	tooOld      = 24 * time.Hour   // a row that could not be tried since then is given up
	absent      = time.Minute      // at least, until a channel that is not running is looked for again
	sendTime    = 60 * time.Second // of one call of a channel
	grace       = 5 * time.Second  // for calls in progress when the worker is stopped
)

// Options is what a Worker works with.
type Options struct {
	Log   *slog.Logger
	Store store.Store
	Bus   *bus.Bus

	// Channels returns the channel of an account that is running.
	Channels func(name string, account chela.AccountID) (channel.Channel, channel.Limits, bool)

	// Load returns an attachment with its content, for those that rows refer
	// to; nil: rows carry it.
	Load func(chela.Media) (chela.Media, error)

	// Typing and Preview show a run in progress where the channel can do it.
	Typing  bool
	Preview func(chela.Address) bool // nil: nowhere
}

// Worker sends what is in the outbox.
type Worker struct {
	o     Options
	retry backoff.Policy
	look  chan struct{} // cap 1: look at the rows again
	asked chan struct{} // cap 1: a decision is waited for

	mu    sync.Mutex
	busy  map[chela.Address]bool // a goroutine talks to it
	shows map[chela.RunID]*show  // runs in progress
	shut  bool                   // no goroutine is begun any more
	moved chan struct{}          // closed when a row has moved, and made anew
	wg    sync.WaitGroup
}

// New returns a Worker. Nothing happens before Run, but Ended may be used.
func New(o Options) *Worker {
	return &Worker{
		o: o, retry: backoff.Policy{First: time.Second, Max: time.Minute, Jitter: 0.3},
		look: make(chan struct{}, 1), asked: make(chan struct{}, 1), busy: map[chela.Address]bool{}, shows: map[chela.RunID]*show{}, moved: make(chan struct{}),
	}
}

// Run sends until ctx ends. Calls in progress are then given a moment; it
// returns when everything it began is done.
func (w *Worker) Run(ctx context.Context) error {
	wakes := w.o.Store.Wakes(ctx, store.TopicOutbox)
	unsubscribe := w.o.Bus.Subscribe(func(e chela.Event) { w.observe(ctx, e) })
	hint(w.asked) // by the process before, perhaps
	if err := w.tidy(ctx); err != nil && ctx.Err() == nil {
		w.o.Log.Error("previews of runs that were superseded", "err", err)
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	slots := make(chan struct{}, parallel)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case _, ok := <-wakes:
			if !ok {
				continue
			}
		case <-w.asked:
			if err := w.ask(ctx); err != nil && ctx.Err() == nil {
				w.o.Log.Error("ask channels for decisions", "err", err)
			}
			continue
		case <-w.look:
		case <-timer.C:
		case <-ctx.Done():
			continue
		}
		if next, err := w.scan(ctx, calls, slots); err != nil && ctx.Err() == nil {
			w.o.Log.Error("look at the outbox", "err", err)
			timer.Reset(absent)
		} else if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
	unsubscribe()
	w.mu.Lock()
	w.shut = true
	w.mu.Unlock()
	stop := time.AfterFunc(grace, cancel)
	defer stop.Stop()
	w.wg.Wait()
	return nil
}

// hint signals a channel of capacity one; what is signalled already stays so.
func hint(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// scan begins to send what is due, and returns when something else will be.
func (w *Worker) scan(ctx, calls context.Context, slots chan struct{}) (next time.Time, err error) {
	queues, order, err := w.due(ctx)
	if err != nil {
		return next, err
	}
	now := time.Now()
	for _, a := range order {
		rows := queues[a]
		if at := rows[0].NotBefore; at.After(now) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		if !w.begin(a, func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return
			}
			w.drain(ctx, calls, rows)
		}) {
			continue // whoever is busy with it wakes the worker when done
		}
	}
	return next, nil
}

// due returns the rows to be sent, by address in order of writing.
func (w *Worker) due(ctx context.Context) (map[chela.Address][]outbox.Row, []chela.Address, error) {
	queues := map[chela.Address][]outbox.Row{}
	var order []chela.Address
	err := w.o.Store.View(ctx, func(r store.Reader) error {
		clear(queues)
		order = order[:0]
		rows, err := r.Outbox().Open(0)
		for _, row := range rows {
			if row.State == outbox.Draft {
				continue
			}
			if queues[row.Address] == nil {
				order = append(order, row.Address)
			}
			queues[row.Address] = append(queues[row.Address], row)
		}
		return err
	})
	return queues, order, err
}

// begin runs f as the only one that talks to the address; it reports false,
// and does nothing, when there is one.
func (w *Worker) begin(a chela.Address, f func()) bool {
	if !w.take(a) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shut {
		delete(w.busy, a)
		return false
	}
	w.wg.Go(func() {
		defer w.give(a)
		f()
	})
	return true
}

// take makes the caller the only one that talks to the address.
func (w *Worker) take(a chela.Address) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[a] {
		return false
	}
	w.busy[a] = true
	return true
}

func (w *Worker) give(a chela.Address) {
	w.mu.Lock()
	delete(w.busy, a)
	w.mu.Unlock()
	hint(w.look)
}

// drain sends the rows of one address until one of them has to wait.
func (w *Worker) drain(ctx, calls context.Context, rows []outbox.Row) {
	for _, row := range rows {
		if ctx.Err() != nil || row.NotBefore.After(time.Now()) {
			return
		}
		done, err := w.carry(calls, row.Key)
		if err != nil {
			w.o.Log.Error("delivery", "key", row.Key, "channel", row.Address.Channel, "err", err)
			w.later(ctx, row)
		}
		if !done {
			return
		}
	}
}

// later keeps the worker from trying a row again at once when its outcome could
// not be written.
func (w *Worker) later(ctx context.Context, row outbox.Row) {
	t := time.NewTimer(w.retry.Delay(1, rand.Float64()))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
