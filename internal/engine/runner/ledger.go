package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

var (
	_ invoke.Ledger = ledger{}
	_ agent.Tools   = (*invoke.View)(nil)
)

// ledger records what the executor does with the calls of a run, under the run's
// lease.
type ledger struct {
	r *Runner
	e *Execution
}

// lookup returns the stored call with the provider's id.
func (c *calls) lookup(k llm.ToolCall) (session.Call, error) {
	if call, ok := c.byWire[k.ID]; ok {
		return call, nil
	}
	return session.Call{}, fmt.Errorf("call %s (%s) is not in the transcript: %w", k.ID, k.Name, tool.ErrStop)
}

// close closes a call with its outcome.
func (c *calls) close(tx store.Tx, id string) error {
	v, _ := c.outcomes.Load(id)
	o, _ := v.(session.Outcome)
	return tx.Calls().Close(id, o)
}

// Call returns the record of the call as it was when the run was started or
// resumed.
func (l ledger) Call(k llm.ToolCall) (session.Call, error) { return l.e.calls.lookup(k) }

// Start records that the call is about to have an effect. The record is on disk
// before Start returns; after that recovery does not repeat the call.
func (l ledger) Start(ctx context.Context, k llm.ToolCall, effect tool.Effect) error {
	call, err := l.e.calls.lookup(k)
	if err != nil {
		return err
	}
	sync := store.Synced
	if effect == tool.Reads {
		sync = store.Ordered
	}
	l.r.o.Step("tool.start")
	if !l.e.alive() {
		return l.checkStored(ctx, errNotAlive)
	}
	err = store.Held(ctx, l.r.o.Store, l.e.lease, sync, func(tx store.Tx) error {
		have, err := tx.Calls().Call(call.ID)
		if err != nil {
			return err
		}
		if have.State != session.Planned && have.State != session.Approved {
			return chela.Errorf(chela.CodeConflict, "call %s is %s already", call.ID, have.State)
		}
		have.State, have.Effect, have.Updated = session.Started, effect.String(), time.Now()
		return tx.Calls().Put(have)
	})
	if err == nil {
		l.r.o.Step("tool.run")
	}
	return l.checkStored(ctx, err)
}

// checkStored notes an error of the store. It is not a failure of the call: the
// run is resumed when rows can be written again.
func (l ledger) checkStored(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && chela.CodeOf(err) != chela.CodeConflict {
		l.e.calls.err.CompareAndSwap(nil, &err)
	}
	return err
}

// Decision returns the call's approval request; the zero Request when there is
// none.
func (l ledger) Decision(ctx context.Context, k llm.ToolCall) (approval.Request, error) {
	call, err := l.e.calls.lookup(k)
	if err != nil {
		return approval.Request{}, err
	}
	return store.Get(ctx, l.r.o.Store, func(rd store.Reader) (approval.Request, error) {
		have, err := rd.Calls().Call(call.ID)
		if err != nil || have.Approval == "" {
			return approval.Request{}, err
		}
		return rd.Approvals().Get(have.Approval)
	})
}

// Always reports whether a plan with this hash is always allowed for the agent.
func (l ledger) Always(ctx context.Context, toolName, hash string) (bool, error) {
	return store.Get(ctx, l.r.o.Store, func(rd store.Reader) (bool, error) {
		return approval.HasStanding(rd.Approvals(), l.e.run.Session, toolName, hash)
	})
}

// Ended keeps the outcome of the call for the commit that closes it.
func (l ledger) Ended(k llm.ToolCall, o session.Outcome) {
	if call, err := l.e.calls.lookup(k); err == nil {
		l.e.calls.outcomes.Store(call.ID, o)
	}
}

// Suspend asks for a decision. One commit, on disk before anybody is asked, holds
// the request and the call's new state. The call has not started, or it was
// blocked after it started.
func (l ledger) Suspend(ctx context.Context, k llm.ToolCall, p tool.Plan) error {
	call, err := l.e.calls.lookup(k)
	if err != nil {
		return err
	}
	now := time.Now()
	req := approval.Request{
		ID:        uuid.NewString(),
		Session:   l.e.run.Session,
		Run:       l.e.run.ID,
		Call:      call.ID,
		Tool:      k.Name,
		Text:      p.Text,
		Reason:    p.Reason,
		Hash:      p.Hash,
		Rights:    p.Rights,
		Once:      p.Once,
		Ran:       p.Ran,
		Requester: l.e.run.Principal,
		Created:   now,
		Expires:   now.Add(cmp.Or(min(p.Wait, approval.Lifetime), approval.Lifetime)),
	}
	l.r.o.Step("approval.ask")
	err = store.Held(ctx, l.r.o.Store, l.e.lease, store.Synced, func(tx store.Tx) error {
		root, err := tx.Runs().Get(l.e.run.Tree())
		if err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		if root.Session != req.Session {
			req.Asked = root.Session
		}
		if tree := l.e.run.Tree(); tree != req.Run {
			req.Root = tree
		}
		if err := tx.Approvals().Put(req); err != nil {
			return err
		}
		_, err = session.Block(tx.Calls(), call.ID, req.ID, p.Rights, now, session.Planned, session.Approved, session.Started)
		return err
	})
	if err != nil {
		return l.checkStored(ctx, err)
	}
	l.r.o.Bus.Publish(chela.Event{
		Session: req.Session, Stream: chela.StreamApproval, Phase: chela.PhaseRequested, Data: req,
	})
	return nil
}
