package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	maxRetries    = 3                // per run, of model calls that failed before text was shown
	maxRetryAfter = 60 * time.Second // that a provider may ask for
)

var retryDelay = backoff.Policy{First: 500 * time.Millisecond, Max: 8 * time.Second, Factor: 3, Jitter: 0.1}

// recoverModelError handles a failed model call and reports whether another
// attempt is worthwhile: a prompt that is too long is cut, and an overloaded or
// unreachable service is asked again after a delay.
func (r *Runner) recoverModelError(ctx context.Context, e *Execution, err error, retries *int) (bool, error) {
	switch llm.ClassOf(err) {
	case llm.ClassContext:
		return r.cutHistory(ctx, e, fmt.Sprintf("the conversation is too long for %s: ", e.profile.Model.Ref()))
	case llm.ClassNetwork, llm.ClassOverload, llm.ClassRate:
	default:
		return false, nil
	}
	if e.attempt.shown || *retries >= maxRetries {
		return false, nil
	}
	delay := retryDelay.Delay(*retries, 0.5)
	if le, ok := errors.AsType[*llm.Error](err); ok && le.RetryAfter > 0 {
		if le.RetryAfter > maxRetryAfter {
			return false, nil
		}
		delay = le.RetryAfter
	}
	*retries++
	r.o.Log.Info("model call failed; retrying", "session", e.run.Session, "run", e.run.ID, "err", err, "in", delay)
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return true, nil
	case <-ctx.Done():
		return false, nil
	}
}

// cutHistory removes the oldest turns from what is sent to the model, and reports
// whether there were any. They stay in the transcript. reason begins the notice to
// the person.
func (r *Runner) cutHistory(ctx context.Context, e *Execution, reason string) (bool, error) {
	ctx = context.WithoutCancel(ctx)
	if err := r.flush(ctx, e); err != nil {
		return false, err
	}
	all, err := store.Get(ctx, r.o.Store, func(rd store.Reader) ([]session.Entry, error) {
		return rd.Sessions().Entries(e.run.SessionID, 0, 0)
	})
	if err != nil {
		return false, err
	}
	from, turns, ok := compact.Cut(all)
	if !ok {
		return false, nil
	}
	now := time.Now()
	text := fmt.Sprintf("%sthe oldest %d turns are no longer sent to the model (they stay in the history)", reason, turns)
	entries := []*session.Entry{
		{ID: uuid.NewString(), Kind: session.KindCut, Time: now, Run: e.run.ID, First: from},
		{ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Run: e.run.ID, Text: text},
	}
	meta := e.meta
	err = r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		if err := tx.Sessions().Append(e.run.SessionID, entries...); err != nil {
			return err
		}
		if meta, err = session.Lookup(tx.Sessions(), e.run.Session); err != nil || meta.ID != e.run.SessionID || !meta.EndFork() {
			return err
		}
		return tx.Sessions().Put(meta)
	})
	if err != nil {
		return false, err
	}
	r.publishStored(e, meta, entries...)
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseCompaction})
	r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: text})
	return true, nil
}
