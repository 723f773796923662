package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// ExecuteDetached carries out, once, a decided call whose run was superseded. The
// commit that closes the call puts its result into the queue. ErrChanged is returned
// when the profile is stale.
func (r *Runner) ExecuteDetached(ctx context.Context, it queue.Item, call session.Call, row run.Run) error {
	rows := context.WithoutCancel(ctx)
	meta, err := r.meta(rows, row.Session)
	if err != nil {
		return err
	}
	p, err := r.resolve(ctx, meta, row)
	if err != nil {
		return err
	}
	e := &Execution{
		alive:   r.o.Owner.Track(),
		run:     row,
		meta:    meta,
		profile: p,
		calls:   calls{byWire: map[string]session.Call{call.Wire.ID: call}},
	}
	err = r.takeLease(rows, func(tx store.Tx, sync store.Sync) error {
		if e.lease, err = r.acquire(tx, sync, row.Session); err != nil {
			return err
		}
		if e.meta, err = session.Lookup(tx.Sessions(), row.Session); err != nil {
			return err
		}
		if e.run.Principal, err = pairing.Current(tx.Devices(), row.Principal); err != nil {
			return err
		}
		return errors.Join(r.checkProfile(p, e.meta), e.spent.load(tx, row.ID))
	})
	if err != nil {
		return err
	}
	text, err := r.callDetached(ctx, e, call)
	if err != nil {
		return err
	}
	r.o.Step("detached.end")
	return r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		if err := e.calls.close(tx, call.ID); err != nil {
			return err
		}
		if err := tx.Queue().Set(queue.Done, it); err != nil {
			return err
		}
		err := store.Enqueue(tx, queue.Item{
			ID: "result:" + call.ID, Key: "result:" + call.ID, Session: row.Session, Kind: queue.Event,
			Origin: chela.Origin{Kind: chela.OriginProcess, ID: call.ID}, Parent: row.ID, Root: row.Tree(),
			Principal: row.Principal, Call: call.ID, State: queue.Waiting, Created: time.Now(),
			Inbound: chela.Inbound{Address: row.Address, Text: text},
		})
		return errors.Join(err, tx.Leases().Release(e.lease))
	})
}

// callDetached carries out the call if it was allowed, and returns what the
// session is told about it.
func (r *Runner) callDetached(ctx context.Context, e *Execution, call session.Call) (string, error) {
	what := fmt.Sprintf("The call %s that waited for approval %s", e.label(call.Wire), call.Approval)
	if call.State == session.Started {
		return what + " was allowed and had started when Chela was interrupted: its outcome is unknown. It was not repeated.",
			nil
	}
	l := ledger{r, e}
	req, err := l.Decision(context.WithoutCancel(ctx), call.Wire)
	if err != nil {
		return "", err
	}
	if !req.Decision.Allows() {
		l.Ended(call.Wire, session.Outcome{Who: e.run.Principal.ID, Decision: session.DecisionDenied, Rule: "approval",
			Result: session.ResultError})
		decision := req.Decision
		if decision == approval.Pending {
			decision = approval.Deny
		}
		return fmt.Sprintf("%s was not allowed (%s).", what, decision), nil
	}
	if u, ok := e.profile.Provider.(unusable); ok {
		l.Ended(call.Wire, session.Outcome{Who: e.run.Principal.ID, Decision: session.DecisionAllowed, Rule: "approval",
			Result: session.ResultError})
		return fmt.Sprintf("%s was allowed, but could not be run: %v.", what, u.err), nil
	}
	ctx = chela.WithPrincipal(ctx, e.run.Principal)
	res, err := r.o.Executor.For(r.scope(e)).Invoke(ctx, call.Wire, func(string) {})
	switch {
	case err == nil, errors.Is(err, tool.ErrStop):
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrStopped):
		return what + " was allowed, and stopped by the person while it ran.", nil
	default:
		return "", err
	}
	text := ""
	for _, p := range res.Content {
		text += p.Text
	}
	return fmt.Sprintf("%s was allowed and has run. Its result:\n%s", what, text), nil
}
