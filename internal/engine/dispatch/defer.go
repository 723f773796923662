package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Defer returns a function with which a tool defers an event for the session of
// its call, such as the end of a background command. The event is stored with text
// before the function returns; it is released with that text at the next start if
// this process, the owner, ends first. resolve stores how the work ended, and puts the
// event into the queue with another text, or cancels it for the empty text. The event's run has the principal and
// the address of the run that made the call. A run that waits for the end of the command
// is resumed in both cases. redact removes secrets from the texts.
// changed is called after the item was stored and after it was resolved.
func Defer(st store.Store, owner string, redact func(string) string, changed func(queue.Item)) func(ctx context.Context,
	c tool.Call, text string) (resolve func(context.Context, string, queue.Result) error, err error) {
	return func(ctx context.Context, c tool.Call, text string) (func(context.Context, string, queue.Result) error, error) {
		id := "owed:" + uuid.NewString()
		it := queue.Item{
			ID: id, Key: id, Session: c.Session, Kind: queue.Event, Call: c.ID, Parent: c.Run,
			Origin: chela.Origin{Kind: chela.OriginProcess, ID: c.ID}, State: queue.Deferred, Owner: owner, Created: time.Now(),
			Inbound: chela.Inbound{Text: redact(text), Mode: string(queue.Steer)},
		}
		err := st.Update(ctx, store.Ordered, func(tx store.Tx) error {
			r, err := tx.Runs().Get(c.Run)
			if err != nil {
				return err
			}
			it.Principal, it.Inbound.Address, it.Root = r.Principal, r.Address, r.Tree()
			_, err = tx.Queue().Put(it)
			return err
		})
		if errors.Is(err, chela.ErrNotFound) { // the call was made outside of a run
			return func(context.Context, string, queue.Result) error { return nil }, nil
		}
		if err != nil {
			return nil, fmt.Errorf("defer an event: %w", err)
		}
		changed(it)
		return func(ctx context.Context, text string, r queue.Result) error {
			r.Text = redact(r.Text)
			err := st.Update(ctx, store.Ordered, func(tx store.Tx) error {
				put, err := queue.Resolve(tx.Queue(), id, redact(text), r)
				if err != nil {
					return err
				}
				if !put {
					return resumeWaiting(tx, it)
				}
				tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session})
				return nil
			})
			if err == nil {
				changed(it)
			}
			return err
		}, nil
	}
}

// resumeWaiting puts an item that resumes the run of a cancelled event, if the run waits
// for it.
func resumeWaiting(tx store.Tx, it queue.Item) error {
	r, err := tx.Runs().Get(it.Parent)
	if errors.Is(err, chela.ErrNotFound) || err == nil && !(r.State == run.Suspended && r.Waits == run.WaitsChildren) {
		return nil
	}
	if err != nil {
		return err
	}
	return store.Enqueue(tx, queue.NewResume("resume:"+it.ID, r, time.Time{}, time.Now()))
}
