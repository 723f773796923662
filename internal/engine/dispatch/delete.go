package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// stopTimeout is how long a deletion waits for the runs of a session to end.
const stopTimeout = 10 * time.Second

// DeleteSession stops the runs of a session and deletes it. It reports false if the
// session does not exist. may, if it is not nil, refuses the deletion; it is called
// before the runs are stopped, and in the transaction.
func (d *Dispatcher) DeleteSession(ctx context.Context, key chela.SessionKey,
	may func(session.Meta) error) (deleted bool, err error) {
	if may == nil {
		may = func(session.Meta) error { return nil }
	}
	there, err := d.mayDelete(ctx, key, may)
	if err != nil || !there {
		return false, err
	}
	if err := d.abortAndWait(ctx, key); err != nil {
		return false, err
	}
	return d.deleteIf(ctx, key, func(_ store.Tx, m session.Meta) (bool, error) { return true, may(m) })
}

// DeleteIdle deletes a session in which no run is in progress, if may permits it in the
// transaction. It reports whether it was deleted.
func (d *Dispatcher) DeleteIdle(ctx context.Context, key chela.SessionKey,
	may func(store.Tx, session.Meta) (bool, error)) (deleted bool, err error) {
	return d.deleteIf(ctx, key, func(tx store.Tx, m session.Meta) (bool, error) {
		if active, err := tx.Runs().Active(key); err != nil || len(active) > 0 {
			return false, err
		}
		return may(tx, m)
	})
}

// deleteIf deletes a session that exists, if may permits it.
func (d *Dispatcher) deleteIf(ctx context.Context, key chela.SessionKey,
	may func(store.Tx, session.Meta) (bool, error)) (deleted bool, err error) {
	var asked []approval.Request // pending approvals of the session
	err = d.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		deleted, asked = false, nil
		meta, err := session.Lookup(tx.Sessions(), key)
		if err != nil || meta.ID == "" {
			return err
		}
		if ok, err := may(tx, meta); err != nil || !ok {
			return err
		}
		deleted = true
		if asked, err = tx.Approvals().Pending(key); err != nil {
			return err
		}
		if err := d.deleting(tx, key); err != nil {
			return err
		}
		if err := d.runner.EndSession(tx, key); err != nil {
			return err
		}
		return tx.Sessions().Delete(key)
	})
	if err != nil || !deleted {
		return false, err
	}
	d.o.Bus.Publish(chela.Event{Session: key, Stream: chela.StreamSession, Phase: chela.PhaseDeleted})
	for _, q := range asked {
		q.Decision, q.Decided, q.By = approval.Withdrawn, time.Now(), "stop"
		d.o.Bus.Publish(chela.Event{Session: q.Session, Stream: chela.StreamApproval, Phase: chela.PhaseResolved, Data: q})
	}
	return true, nil
}

// StopRunning stops the run of a session that is in progress and waits for its end. What
// waits stays.
func (d *Dispatcher) StopRunning(ctx context.Context, key chela.SessionKey) error {
	active, err := store.Get(ctx, d.o.Store, func(r store.Reader) ([]run.Run, error) { return r.Runs().Active(key) })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for _, r := range active {
		if r.State != run.Running {
			continue
		}
		if _, err := d.Abort(ctx, key, r.ID); err != nil {
			return err
		}
		if _, err := d.Wait(ctx, r.ID); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Rest is [runner.Runner.Rest].
func (d *Dispatcher) Rest() { d.runner.Rest() }

// DropTranscripts is [runner.Runner.DropTranscripts].
func (d *Dispatcher) DropTranscripts() { d.runner.DropTranscripts() }

// deleting moves what others owe to a session that is deleted, and removes what would
// begin another run there.
func (d *Dispatcher) deleting(tx store.Tx, key chela.SessionKey) error {
	return errors.Join(d.o.Children.Deleted(tx, key), tx.Heartbeats().DeleteWake(key))
}

// mayDelete reports whether the session exists, and why it may not be deleted.
func (d *Dispatcher) mayDelete(ctx context.Context, key chela.SessionKey,
	may func(session.Meta) error) (there bool, err error) {
	err = d.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := session.Lookup(r.Sessions(), key)
		if there = meta.ID != ""; err != nil || !there {
			return err
		}
		return may(meta)
	})
	return there, err
}

// abortAndWait stops the runs of a session that is to be deleted, and waits for their
// ends.
func (d *Dispatcher) abortAndWait(ctx context.Context, key chela.SessionKey) error {
	var stopped stoppedWork
	err := d.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		err := d.deleting(tx, key) // what waits must not start another run
		if err == nil {
			stopped, err = d.stopRows(tx, key, "")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("abort the run of %s: %w", key, err)
	}
	ids := d.stopped([]stoppedWork{stopped}, "")
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for _, id := range ids {
		if _, err := d.Wait(ctx, id); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return fmt.Errorf("abort the run of %s: %w", key, err)
		}
	}
	return nil
}
