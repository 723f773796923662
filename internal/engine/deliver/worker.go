package deliver

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	maxAttempts = 5
	maxParallel = 16               // addresses that are sent to at the same time
	maxAge      = 24 * time.Hour   // an older row is not retried
	recheck     = time.Minute      // minimum delay of a row whose channel is not running
	sendTimeout = 60 * time.Second // of one call of a channel
	grace       = 5 * time.Second  // for calls in progress when the worker is stopped
)

// Options configures a Worker.
type Options struct {
	Log   *slog.Logger
	Store store.Store
	Bus   *bus.Bus

	// Track returns a function that reports whether this process has certainly held
	// its leases since. It is called before the attempt is stored, and the function
	// before each call of a channel.
	Track func() (alive func() bool)
	// Channel returns the running instance of an account. It may wait while the
	// account is restarted. The chain of its error contains chela.ErrFenced if
	// another process runs the account. Any other error says that the account is
	// missing.
	Channel func(ctx context.Context, name string, account chela.AccountID) (channel.Instance, error)
	// Elsewhere reports whether another process runs the account. Its rows are left
	// to that process. A wake of the outbox follows when this process takes over.
	// nil: no other process uses the store.
	Elsewhere func(name string, account chela.AccountID) bool
	// Limits returns what a channel's platform allows.
	Limits func(name string) channel.Limits

	// Load returns an attachment with its content, given a reference to it; nil:
	// rows contain their attachments.
	Load func(chela.Media) (chela.Media, error)

	// Say returns the recording of a text for an agent, with a reference to its content;
	// nil: nothing is said.
	Say func(ctx context.Context, agent chela.AgentID, text string) (chela.Media, error)

	// Timeout returns the time limit for sending a row once; 0: the usual one. nil: the
	// usual one for all rows.
	Timeout func(outbox.Row) time.Duration

	// Sends reports whether what a session says is sent to a chat. Rows that exist are
	// sent in any case; nil: [session.SendAlways].
	Sends func(session.Meta, chela.Address) bool

	// Hooks decide about answers and are told of sent messages; nil: there are none.
	Hooks *hook.Points

	// Sent are called for each row that is closed.
	Sent []Sent

	// Style returns how answers of an agent appear in a chat; nil: as by default.
	Style func(chela.AgentID, chela.Address) Style
}

// Worker sends the rows of the outbox.
type Worker struct {
	o         Options
	retry     backoff.Policy
	scanAgain chan struct{} // cap 1: rows may be due
	approvals chan struct{} // cap 1: an approval may be pending

	mu       sync.Mutex
	busy     map[chela.Address]bool // addresses that a goroutine is sending to
	displays map[chela.RunID]*display
	pauses   map[chela.Address]pause // between the messages of an answer
	stopping bool                    // no further goroutine is started
	changed  chan struct{}           // closed and replaced whenever a row changes
	wg       sync.WaitGroup
}

// New returns a Worker. It sends nothing before Run; Ended and Chunks can be
// used.
func New(o Options) *Worker {
	if o.Sends == nil {
		o.Sends = session.SendAlways
	}
	if o.Hooks == nil {
		o.Hooks = hook.New(o.Log)
	}
	return &Worker{
		o: o, retry: backoff.Policy{First: time.Second, Max: time.Minute, Jitter: 0.3},
		scanAgain: make(chan struct{}, 1), approvals: make(chan struct{}, 1), changed: make(chan struct{}),
		busy: map[chela.Address]bool{}, displays: map[chela.RunID]*display{}, pauses: map[chela.Address]pause{},
	}
}

