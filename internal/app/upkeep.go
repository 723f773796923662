package app

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

// upkeep looks after the store while the engine runs: it reads the whole
// database once, and forgets from time to time what nobody asks for any more.
// Transcripts stay.
type upkeep struct {
	log   *slog.Logger
	store store.Store
	check func(context.Context) error // reads the whole database

	sweep   func(context.Context) (int, error) // removes files that no row refers to
	deleted <-chan struct{}                    // tells when it is worth it at once
}

// run goes on until ctx ends.
func (u upkeep) run(ctx context.Context) error {
	t := time.NewTimer(afterStart)
	defer t.Stop()
	for checked := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-u.deleted:
			u.clean(ctx)
			continue
		case <-t.C:
		}
		if !checked {
			u.inspect(ctx)
			checked = true
		}
		if err := u.prune(ctx, time.Now().Add(-retention)); err != nil && ctx.Err() == nil {
			u.log.Warn("forget what is old; trying again later", "err", err, "in", pruneEvery)
		}
		u.clean(ctx)
		t.Reset(pruneEvery)
	}
}

// clean removes the files that no row refers to.
func (u upkeep) clean(ctx context.Context) {
	n, err := u.sweep(ctx)
	if err != nil && ctx.Err() == nil {
		u.log.Warn("remove files that nothing refers to; trying again later", "err", err)
	}
	if n > 0 {
		u.log.Debug("removed files that nothing refers to", "files", n)
	}
}

func (u upkeep) inspect(ctx context.Context) {
	if err := u.check(ctx); err != nil && ctx.Err() == nil {
		u.log.Error("THE DATABASE IS DAMAGED: stop Chela and run chela doctor", "err", err)
	}
}

// prune forgets what ended before t, a table at a time so that no message
// waits long for its commit.
func (u upkeep) prune(ctx context.Context, t time.Time) error {
	for _, of := range [...]struct {
		what  string
		prune func(store.Tx) (int, error)
	}{
		{"queue", func(tx store.Tx) (int, error) { return tx.Queue().Prune(t) }},
		{"outbox", func(tx store.Tx) (int, error) { return tx.Outbox().Prune(t) }},
		{"runs", func(tx store.Tx) (int, error) { return tx.Runs().Prune(t) }},
	} {
		var n int
		err := u.store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			var err error
			n, err = of.prune(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("prune %s: %w", of.what, err)
		}
		if n > 0 {
			u.log.Debug("forgot what is old", "of", of.what, "rows", n)
		}
	}
	return nil
}
