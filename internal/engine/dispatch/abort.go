package dispatch

import (
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// Abort stops work of a session and returns the ids of what it stopped: the
// waiting message or the run with the id, or, for the empty id, all waiting
// messages and all runs. It does not wait for a run in progress to end.
func (d *Dispatcher) Abort(ctx context.Context, key chela.SessionKey, id chela.RunID) ([]chela.RunID, error) {
	ids, running, err := d.abortRows(ctx, key, id)
	if err != nil {
		return nil, err
	}
	w := d.worker(key)
	switch {
	case running != "":
		ids = append(ids, running)
		if w != nil {
			w.halt(running)
		}
	case w != nil: // a detached call may be in progress
		if id, ok := w.stop(id, runner.ErrStopped); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Revoke stops the runs that a credential began, because it was revoked.
func (d *Dispatcher) Revoke(ctx context.Context, credential string) error {
	active, err := store.Get(ctx, d.o.Store, func(r store.Reader) ([]run.Run, error) { return r.Runs().Active("") })
	for _, r := range active {
		if r.Principal.Credential == credential {
			_, aerr := d.Abort(ctx, r.Session, r.ID)
			err = errors.Join(err, aerr)
		}
	}
	return err
}

// abortRows cancels waiting messages and stops suspended runs. It returns their
// ids, and the id of the run that is marked as running, whose stop is requested.
func (d *Dispatcher) abortRows(ctx context.Context, key chela.SessionKey, id chela.RunID) (ids []chela.RunID, running chela.RunID, err error) {
	var cancelled []queue.Item
	var stopped []run.Run
	var withdrawn []approval.Request
	err = d.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		ids, running, cancelled = nil, "", nil
		waiting, err := tx.Queue().Waiting(key)
		if err != nil {
			return err
		}
		for _, it := range waiting {
			if it.Kind == queue.Message && (id == "" || it.ID == string(id)) {
				it.Note = "stopped before it began"
				cancelled = append(cancelled, it)
				ids = append(ids, chela.RunID(it.ID))
			}
		}
		if err := tx.Queue().Set(queue.Cancelled, cancelled...); err != nil {
			return err
		}
		active, err := tx.Runs().Active(key)
		if err != nil {
			return err
		}
		for _, r := range active {
			if r.State != run.Running || id != "" && r.ID != id {
				continue
			}
			running = r.ID
			if _, err := tx.Runs().RequestStop(r.ID, "stopped"); err != nil { // another process may carry it out
				return err
			}
			tx.Wake(store.Topic{Kind: store.TopicQueue, Session: key})
		}
		stopped, withdrawn, err = d.runner.StopSuspended(tx, key, id)
		for _, r := range stopped {
			ids = append(ids, r.ID)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	d.runner.PublishAbsorbed(cancelled...)
	d.runner.PublishStopped(stopped, withdrawn)
	return ids, running, nil
}
