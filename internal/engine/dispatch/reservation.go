package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// Reservation reserves an idle session and room in its lane for a message that is
// about to be accepted, so that one commit accepts the message and begins its run.
type Reservation struct {
	d       *Dispatcher
	w       *sessionWorker
	release func() // of the lane

	e *runner.Execution // of the last Begin that began a run
}

// Reserve reserves the session until Release. It returns nil when the session is
// served already or its lane is full.
func (d *Dispatcher) Reserve(key chela.SessionKey) *Reservation {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.live[key] != nil || d.closing || d.work == nil {
		return nil
	}
	release := d.lanes.Try(runner.MainLane, string(key))
	if release == nil {
		return nil
	}
	return &Reservation{d: d, w: d.addLocked(key), release: release}
}

// Begin begins a run for the item in tx, a synced transaction that put the item in
// state Taken by the run of its id. It reports false, and has written nothing, when
// the item has to wait: for other work of the session, for more messages, for a
// profile that cannot be resolved without I/O, or for its attachments to be read.
func (r *Reservation) Begin(tx store.Tx, m session.Meta, it queue.Item) (bool, error) {
	p, err := r.d.readWork(m.Key, tx.Runs(), tx.Queue(), tx.Sessions())
	if err != nil || !p.idle() {
		return false, err
	}
	p.meta, p.items = m, []queue.Item{it}
	if len(r.d.plan(&p).Start) == 0 {
		return false, nil
	}
	draft := runner.Draft(m, p.items, r.d.o.Profiles.Sends)
	profile, ready := r.d.o.Profiles.Ready(m, draft)
	if !ready || draft.Lane != runner.MainLane || profile.Reads != nil && profile.Reads(draft, it.Inbound.Media) {
		return false, nil
	}
	r.e, err = r.d.runner.Begin(tx, store.Synced, runner.Start{
		Meta: m, Active: p.active, Items: p.items, Profile: profile,
		NoneWaiting: true,
	})
	if errors.Is(err, runner.ErrChanged) || errors.Is(err, chela.ErrFenced) {
		return false, nil
	}
	return err == nil, err
}

// Release ends the reservation. begun says that Begin began a run and that its
// transaction was committed: the run is executed now.
func (r *Reservation) Release(begun bool) {
	if begun {
		r.d.serveAsync(r.w, func(ctx context.Context) (time.Time, error) {
			defer r.release()
			return r.d.answer(ctx, r.w, r.e)
		})
		return
	}
	r.release()
	if r.d.remove(r.w) {
		r.d.wg.Done()
		return
	}
	r.d.serveAsync(r.w, nil) // a wake arrived meanwhile
}
