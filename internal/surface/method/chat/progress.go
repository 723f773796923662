package chat

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// progress returns the plan of a session.
func (m methods) progress(ctx context.Context, _ rpc.Peer, in wire.ProgressGet) (wire.ProgressFound, error) {
	key, err := m.key(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ProgressFound{}, err
	}
	p, err := m.plan(ctx, key)
	return wire.ProgressFound{Card: wireview.ProgressCard(key, p)}, err
}

// plan returns the plan of a session; the zero Plan if there is none.
func (m methods) plan(ctx context.Context, key chela.SessionKey) (plan.Plan, error) {
	return store.Get(ctx, m.o.Store, func(r store.Reader) (plan.Plan, error) {
		meta, err := session.Lookup(r.Sessions(), key)
		return meta.Plan, err
	})
}

// putProgress replaces or removes the plan of a session, unless it is another one than
// the client expects. It returns the plan that the session has then.
func (m methods) putProgress(ctx context.Context, _ rpc.Peer, in wire.ProgressPut) (wire.ProgressFound, error) {
	key, err := m.key(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ProgressFound{}, err
	}
	var steps []plan.Step
	for _, s := range in.Plan {
		steps = append(steps, plan.Step{Title: s.Step, State: plan.State(s.Status)})
	}
	p, err := plan.New(steps, time.Now())
	if err != nil {
		return wire.ProgressFound{}, err
	}
	changed := false
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		meta, err := wireview.FindSession(tx.Sessions(), key, "session not found")
		if err != nil {
			return err
		}
		if in.ExpectedRevision > 0 && in.ExpectedRevision != wireview.Revision(meta.Plan) {
			p = meta.Plan
			return nil
		}
		changed, err = session.SetPlan(tx.Sessions(), meta, p)
		return err
	})
	if err != nil {
		return wire.ProgressFound{}, err
	}
	if changed {
		m.o.Bus.Publish(chela.Event{Session: key, Stream: chela.StreamPlan, Data: p})
	}
	return wire.ProgressFound{Card: wireview.ProgressCard(key, p)}, nil
}

// refreshText asks the model to bring its plan up to date.
const refreshText = "Bring your plan up to date with the tool plan, then say in one sentence how far the work is."

// refreshProgress sends a message that asks for a new state of the plan.
func (m methods) refreshProgress(ctx context.Context, p rpc.Peer,
	in wire.ProgressRefresh) (wire.ProgressRefreshed, error) {
	key, err := m.key(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ProgressRefreshed{}, err
	}
	now, err := m.plan(ctx, key)
	if err == nil && len(now.Steps) == 0 {
		err = rpc.Invalid("the session %s has no plan", key)
	}
	if err != nil {
		return wire.ProgressRefreshed{}, err
	}
	_, err = m.admit(ctx, p, wire.ChatSend{SessionKey: in.SessionKey, AgentID: in.AgentID, Message: refreshText,
		IdempotencyKey: in.IdempotencyKey}, chela.Inbound{})
	return wire.ProgressRefreshed{RunID: in.IdempotencyKey, Status: "accepted", Revision: wireview.Revision(now)}, err
}
