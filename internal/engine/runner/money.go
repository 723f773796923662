package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/budget"
)

// The steps that are taken, in the configured order, if a model call does not fit a
// budget.
const (
	StepCheaper = "cheaper" // another model answers
	StepSmaller = "smaller" // the oldest part of the conversation is no longer sent
	StepWait    = "wait"    // the run ends
)

// guard returns a provider for the calls of a run.
func (r *Runner) guard(e *Execution, p llm.Provider) llm.Provider { return guarded{p, r, e} }

// paid returns the stream of a model call for which money is reserved. If an attempt of
// the call has cost something and others may follow, money is reserved again.
func (r *Runner) paid(ctx context.Context, e *Execution, p llm.Provider, req *llm.Request) iter.Seq2[llm.Event, error] {
	if !e.profile.Limits.Any() {
		return p.Stream(ctx, req)
	}
	return func(yield func(llm.Event, error) bool) {
		known := e.meta.Context
		if e.steps > 0 { // the prompt may be shorter, or of another model
			known = 0
		}
		q := budget.QuoteOf(req, known, llm.ModelsOf(p, e.profile.Model)...)
		if err := r.reserve(ctx, e, q); err != nil {
			yield(llm.Event{}, err)
			return
		}
		req = e.reserved.Apply(req)
		for ev, err := range p.Stream(ctx, req) {
			if !yield(ev, err) {
				return
			}
			if err != nil || ev.Kind != llm.Spent || e.reserved != nil {
				continue
			}
			q.Output = int64(req.Ceiling)
			q.Floor = q.Output
			if err := r.reserve(ctx, e, q); err != nil {
				yield(llm.Event{}, err)
				return
			}
		}
	}
}

// reserve reserves money for a model call of a run.
func (r *Runner) reserve(ctx context.Context, e *Execution, q usage.Quote) error {
	r.o.Step("model.reserve")
	res, err := r.o.Budgets.Reserve(ctx, e.paidCall(), e.profile.Limits, q,
		func(ctx context.Context, f func(store.Tx) error) error {
			return r.update(ctx, e, store.Ordered, f)
		})
	if err != nil {
		return err
	}
	e.reserved = res
	r.o.Step("model.reserved")
	return nil
}

// release gives back the money that was reserved for a call whose usage is not known. If
// the call gave a part of an answer, its usage is estimated.
func (r *Runner) release(ctx context.Context, e *Execution) error {
	res := e.reserved
	if res == nil {
		return nil
	}
	if e.attempt.shown {
		return r.countWasted(ctx, e,
			agent.Event{Kind: agent.Spent, Usage: e.estimatedUsage(e.attempt.length / estimate.BytesPerToken)})
	}
	e.reserved = nil
	return r.update(ctx, e, store.Ordered, func(tx store.Tx) error { return r.o.Budgets.Release(tx, res) })
}

// estimatedUsage returns the usage of the last call of a run, whose answer had the given
// tokens so far.
func (e *Execution) estimatedUsage(output int) llm.Usage {
	if e.asked == nil {
		return llm.Usage{}
	}
	return llm.Usage{
		Input: int64(estimate.Request(e.asked)), Output: int64(output), Estimated: true,
		Fast: e.asked.Fast && e.profile.Model.Fast > 0,
	}
}

// paidCall says what the model calls of a run are for.
func (e *Execution) paidCall() budget.Call {
	c := budget.Call{Run: e.run.ID, Root: e.run.Tree(), Agent: e.run.Agent, Session: e.run.Session}
	if e.awaited() {
		c.Transcript, c.Address = e.run.SessionID, e.run.Address
	}
	return c
}

// awaited reports whether a person waits in a chat of their own for the answer of a run.
func (e *Execution) awaited() bool {
	switch e.run.Origin.Kind {
	case chela.OriginCron, chela.OriginHeartbeat, chela.OriginWebhook, chela.OriginHook:
		return false
	}
	peer := e.run.Address.Peer.Kind
	return !e.meta.IsChild() && peer != chela.Group && peer != chela.Room
}

// stepDown takes the next step after a model call that does not fit a budget, and reports
// whether the call is worth another attempt.
func (r *Runner) stepDown(ctx context.Context, e *Execution, over *usage.BudgetError) (bool, error) {
	for ladder := e.profile.Ladder; e.steps < len(ladder); {
		step := ladder[e.steps]
		e.steps++
		switch step {
		case StepCheaper:
			p := e.cheaper()
			if p == nil {
				continue
			}
			text := fmt.Sprintf("💰 %s is nearly used up: %s of %s. %s answers instead of %s while it lasts.",
				over.Scope.Title(), usage.USD(over.Spent), usage.USD(over.Scope.Limit), p.Model.Ref(), e.profile.Model.Ref())
			e.profile = p
			return true, r.tell(ctx, e, func(tx store.Tx) ([]chela.Event, error) {
				return r.o.Budgets.Tell(tx, e.paidCall(), e.profile.Limits, over, StepCheaper, text)
			})
		case StepSmaller:
			switch _, err := r.compact(ctx, e, session.CompactBudget, ""); {
			case err == nil:
				return true, nil
			case !errors.Is(err, ErrNothingToCompact) && !errors.Is(err, ErrChanged):
				return false, err
			}
		case StepWait:
			return false, nil
		}
	}
	return false, nil
}

// cheaper returns the profile of the run with a cheaper model; nil: there is none.
func (e *Execution) cheaper() *Profile {
	if e.profile.Cheaper == nil {
		return nil
	}
	return e.profile.Cheaper()
}

// exhausted notes that a run ends because a budget is used up.
func (r *Runner) exhausted(ctx context.Context, e *Execution, over *usage.BudgetError) error {
	e.run.Until = over.Until
	return r.tell(ctx, e, func(tx store.Tx) ([]chela.Event, error) {
		return r.o.Budgets.Exhausted(tx, e.paidCall(), e.profile.Limits, over)
	})
}

// tell writes something for the person in a commit, and publishes it.
func (r *Runner) tell(ctx context.Context, e *Execution, f func(store.Tx) ([]chela.Event, error)) error {
	var events []chela.Event
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		var err error
		events, err = f(tx)
		return err
	})
	if err == nil {
		r.o.Budgets.Publish(events)
	}
	return err
}

// overBudget reports whether an error is about a budget of money.
func overBudget(err error) bool {
	_, over := errors.AsType[*usage.BudgetError](err)
	return over
}

// isSilent reports whether a heartbeat that failed is not mentioned, because only the
// owner can do something about it, and is told otherwise.
func (e *Execution) isSilent(err error) bool {
	return e.run.Origin.Kind == chela.OriginHeartbeat && (overBudget(err) || llm.ClassOf(err) == llm.ClassBilling)
}

// settleAborted stores the usage of a call that the end of the process aborted. The run
// asks the model again when it is resumed.
func (r *Runner) settleAborted(ctx context.Context, e *Execution) error {
	p := e.pending
	if p == nil || p.usage.Tokens.Total() == 0 {
		return nil
	}
	e.pending = nil
	p.usage.Time = time.Now()
	return r.storeUsage(ctx, e, p.reserved, p.usage)
}
