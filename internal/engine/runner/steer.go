package runner

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
)

// steer returns the messages that arrived for the run since it was last called.
func (r *Runner) steer(ctx context.Context, e *Execution) ([]*llm.Message, error) {
	unchanged := e.noneWaiting && !e.session.Changed()
	if e.noneWaiting = false; unchanged {
		return nil, nil
	}
	msgs, err := r.takeSteering(ctx, e)
	return msgs, ledger{r, e}.checkStored(ctx, err)
}

// takeSteering takes the items that steer the run into its transcript.
func (r *Runner) takeSteering(ctx context.Context, e *Execution) ([]*llm.Message, error) {
	items, err := store.Get(ctx, r.o.Store, func(rd store.Reader) ([]queue.Item, error) {
		active, err := rd.Runs().Active(e.run.Session)
		if err != nil {
			return nil, err
		}
		waiting, err := rd.Queue().Waiting(e.run.Session)
		return queue.Available(waiting, active), err
	})
	if err != nil || len(items) == 0 {
		return nil, err
	}
	live := e.Live()
	d := queue.Plan(r.Policy(e), &live, items, time.Now())
	if items = d.Steer; len(items) == 0 {
		return nil, nil
	}
	if err := r.flush(ctx, e); err != nil {
		return nil, err
	}
	if items, err = readAttachments(ctx, e.profile, e.run, items); err != nil {
		return nil, err
	}
	entries := inputEntries(items, "", e.run.ID, time.Now())
	r.o.Step("run.steer")
	err = store.Held(ctx, r.o.Store, e.lease, store.Ordered, func(tx store.Tx) error {
		if err := take(tx, queue.Taken, takenBy(e.run.ID, items)); err != nil {
			return err
		}
		if err := checkGrants(tx, items); err != nil {
			return err
		}
		if err := tx.Sessions().Append(e.run.SessionID, entries...); err != nil {
			return err
		}
		for _, it := range d.Later {
			if _, err := tx.Queue().Put(it); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errRevoked):
		return nil, r.cancelRevoked(ctx, e.run.Session) // the next call takes what is left
	case errors.Is(err, ErrChanged):
		return nil, nil // the next call takes what is left
	case err != nil:
		return nil, err
	}
	r.publishStored(e, e.meta, entries...)
	var msgs []*llm.Message
	for _, entry := range entries {
		msgs = append(msgs, entry.Message)
	}
	r.PublishAbsorbed(items...)
	return msgs, nil
}
