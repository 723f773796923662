package runner

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/usage"
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
	if errors.Is(err, errGrown) {
		return true, r.compactGrown(ctx, e)
	}
	if over, ok := errors.AsType[*usage.BudgetError](err); ok {
		return r.stepDown(ctx, e, over)
	}
	switch llm.ClassOf(err) {
	case llm.ClassContext:
		if err := r.learnLimit(ctx, e, err); err != nil {
			return false, err
		}
		return r.shrink(ctx, e)
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
