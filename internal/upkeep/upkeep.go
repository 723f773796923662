// Package upkeep looks after the store while an engine runs: it reads the whole
// database once, and forgets from time to time what nobody asks for any more.
// Transcripts stay.
package upkeep

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/store"
)

const (
	retention  = 30 * 24 * time.Hour // of messages that were answered, runs that ended, and what was delivered
	afterStart = time.Minute         // before which upkeep is in nobody's way
	pruneEvery = 6 * time.Hour
)

// Work is what is to be done. All fields are required.
type Work struct {
	Log   *slog.Logger
	Store store.Store
	Check func(context.Context) error // reads the whole database

	Sweep   func(context.Context) (int, error) // removes files that no row refers to
	Deleted <-chan struct{}                    // tells when it is worth it at once
}

// Run goes on until ctx ends.
func (u Work) Run(ctx context.Context) error {
	t := time.NewTimer(afterStart)
	defer t.Stop()
	for checked := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-u.Deleted:
			u.clean(ctx)
			continue
		case <-t.C:
		}
		if !checked {
			u.inspect(ctx)
			checked = true
		}
		if err := u.prune(ctx, time.Now().Add(-retention)); err != nil && ctx.Err() == nil {
			u.Log.Warn("forget what is old; trying again later", "err", err, "in", pruneEvery)
		}
		u.clean(ctx)
		t.Reset(pruneEvery)
	}
}

// clean removes the files that no row refers to.
func (u Work) clean(ctx context.Context) {
	n, err := u.Sweep(ctx)
	if err != nil && ctx.Err() == nil {
		u.Log.Warn("remove files that nothing refers to; trying again later", "err", err)
	}
	if n > 0 {
		u.Log.Debug("removed files that nothing refers to", "files", n)
	}
}

func (u Work) inspect(ctx context.Context) {
	if err := u.Check(ctx); err != nil && ctx.Err() == nil {
		u.Log.Error("THE DATABASE IS DAMAGED: stop Chela and run chela doctor", "err", err)
	}
}

// prune forgets what ended before t, a table at a time so that no message
// waits long for its commit.
func (u Work) prune(ctx context.Context, t time.Time) error {
	for _, of := range [...]struct {
		what  string
		prune func(store.Tx) (int, error)
	}{
		{"queue", func(tx store.Tx) (int, error) { return tx.Queue().Prune(t) }},
		{"outbox", func(tx store.Tx) (int, error) { return tx.Outbox().Prune(t) }},
		{"runs", func(tx store.Tx) (int, error) { return tx.Runs().Prune(t) }},
	} {
		var n int
		err := u.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			var err error
			n, err = of.prune(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("prune %s: %w", of.what, err)
		}
		if n > 0 {
			u.Log.Debug("forgot what is old", "of", of.what, "rows", n)
		}
	}
	return nil
}
