package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// detached carries out, once, a decided call whose conversation has gone on
// without it. What it gave is put into the queue in the commit that closes the
// call, so that it is told exactly once.
func (c *Conductor) detached(ctx context.Context, s *served, it queue.Item, call session.Call, r run.Run) error {
	meta, err := c.meta(ctx, s.key)
	if err != nil {
		return err
	}
	p, err := c.o.Profile(meta)
	if err != nil {
		return err
	}
	j := &job{r: r, meta: meta, p: p, calls: map[string]session.Call{call.Wire.ID: call}}
	err = c.taking(ctx, func(tx store.Tx, sync store.Sync) error {
		j.lease, err = c.acquire(tx, sync, s.key, r.ID)
		return err
	})
	if err != nil {
		return err
	}
	text, err := c.runDetached(ctx, s, j, call)
	if err != nil {
		return err
	}
	c.o.Step("detached.end")
	return store.Held(context.WithoutCancel(ctx), c.o.Store, j.lease, store.Synced, func(tx store.Tx) error {
		if err := j.closed(tx, call.ID); err != nil {
			return err
		}
		if err := tx.Queue().Set(queue.Done, it); err != nil {
			return err
		}
		_, err := tx.Queue().Put(queue.Item{
			ID: "result:" + call.ID, Key: "result:" + call.ID, Session: s.key, Kind: queue.System,
			Principal: r.Principal, Call: call.ID, State: queue.Waiting, Created: time.Now(),
			Inbound: chela.Inbound{Address: r.Address, Text: text},
		})
		tx.Wake(store.Topic{Kind: store.TopicQueue, Session: s.key})
		return err
	})
}

// runDetached returns what is to be told of the call. It is cancelled by a stop
// of the session.
func (c *Conductor) runDetached(ctx context.Context, s *served, j *job, call session.Call) (string, error) {
	what := fmt.Sprintf("The call %s that waited for approval %s", chela.CallTitle(call.Wire.Name, call.Wire.Args), call.Approval)
	if call.State == session.Started {
		return what + " was allowed and had begun when Chela was interrupted: its outcome is unknown. It was not repeated.", nil
	}
	req, err := ledger{c, j}.Decision(ctx, call.Wire)
	if err != nil {
		return "", err
	}
	if !req.Decision.Allows() {
		ledger{c, j}.Ended(call.Wire, session.Outcome{Who: j.r.Principal.ID, Decision: "denied", Rule: "approval", Result: "error"})
		return fmt.Sprintf("%s was not allowed (%s).", what, orDenied(req.Decision)), nil
	}
	ctx, cancel := context.WithCancelCause(chela.WithPrincipal(ctx, j.r.Principal))
	defer cancel(nil)
	s.begun(j.r.ID, cancel)
	defer s.ended()
	res, err := c.o.Door.For(c.scope(j)).Invoke(ctx, call.Wire, func(string) {})
	switch {
	case err == nil, errors.Is(err, tool.ErrStop):
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errStopped):
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

func orDenied(d approval.Decision) string {
	if d == approval.Pending {
		return string(approval.Deny)
	}
	return string(d)
}
