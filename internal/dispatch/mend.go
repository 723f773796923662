package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/backoff"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/compact"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

const (
	maxRetries  = 3                // of one run, of calls that failed before anything was shown
	longestWait = 60 * time.Second // that a provider may ask for
)

var retryDelay = backoff.Policy{First: 500 * time.Millisecond, Max: 8 * time.Second, Factor: 3, Jitter: 0.1}

// mend does what can be done about a failed model call, and reports whether it
// is worth another attempt: a prompt that is too long is cut, a service that
// stumbled is asked again.
func (c *Conductor) mend(ctx context.Context, j *job, err error, retries *int) (bool, error) {
	switch llm.ClassOf(err) {
	case llm.ClassContext:
		return c.cut(ctx, j)
	case llm.ClassNetwork, llm.ClassOverload, llm.ClassRate:
	default:
		return false, nil
	}
	if j.shown || *retries >= maxRetries {
		return false, nil
	}
	wait := retryDelay.Delay(*retries, 0.5)
	if e, ok := asLLM(err); ok && e.RetryAfter > 0 {
		if e.RetryAfter > longestWait {
			return false, nil
		}
		wait = e.RetryAfter
	}
	*retries++
	c.o.Log.Info("model call failed; trying again", "session", j.r.Session, "run", j.r.ID, "err", err, "in", wait)
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true, nil
	case <-ctx.Done():
		return false, nil
	}
}

// cut takes whole turns off the front of what is sent, because the model said
// that it is too long. The transcript keeps them.
func (c *Conductor) cut(ctx context.Context, j *job) (bool, error) {
	ctx = context.WithoutCancel(ctx)
	if err := c.flush(ctx, j); err != nil {
		return false, err
	}
	es, err := store.Get(ctx, c.o.Store, func(r store.Reader) ([]session.Entry, error) {
		return r.Sessions().Entries(j.r.SessionID, 0, 0)
	})
	if err != nil {
		return false, err
	}
	from, turns, ok := compact.Cut(es)
	if !ok {
		return false, nil
	}
	now := time.Now()
	text := fmt.Sprintf("the conversation is longer than %s can read: the oldest %d turns are left out from now on (they stay in the history)", j.p.Model.Ref(), turns)
	entries := []*session.Entry{
		{ID: uuid.NewString(), Kind: session.KindCut, Time: now, Run: j.r.ID, First: from},
		{ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Run: j.r.ID, Text: text},
	}
	err = store.Held(ctx, c.o.Store, j.lease, store.Ordered, func(tx store.Tx) error {
		return tx.Sessions().Append(j.r.SessionID, entries...)
	})
	if err != nil {
		return false, err
	}
	c.o.Cache.Append(j.r.SessionID, entries...)
	c.publish(j, chela.Event{Stream: chela.StreamNotice, Text: text})
	return true, nil
}
