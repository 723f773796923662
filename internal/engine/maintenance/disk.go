package maintenance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// stored is a transcript, which takes space.
type stored struct {
	meta session.Meta // key, id and time of its session
	past session.Past // zero: the current transcript of the session
	size int64
}

// reclaim deletes old transcripts: those that resets ended and that are too old, and
// while all transcripts together are too large, the oldest ones of these and then the
// sessions that were not used for the longest time. It returns the size of all
// transcripts if they are too large and the mode does not permit deletion.
func (s Sessions) reclaim(ctx context.Context) (over int64, err error) {
	l := s.Config.limits
	enforce := s.Config.Mode == "enforce"
	if l.disk == 0 && (!enforce || l.archive == 0) {
		return 0, nil
	}
	var past, current []stored
	var total int64
	err = s.oldest(ctx, func(m session.Meta) (deleted, more bool, err error) {
		err = s.Store.View(ctx, func(r store.Reader) error {
			list, err := r.Sessions().Past(m.Key)
			if err != nil {
				return err
			}
			for _, p := range append(list, session.Past{ID: m.ID}) {
				it := stored{meta: session.Meta{Key: m.Key, ID: m.ID, Updated: m.Updated}, past: p}
				if it.size, err = r.Sessions().Size(p.ID); err != nil {
					return err
				}
				total += it.size
				if p.Ended.IsZero() {
					current = append(current, it)
				} else {
					past = append(past, it)
				}
			}
			return nil
		})
		if err != nil {
			err = fmt.Errorf("session %s: %w", m.Key, err)
		}
		return false, true, err
	})
	if err != nil {
		return 0, err
	}
	if !enforce {
		if total > l.disk {
			return total, nil
		}
		return 0, nil
	}
	slices.SortFunc(past, func(a, b stored) int { return a.past.Ended.Compare(b.past.Ended) })
	tooLarge := l.disk > 0 && total > l.disk
	for _, it := range past {
		if old := l.archive > 0 && time.Since(it.past.Ended) > l.archive; !old && !(tooLarge && total > l.highWater) {
			continue
		}
		err := s.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			_, err := tx.Sessions().PrunePast(it.meta.Key, it.past.Ended.Add(1))
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("session %s: %w", it.meta.Key, err)
		}
		total -= it.size
		s.Log.Info("deleted an old transcript", "session", it.meta.Key, "ended", it.past.Ended,
			"size", humanize.Bytes(it.size))
	}
	for _, it := range current {
		if !tooLarge || total <= l.highWater {
			break
		}
		deleted, err := s.remove(ctx, it.meta)
		if err != nil {
			return 0, err
		}
		if deleted {
			total -= it.size
		}
	}
	return 0, nil
}
