package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// Owe returns how a tool promises a session word of what goes on without its
// call: text is owed from the return on, and told at the next start when this
// process ends before. settle tells something else in its place, now, or with
// "" takes the promise back. The run that is woken has the principal and the
// address of the one that made the call.
func Owe(st store.Store) func(ctx context.Context, c tool.Call, text string) (settle func(context.Context, string) error, err error) {
	return func(ctx context.Context, c tool.Call, text string) (func(context.Context, string) error, error) {
		id := "owed:" + uuid.NewString()
		it := queue.Item{
			ID: id, Key: id, Session: c.Session, Kind: queue.System, Call: c.ID, State: queue.Owed, Created: time.Now(),
			Inbound: chela.Inbound{Text: text, Mode: string(queue.Steer)},
		}
		err := st.Update(ctx, store.Ordered, func(tx store.Tx) error {
			r, err := tx.Runs().Get(c.Run)
			if err != nil {
				return err
			}
			it.Principal, it.Inbound.Address = r.Principal, r.Address
			_, err = tx.Queue().Put(it)
			return err
		})
		if errors.Is(err, chela.ErrNotFound) { // called outside of a run: there is no conversation to go on
			return func(context.Context, string) error { return nil }, nil
		}
		if err != nil {
			return nil, fmt.Errorf("promise the session word of its end: %w", err)
		}
		settle := func(ctx context.Context, text string) error {
			return st.Update(ctx, store.Ordered, func(tx store.Tx) error {
				waits, err := queue.Tell(tx.Queue(), id, text, time.Now())
				if waits {
					tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session})
				}
				return err
			})
		}
		return settle, nil
	}
}
