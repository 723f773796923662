package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// sessionWorker is a session that a goroutine serves.
type sessionWorker struct {
	key     chela.SessionKey
	hint    chan struct{} // capacity 1: read the rows
	changed atomic.Bool   // there was a wake since the run in progress read the queue

	mu     sync.Mutex
	onWake func()      // called at wakes during a run; nil: no run is in progress
	active chela.RunID // the run in progress; empty: none
	cancel context.CancelCauseFunc
	halted chela.RunID // the run that is stopped as soon as it is active
}

var _ runner.Session = (*sessionWorker)(nil)

// wake makes the goroutine of the session, or a new one, read its rows.
func (d *Dispatcher) wake(key chela.SessionKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.live[key]; w != nil {
		w.wake()
		return
	}
	if d.closing || d.work == nil {
		return
	}
	w := d.addLocked(key)
	w.wake()
	d.serveAsync(w, nil)
}

// addLocked adds the worker of a session that is not served.
func (d *Dispatcher) addLocked(key chela.SessionKey) *sessionWorker {
	w := &sessionWorker{key: key, hint: make(chan struct{}, 1)}
	d.live[key] = w
	d.wg.Add(1)
	return w
}

// serveAsync serves the session on a goroutine.
func (d *Dispatcher) serveAsync(w *sessionWorker, first func(context.Context) (time.Time, error)) {
	go func() {
		defer d.wg.Done()
		d.serve(d.work, w, first)
	}()
}

// remove ends the service of a session, and reports false when a wake arrived.
func (d *Dispatcher) remove(w *sessionWorker) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(w.hint) > 0 && !d.closing {
		return false
	}
	delete(d.live, w.key)
	return true
}

func (d *Dispatcher) worker(key chela.SessionKey) *sessionWorker {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[key]
}

// wake tells the worker that the rows of the session may have changed.
func (w *sessionWorker) wake() {
	w.changed.Store(true)
	select {
	case w.hint <- struct{}{}:
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.onWake != nil {
		w.onWake()
	}
}

// setOnWake sets the function that wakes call. After it returns the former one is
// not called any more.
func (w *sessionWorker) setOnWake(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onWake = f
	if f != nil && len(w.hint) > 0 {
		f()
	}
}

// sleep returns at a wake or at t; at once for the zero t.
func (w *sessionWorker) sleep(ctx context.Context, t time.Time) {
	if t.IsZero() {
		return
	}
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-w.hint:
		w.wake()
	case <-timer.C:
		w.wake()
	case <-ctx.Done():
	}
}

// rest sleeps after an error, also if there are wakes, which come from the failed attempt
// itself, too. It returns early when the dispatcher is closing.
func (w *sessionWorker) rest(ctx context.Context, d time.Duration, closing func() bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !closing() {
		select {
		case <-w.hint:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Changed implements runner.Session.
func (w *sessionWorker) Changed() bool { return w.changed.Swap(false) }

// Ended implements runner.Session: no run is in progress.
func (w *sessionWorker) Ended() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active, w.cancel = "", nil
}

// halt stops the run if it is in progress, or else as soon as it is.
func (w *sessionWorker) halt(id chela.RunID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halted = id
	if w.active == id {
		w.cancel(runner.ErrStopped)
	}
}

// begin sets the run in progress, which cancel stops.
func (w *sessionWorker) begin(id chela.RunID, cancel context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active, w.cancel = id, cancel
	if w.halted == id {
		cancel(runner.ErrStopped)
	}
}

func (w *sessionWorker) activeRun() chela.RunID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active
}

// stop cancels the run in progress if it has the id, or any run for the empty id.
// It returns the id of the run.
func (w *sessionWorker) stop(id chela.RunID, cause error) (chela.RunID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active == "" || id != "" && w.active != id {
		return "", false
	}
	w.cancel(cause)
	return w.active, true
}
