package deliver

import (
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
)

// Sent is called when a row is closed: it was sent, it failed permanently, or its
// outcome cannot be determined (outbox.Ambiguous). The function that it returns
// writes in the commit that closes the row, so that the record of a delivery and
// the row agree after a crash. nil: it writes nothing. Neither function does I/O,
// and both may be called more than once for one commit.
type Sent func(outbox.Row) func(store.Tx) error

// closed reports whether the row is final.
func closed(row outbox.Row) bool {
	return row.State == outbox.Sent || row.State == outbox.Failed || row.State == outbox.Ambiguous ||
		row.State == outbox.Dismissed
}

// putTx stores a row, with the writes of Options.Sent if the row is closed.
func (w *Worker) putTx(tx store.Tx, row outbox.Row) error {
	if closed(row) {
		for _, sent := range w.o.Sent {
			if write := sent(row); write != nil {
				if err := write(tx); err != nil {
					return err
				}
			}
		}
	}
	return tx.Outbox().Put(row)
}

// putOpen stores a row unless it was dismissed since it was read. It reports whether the
// row is still to be sent.
func (w delivery) putOpen(ctx context.Context, s store.Sync, row outbox.Row) (open bool, err error) {
	err = w.update(ctx, s, func(tx store.Tx) error {
		have, err := tx.Outbox().Get(row.Key)
		open = err == nil && have.State != outbox.Dismissed
		switch {
		case errors.Is(err, chela.ErrNotFound):
			return nil
		case !open:
			return err
		}
		return w.putTx(tx, row)
	})
	if err == nil && open {
		w.publish(row)
	}
	return open, err
}

// publish says that the task of a row may have changed, after the row was stored.
func (w *Worker) publish(row outbox.Row) {
	if row.Run != "" && (closed(row) || row.Error != "") {
		w.o.Bus.Publish(chela.Event{Run: row.Run, Session: row.Session, Stream: chela.StreamTask})
	}
}

// put stores a row.
func (w delivery) put(ctx context.Context, s store.Sync, row outbox.Row) error {
	err := w.update(ctx, s, func(tx store.Tx) error { return w.putTx(tx, row) })
	if err == nil {
		w.publish(row)
		w.notifySent(ctx, row)
	}
	return err
}

// drop deletes a row that has nothing to send.
func (w delivery) drop(ctx context.Context, row outbox.Row) error {
	return w.update(ctx, store.Ordered, func(tx store.Tx) error { return tx.Outbox().Delete(row.Key) })
}

// update commits a change of a row. It does so even if the worker is being
// stopped, because the row records something that happened. It fails with
// chela.ErrFenced if this process has lost the lease of the account. No process has
// the rows of a missing account.
func (w delivery) update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	if w.in.Channel == nil {
		err = w.o.Store.Update(ctx, s, f)
	} else {
		err = store.Held(ctx, w.o.Store, w.in.Lease, s, f)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
	return err
}
