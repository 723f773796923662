package dispatch

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

// Decide answers an approval as the principal of ctx. One commit holds the
// decision, the call's new state, and the queue item by which the run goes on.
func (c *Conductor) Decide(ctx context.Context, id, decision string) (approval.Request, error) {
	return c.decide(ctx, chela.PrincipalFrom(ctx), id, decision)
}

func (c *Conductor) decide(ctx context.Context, who chela.Principal, id, decision string) (approval.Request, error) {
	var req approval.Request
	var expired error
	c.o.Step("approval.decide")
	err := c.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		who, err := pairing.Current(tx.Devices(), who) // its device may have been revoked since it connected
		if err != nil {
			return err
		}
		now := time.Now()
		req, err = approval.Resolve(tx.Approvals(), who, id, decision, now)
		expired = nil
		if err != nil {
			if req.Decision != approval.Expired || req.Decided != now {
				return err
			}
			expired = err // the expiry itself is a decision, and is stored
		}
		return resume(tx, req, now)
	})
	if err != nil {
		return req, err
	}
	c.o.Bus.Publish(chela.Event{
		Session: req.Session, Stream: chela.StreamApproval, Phase: chela.PhaseResolved, Data: req,
	})
	return req, expired
}

// resume moves the call of a decided request on and puts the item that lets
// its run go on.
func resume(tx store.Tx, req approval.Request, now time.Time) error {
	if req.Call == "" {
		return nil // a client asked for something of its own
	}
	to := session.Denied
	if req.Decision.Allows() {
		to = session.Approved
	}
	if err := tx.Calls().Move(req.Call, to, session.Waiting); err != nil {
		if chela.CodeOf(err) == chela.CodeConflict {
			return nil // the run was stopped meanwhile: nothing is left to go on with
		}
		return err
	}
	_, err := tx.Queue().Put(queue.Item{
		ID: "resume:" + req.ID, Key: "resume:" + req.ID, Session: req.Session, Kind: queue.Resume,
		Principal: req.Requester, Call: req.Call, State: queue.Waiting, Created: now,
	})
	if err != nil {
		return err
	}
	tx.Wake(store.Topic{Kind: store.TopicQueue, Session: req.Session})
	return nil
}

// expire ends the approvals that nobody answered in time.
func (c *Conductor) expire(ctx context.Context) {
	var due []approval.Request
	err := c.o.Store.View(ctx, func(r store.Reader) error {
		all, err := r.Approvals().Pending("")
		due = due[:0]
		for _, q := range all {
			if !time.Now().Before(q.Expires) {
				due = append(due, q)
			}
		}
		return err
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.o.Log.Error("look for expired approvals", "err", err)
		return
	}
	for _, q := range due {
		_, err := c.decide(ctx, chela.Owner("expiry"), q.ID, string(approval.Deny))
		switch {
		case ctx.Err() != nil:
			return
		case chela.CodeOf(err) == chela.CodeConflict:
			c.o.Log.Info("approval expired", "approval", q.ID, "session", q.Session)
		case err != nil:
			c.o.Log.Error("approval expired; it is looked at again", "approval", q.ID, "session", q.Session, "err", err)
		}
	}
}
