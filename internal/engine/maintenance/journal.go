package maintenance

import (
	"context"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/store"
)

// Journal deletes old changes from the journal.
type Journal struct {
	Log    *slog.Logger
	Store  store.Store
	Config journal.Options
}

// Run deletes changes until ctx ends.
func (j Journal) Run(ctx context.Context) error {
	t := time.NewTimer(startDelay)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		n := 0
		err := j.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			var err error
			n, err = tx.Changes().Prune(time.Now().Add(-j.Config.Retention()), j.Config.Size())
			return err
		})
		if err != nil && ctx.Err() == nil {
			j.Log.Warn("delete old changes; retrying later", "err", err, "in", pruneEvery)
		}
		if n > 0 {
			j.Log.Debug("deleted old changes", "changes", n)
		}
		t.Reset(pruneEvery)
	}
}
