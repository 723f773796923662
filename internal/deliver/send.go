package deliver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/chela-ai/chela/internal/channel"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/store"
)

// carry takes one row a step on. done reports whether it is final, so that the
// next row of the address may follow; an error means that the store did not
// take what happened.
func (w *Worker) carry(ctx context.Context, key string) (done bool, err error) {
	row, err := w.row(ctx, key)
	if errors.Is(err, chela.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	ch, _, ok := w.o.Channels(row.Address.Channel, row.Address.Account)
	if !ok {
		return w.absent(ctx, row)
	}
	switch row.State {
	case outbox.Pending:
	case outbox.Attempted: // by somebody who did not see the outcome
		return w.lookUp(ctx, ch, row, nil)
	default:
		return true, nil
	}
	row.State = outbox.Attempted
	row.Attempts++
	if err := w.put(ctx, store.Synced, row); err != nil {
		return false, err
	}
	if row.PlatformID != "" {
		return w.replace(ctx, ch, row)
	}
	if row.Text == "" && len(row.Media) == 0 {
		return true, w.drop(ctx, row) // a preview that never came to be
	}
	return w.send(ctx, ch, row)
}

// send hands the row over.
func (w *Worker) send(ctx context.Context, ch channel.Channel, row outbox.Row) (bool, error) {
	media, err := w.media(row)
	if err != nil {
		return w.fail(ctx, row, err)
	}
	r, err := call(ctx, func(ctx context.Context) (channel.Receipt, error) {
		return ch.Send(ctx, channel.Part{
			Key: row.Key, Address: row.Address, ReplyTo: row.ReplyTo, Text: row.Text, Media: media,
		})
	})
	if ctx.Err() != nil && err != nil {
		return false, nil // stopped: the next start looks it up
	}
	if errors.Is(err, channel.ErrAmbiguous) {
		return w.lookUp(ctx, ch, row, err)
	}
	return w.outcome(ctx, row, r, err)
}

// media returns the attachments of a row with their content.
func (w *Worker) media(row outbox.Row) ([]chela.Media, error) {
	if w.o.Load == nil || len(row.Media) == 0 {
		return row.Media, nil
	}
	out := make([]chela.Media, len(row.Media))
	for i, m := range row.Media {
		var err error
		if out[i], err = w.o.Load(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// replace makes a preview what the row says, or takes it away when it says
// nothing. Doing it again does no harm.
func (w *Worker) replace(ctx context.Context, ch channel.Channel, row outbox.Row) (bool, error) {
	if row.Text == "" {
		if d, ok := ch.(channel.Deleter); ok {
			_, err := call(ctx, func(ctx context.Context) (channel.Receipt, error) {
				return channel.Receipt{}, d.Delete(ctx, row.Address, row.PlatformID)
			})
			if err != nil && !errors.Is(err, channel.ErrGone) {
				return w.outcome(ctx, row, channel.Receipt{}, err)
			}
		}
		return true, w.drop(ctx, row)
	}
	err := channel.ErrGone
	if e, ok := ch.(channel.Editor); ok {
		_, err = call(ctx, func(ctx context.Context) (channel.Receipt, error) {
			return channel.Receipt{}, e.Edit(ctx, row.Address, row.PlatformID, row.Text)
		})
	}
	if ctx.Err() != nil && err != nil {
		return false, nil
	}
	refused := new(channel.Error)
	if !errors.Is(err, channel.ErrGone) && !(errors.As(err, &refused) && refused.Permanent) {
		return w.outcome(ctx, row, channel.Receipt{ID: row.PlatformID}, err)
	}
	row.PlatformID = "" // on disk first: else a crash would send it a second time
	if err := w.put(ctx, store.Synced, row); err != nil {
		return false, err
	}
	return w.send(ctx, ch, row)
}

// lookUp settles an attempt whose outcome is not known: cause says why, nil
// that nobody lived to see it.
func (w *Worker) lookUp(ctx context.Context, ch channel.Channel, row outbox.Row, cause error) (bool, error) {
	if cause == nil {
		cause = errors.New("the process ended while it was sent")
	}
	if row.PlatformID != "" { // it was to be edited: that may be done again
		row.State = outbox.Pending
		return false, w.put(ctx, store.Ordered, row)
	}
	f, ok := ch.(channel.Finder)
	if !ok {
		return true, w.ambiguous(ctx, row, cause)
	}
	var found bool
	r, err := call(ctx, func(ctx context.Context) (r channel.Receipt, err error) {
		r, found, err = f.Find(ctx, row.Address, row.Key)
		return r, err
	})
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err == nil && found:
		return w.outcome(ctx, row, r, nil)
	case err == nil:
		return w.outcome(ctx, row, channel.Receipt{}, cause)
	case row.Attempts >= maxAttempts:
		return true, w.ambiguous(ctx, row, fmt.Errorf("%w; looking for it: %w", cause, err))
	}
	row.Attempts++
	row.NotBefore = time.Now().Add(w.retry.Delay(row.Attempts, rand.Float64()))
	return false, w.put(ctx, store.Ordered, row)
}

func (w *Worker) ambiguous(ctx context.Context, row outbox.Row, cause error) error {
	row.State, row.Error = outbox.Ambiguous, cause.Error()
	w.o.Log.Warn("delivery is uncertain: it is not sent again", "key", row.Key, "channel", row.Address.Channel, "err", cause)
	return w.put(ctx, store.Ordered, row)
}

// absent has a row wait for its channel, for a day.
func (w *Worker) absent(ctx context.Context, row outbox.Row) (bool, error) {
	err := fmt.Errorf("channel %s/%s is not running", row.Address.Channel, row.Address.Account)
	if age := time.Since(row.Created); age <= tooOld {
		row.NotBefore, row.Error = time.Now().Add(min(max(age/2, absent), time.Hour)), err.Error()
		return false, w.put(ctx, store.Ordered, row)
	}
	if row.State == outbox.Attempted {
		return true, w.ambiguous(ctx, row, err)
	}
	return w.fail(ctx, row, err)
}

// outcome writes what came of an attempt. A row that can be tried again waits,
// and what follows it waits with it.
func (w *Worker) outcome(ctx context.Context, row outbox.Row, r channel.Receipt, err error) (bool, error) {
	now := time.Now()
	if err == nil {
		row.State, row.PlatformID, row.Error = outbox.Sent, r.ID, ""
		return true, w.put(ctx, store.Ordered, row)
	}
	row.State, row.Error = outbox.Pending, err.Error()
	refused, _ := errors.AsType[*channel.Error](err)
	old := now.Sub(row.Created) > tooOld
	switch {
	case refused != nil && refused.Permanent:
		old = true
	case refused != nil && refused.RetryAfter > 0: // it did not look at the message
		row.Attempts--
		row.NotBefore = now.Add(refused.RetryAfter)
	case row.Attempts >= maxAttempts:
		old = true
	default:
		row.NotBefore = now.Add(w.retry.Delay(row.Attempts, rand.Float64()))
	}
	if !old {
		return false, w.put(ctx, store.Ordered, row)
	}
	return w.fail(ctx, row, err)
}

// fail gives a row up and says so.
func (w *Worker) fail(ctx context.Context, row outbox.Row, cause error) (bool, error) {
	row.State, row.Error = outbox.Failed, cause.Error()
	if err := w.put(ctx, store.Ordered, row); err != nil {
		return false, err
	}
	w.o.Log.Error("delivery failed", "key", row.Key, "channel", row.Address.Channel, "attempts", row.Attempts, "err", cause)
	w.o.Bus.Publish(chela.Event{
		Session: row.Session, Stream: chela.StreamNotice, Phase: chela.PhaseError,
		Text: fmt.Sprintf("the answer could not be delivered to %s: %v", row.Address.Channel, cause),
	})
	return true, nil
}

// call calls a channel, which is a plug-in: it may hang or panic. Then nobody
// knows what it did.
func call(ctx context.Context, f func(context.Context) (channel.Receipt, error)) (r channel.Receipt, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("channel panicked: %v: %w", p, channel.ErrAmbiguous)
		}
	}()
	r, err = f(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", sendTime, channel.ErrAmbiguous)
	}
	return r, err
}

func (w *Worker) row(ctx context.Context, key string) (row outbox.Row, err error) {
	err = w.o.Store.View(ctx, func(r store.Reader) error {
		row, err = r.Outbox().Get(key)
		return err
	})
	return row, err
}

// put writes a row; what happened is written also while the worker is stopped.
func (w *Worker) put(ctx context.Context, s store.Sync, row outbox.Row) error {
	err := w.o.Store.Update(context.WithoutCancel(ctx), s, func(tx store.Tx) error { return tx.Outbox().Put(row) })
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.moved)
	w.moved = make(chan struct{})
	return err
}

func (w *Worker) drop(ctx context.Context, row outbox.Row) error {
	return w.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error {
		return tx.Outbox().Delete(row.Key)
	})
}
