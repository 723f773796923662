// Package maintenance maintains the store while an engine runs: it checks the
// database once, periodically deletes old rows, and removes files without
// references. Transcripts are never deleted. It also returns unused memory to the
// system.
package maintenance

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/core/store"
)

const (
	retention  = 30 * 24 * time.Hour // of answered messages, ended runs and delivered rows
	startDelay = time.Minute         // avoids slowing down the start
	pruneEvery = 6 * time.Hour
)

// Worker runs the maintenance of a store. All fields are required.
type Worker struct {
	Log   *slog.Logger
	Store store.Store
	Check func(context.Context) error // reads the whole database

	Sweep   func(context.Context) (int, error) // removes unreferenced files and returns how many
	Deleted <-chan struct{}                    // triggers a sweep
}

// Run runs the maintenance until ctx ends.
func (w Worker) Run(ctx context.Context) error {
	t := time.NewTimer(startDelay)
	defer t.Stop()
	for checked := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-w.Deleted:
			w.sweep(ctx)
			continue
		case <-t.C:
		}
		if !checked {
			w.check(ctx)
			checked = true
		}
		if err := w.prune(ctx, time.Now().Add(-retention)); err != nil && ctx.Err() == nil {
			w.Log.Warn("delete old rows; retrying later", "err", err, "in", pruneEvery)
		}
		w.sweep(ctx)
		t.Reset(pruneEvery)
	}
}

// sweep removes the files without references.
func (w Worker) sweep(ctx context.Context) {
	n, err := w.Sweep(ctx)
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("remove unreferenced files; retrying later", "err", err)
	}
	if n > 0 {
		w.Log.Debug("removed unreferenced files", "files", n)
	}
}

func (w Worker) check(ctx context.Context) {
	if err := w.Check(ctx); err != nil && ctx.Err() == nil {
		w.Log.Error("the database is damaged: stop Chela and run: chela backup salvage", "err", err)
	}
}

// prune deletes rows that were final before t, one table at a time to keep the commits
// short.
func (w Worker) prune(ctx context.Context, t time.Time) error {
	for _, table := range [...]struct {
		name  string
		prune func(store.Tx) (int, error)
	}{
		{"queue", func(tx store.Tx) (int, error) { return tx.Queue().Prune(t) }},
		{"outbox", func(tx store.Tx) (int, error) { return tx.Outbox().Prune(t) }},
		{"holds", func(tx store.Tx) (int, error) { return tx.Usage().PruneHolds(t) }},
		{"runs", func(tx store.Tx) (int, error) { return tx.Runs().Prune(t) }},
		{"subagents", func(tx store.Tx) (int, error) { return tx.Children().Prune(t) }},
	} {
		var n int
		err := w.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			var err error
			n, err = table.prune(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("prune %s: %w", table.name, err)
		}
		if n > 0 {
			w.Log.Debug("deleted old rows", "table", table.name, "rows", n)
		}
	}
	return nil
}
