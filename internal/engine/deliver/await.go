package deliver

import (
	"context"
	"slices"

	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
)

// Await waits until all rows with the keys are closed and returns them. When ctx
// ends first, it returns the rows in their present states.
func (w *Worker) Await(ctx context.Context, keys ...string) ([]outbox.Row, error) {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		rows, err := w.rows(ctx, keys)
		open := func(r outbox.Row) bool { return r.State == outbox.Pending || r.State == outbox.Attempted }
		if err != nil || ctx.Err() != nil || !slices.ContainsFunc(rows, open) {
			return rows, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// rows reads rows, even if ctx has ended.
func (w *Worker) rows(ctx context.Context, keys []string) ([]outbox.Row, error) {
	var rows []outbox.Row
	err := w.o.Store.View(context.WithoutCancel(ctx), func(r store.Reader) error {
		rows = nil
		for _, key := range keys {
			row, err := r.Outbox().Get(key)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}
