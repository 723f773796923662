package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// ledger records what the tool door does with the calls of a run, under the
// run's lease.
type ledger struct {
	c *Conductor
	j *job
}

// Start records, on disk before it returns, that the call is about to have an
// effect. From then on recovery never runs it again.
func (l ledger) Start(ctx context.Context, k llm.ToolCall, effect tool.Effect) error {
	call, err := l.j.planned(k)
	if err != nil {
		return err
	}
	sync := store.Synced
	if effect == tool.Reads {
		sync = store.Ordered
	}
	l.c.o.Step("tool.start")
	err = store.Held(ctx, l.c.o.Store, l.j.lease, sync, func(tx store.Tx) error {
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
		l.c.o.Step("tool.run")
	}
	return l.kept(ctx, err)
}

// kept notes that a row could not be written. It is not the call's fault: the
// run is gone on with when it can be.
func (l ledger) kept(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && chela.CodeOf(err) != chela.CodeConflict {
		l.j.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// Decision returns how far the call's approval is: the zero Request when
// nobody was asked.
func (l ledger) Decision(ctx context.Context, k llm.ToolCall) (approval.Request, error) {
	var req approval.Request
	call, err := l.j.planned(k)
	if err != nil {
		return req, err
	}
	err = l.c.o.Store.View(ctx, func(r store.Reader) error {
		have, err := r.Calls().Call(call.ID)
		if err != nil || have.Approval == "" {
			return err
		}
		req, err = r.Approvals().Get(have.Approval)
		return err
	})
	return req, err
}

// Always reports whether a plan with this hash was allowed always for the agent.
func (l ledger) Always(ctx context.Context, toolName, hash string) (bool, error) {
	var ok bool
	err := l.c.o.Store.View(ctx, func(r store.Reader) error {
		list, err := r.Approvals().Always(l.j.r.Session.Agent(), toolName)
		ok = slices.ContainsFunc(list, func(q approval.Request) bool { return q.Hash == hash })
		return err
	})
	return ok, err
}

// Ended keeps what became of the call for the commit that closes it.
func (l ledger) Ended(k llm.ToolCall, o session.Outcome) {
	if call, err := l.j.planned(k); err == nil {
		l.j.became.Store(call.ID, o)
	}
}

// closed closes a call with what became of it.
func (j *job) closed(tx store.Tx, id string) error {
	v, _ := j.became.Load(id)
	o, _ := v.(session.Outcome)
	return tx.Calls().Close(id, o)
}

// Suspend asks for a decision: the request and the call's new state are one
// commit, on disk before anybody is asked.
func (l ledger) Suspend(ctx context.Context, k llm.ToolCall, p tool.Plan) error {
	call, err := l.j.planned(k)
	if err != nil {
		return err
	}
	now := time.Now()
	req := approval.Request{
		ID: uuid.NewString(), Session: l.j.r.Session, Run: l.j.r.ID, Call: call.ID, Tool: k.Name,
		Text: p.Text, Reason: p.Reason, Hash: p.Hash, Once: p.Once, Requester: l.j.r.Principal,
		Created: now, Expires: now.Add(approval.Lifetime),
	}
	l.c.o.Step("approval.ask")
	err = store.Held(ctx, l.c.o.Store, l.j.lease, store.Synced, func(tx store.Tx) error {
		if err := tx.Approvals().Put(req); err != nil {
			return err
		}
		call.State, call.Approval, call.Updated = session.Waiting, req.ID, now
		return tx.Calls().Put(call)
	})
	if err != nil {
		return l.kept(ctx, err)
	}
	l.c.o.Bus.Publish(chela.Event{
		Session: req.Session, Stream: chela.StreamApproval, Phase: chela.PhaseRequested, Data: req,
	})
	return nil
}
