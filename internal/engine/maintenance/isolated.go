package maintenance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// Isolated deletes sessions in which each run begins anew, some time after their last use,
// and the transcripts of their earlier runs. All fields are required.
type Isolated struct {
	Log    *slog.Logger
	Store  store.Store
	Retain time.Duration // 0: for ever
	// Delete is as in Sessions.
	Delete func(context.Context, chela.SessionKey, func(store.Tx, session.Meta) (bool, error)) (bool, error)
}

const isolatedEvery = time.Hour

// Run looks for such sessions each hour, until ctx ends.
func (s Isolated) Run(ctx context.Context) error {
	if s.Retain == 0 {
		<-ctx.Done()
		return nil
	}
	t := time.NewTicker(isolatedEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := s.sweep(ctx, time.Now().Add(-s.Retain)); err != nil && ctx.Err() == nil {
			s.Log.Warn("delete sessions of webhooks; retrying later", "err", err, "in", isolatedEvery)
		}
	}
}

// sweep deletes what was last used before a time.
func (s Isolated) sweep(ctx context.Context, before time.Time) error {
	all, err := store.Get(ctx, s.Store, func(r store.Reader) ([]session.Meta, error) {
		_, total, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: 1})
		if err != nil {
			return nil, err
		}
		list, _, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: max(total, 1)})
		return list, err
	})
	if err != nil {
		return err
	}
	old := func(m session.Meta) bool {
		return m.Isolated && m.Pinned.IsZero() && m.Archived.IsZero() && m.Updated.Before(before)
	}
	var errs []error
	for _, m := range all {
		switch {
		case !m.Isolated:
			continue
		case old(m):
			_, err = s.Delete(ctx, m.Key, func(tx store.Tx, now session.Meta) (bool, error) {
				if !old(now) {
					return false, nil
				}
				busy, err := works(tx.Runs(), tx.Queue(), tx.Children(), m.Key)
				return !busy, err
			})
		default:
			err = s.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
				_, err := tx.Sessions().PrunePast(m.Key, before)
				return err
			})
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("session %s: %w", m.Key, err))
		}
	}
	return errors.Join(errs...)
}
