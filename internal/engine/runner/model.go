package runner

import (
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/engine/agent"
)

// errModelEnded says that a stream ended with neither a message nor an error.
var errModelEnded = chela.Errorf(chela.CodeUnavailable, "the model's stream ended without an answer")

// callModel makes one call of a model for a run, outside of the agent loop, and
// returns the message. Money is reserved before the call. Its usage is stored and counts
// towards the limits of the run, also if it fails.
func (r *Runner) callModel(ctx context.Context, e *Execution, m llm.Model, p llm.Provider,
	req *llm.Request) (*llm.Message, error) {
	e.attempt.shown = false // nobody sees the answer
	var msg *llm.Message
	for ev, err := range r.guard(e, p).Stream(ctx, req) {
		if err != nil || ev.Kind == llm.Spent || ev.Kind == llm.Done {
			used := agent.Event{Kind: agent.Spent, Usage: ev.Usage, By: ev.By}
			if used.By == nil {
				used.By = &m
			}
			if err := errors.Join(r.countWasted(ctx, e, used), r.release(ctx, e)); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		if ev.Kind == llm.Done {
			msg = ev.Message
		}
	}
	if msg == nil {
		return nil, errors.Join(ctx.Err(), errModelEnded)
	}
	return msg, nil
}

// aborted returns the end of a run whose context has ended.
func aborted(ctx context.Context) (agent.Event, error) {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrShutdown) {
		return agent.Event{}, ErrShutdown // the next start resumes the run from its rows
	}
	return agent.Event{Kind: agent.End, Reason: agent.Aborted, Err: cause}, nil
}

// stored reports whether an error says that rows of the run cannot be written, so that
// nothing else can be done for it.
func stored(err error) bool {
	return errors.Is(err, chela.ErrFenced) || errors.Is(err, errNotAlive)
}
