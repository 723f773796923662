package webhook

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
)

// room bounds the number of requests that wait. The rows are counted at most once in a
// period; between, what was accepted is added. So a flood that is refused costs nothing.
type room struct {
	lock    chan struct{} // cap 1: full while the fields below are used, also during a count
	counted time.Time
	rows    int // that waited when they were counted, and were accepted since
	pending int // being accepted
}

// countEvery is the time between two counts.
const countEvery = 100 * time.Millisecond

// enter takes a place for a request, or returns ErrBusy.
func (r *room) enter(ctx context.Context, s store.Store) error {
	select {
	case r.lock <- struct{}{}:
		defer func() { <-r.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.rows+r.pending >= maxWaiting && time.Since(r.counted) >= countEvery || r.counted.IsZero() {
		n, err := store.Get(ctx, s, func(rd store.Reader) (int, error) { return waiting(rd.Queue()) })
		if err != nil {
			return err
		}
		r.rows, r.counted = n, time.Now()
	}
	if r.rows+r.pending >= maxWaiting {
		return ErrBusy
	}
	r.pending++
	return nil
}

// leave returns the place of a request, unless it was accepted and waits now.
func (r *room) leave(accepted bool) {
	r.lock <- struct{}{}
	defer func() { <-r.lock }()
	r.pending--
	if accepted {
		r.rows++
	}
}

// waiting returns the number of requests that wait.
func waiting(t queue.Reader) (int, error) { return t.WaitingOf(chela.OriginWebhook) }