// Run sends rows until ctx ends. It then waits for calls in progress, for at most
// five seconds, and returns when all its goroutines have ended.
func (w *Worker) Run(ctx context.Context) error {
	wakes := w.o.Store.Wakes(ctx, store.TopicOutbox)
	unsubscribe := w.o.Bus.Subscribe(func(e chela.Event) { w.observe(ctx, e) })
	signal(w.approvals) // of an earlier process
	if err := w.closePreviews(ctx); err != nil && ctx.Err() == nil {
		w.o.Log.Error("close the previews of ended runs", "err", err)
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	slots := make(chan struct{}, maxParallel)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case _, ok := <-wakes:
			if !ok {
				continue
			}
		case <-w.approvals:
			if err := w.requestApprovals(ctx); err != nil && ctx.Err() == nil {
				w.o.Log.Error("request approvals on channels", "err", err)
			}
			continue
		case <-w.scanAgain:
		case <-timer.C:
		case <-ctx.Done():
			continue
		}
		if next, err := w.scan(ctx, calls, slots); err != nil && ctx.Err() == nil {
			w.o.Log.Error("read the outbox", "err", err)
			timer.Reset(recheck)
		} else if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
	unsubscribe()
	w.mu.Lock()
	w.stopping = true
	w.mu.Unlock()
	stop := time.AfterFunc(grace, cancel)
	defer stop.Stop()
	w.wg.Wait()
	return nil
}

// signal sends to a channel of capacity one unless a signal is pending.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// scan starts to send the rows that are due. It returns the time at which the
// next row is due; zero: none is.
func (w *Worker) scan(ctx, calls context.Context, slots chan struct{}) (next time.Time, err error) {
	queues, order, err := w.open(ctx)
	if err != nil {
		return next, err
	}
	now := time.Now()
	for _, a := range order {
		if w.o.Elsewhere != nil && w.o.Elsewhere(a.Channel, a.Account) {
			continue
		}
		rows := queues[a]
		if at := later(rows[0].NotBefore, w.pausedUntil(rows[0])); at.After(now) {
			if next.IsZero() || at.Before(next) {
				next = at
			}
			continue
		}
		w.start(a, func() { // if the address is busy, its goroutine scans again at its end
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return
			}
			w.drain(ctx, calls, rows)
		})
	}
	return next, nil
}

// open returns the rows to be sent, by address, and the addresses, both in the
// order of writing.
func (w *Worker) open(ctx context.Context) (map[chela.Address][]outbox.Row, []chela.Address, error) {
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

// start runs f on a goroutine that has exclusive use of the address. It does
// nothing if the address is busy or the worker is stopping.
func (w *Worker) start(a chela.Address, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping || w.busy[a] {
		return
	}
	w.busy[a] = true
	w.wg.Go(func() {
		defer w.release(a)
		f()
	})
}

// acquire gives the caller exclusive use of the address. It reports false if the
// address is busy.
func (w *Worker) acquire(a chela.Address) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[a] {
		return false
	}
	w.busy[a] = true
	return true
}

// release ends the exclusive use of the address.
func (w *Worker) release(a chela.Address) {
	w.mu.Lock()
	delete(w.busy, a)
	w.mu.Unlock()
	signal(w.scanAgain)
}

// drain sends the rows of one address until one of them has to wait.
func (w *Worker) drain(ctx, calls context.Context, rows []outbox.Row) {
	for _, row := range rows {
		if ctx.Err() != nil || later(row.NotBefore, w.pausedUntil(row)).After(time.Now()) {
			return
		}
		done, err := w.process(calls, row.Key)
		if err != nil {
			w.o.Log.Error("deliver a message; retrying", "key", row.Key, "channel", row.Address.Channel, "err", err)
			_ = backoff.Sleep(ctx, w.retry.Delay(1, rand.Float64()))
		}
		if !done {
			return
		}
		w.pauseAfter(row)
	}
}

// pause is how long the next message of a run waits, so that people can read the one
// before it.
type pause struct {
	run   chela.RunID
	until time.Time
}

// pauseAfter begins the pause after a row that was sent.
func (w *Worker) pauseAfter(row outbox.Row) {
	s := w.style(row.Session.Agent(), row.Address)
	if row.Run == "" || s.PauseMax == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(w.pauses, func(_ chela.Address, p pause) bool { return !p.until.After(now) })
	w.pauses[row.Address] = pause{row.Run, now.Add(s.PauseMin + rand.N(s.PauseMax-s.PauseMin+1))}
}

// pausedUntil returns the end of the pause before a row; zero: there is none.
func (w *Worker) pausedUntil(row outbox.Row) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pauses[row.Address]; p.run == row.Run && row.Run != "" {
		return p.until
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
