package dispatch

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// Decide answers an approval as the principal of ctx. One commit holds the
// decision, the new state of the call, and the queue item that resumes the run.
func (d *Dispatcher) Decide(ctx context.Context, id, decision string) (approval.Request, error) {
	return d.decide(ctx, chela.PrincipalFrom(ctx), id, decision)
}

func (d *Dispatcher) decide(ctx context.Context, who chela.Principal, id, decision string) (approval.Request, error) {
	var req approval.Request
	var expired error
	d.o.Step("approval.decide")
	err := d.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
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
			expired = err // the expiry is a decision, and is stored
		}
		return putResume(tx, req, now)
	})
	if err != nil {
		return req, err
	}
	d.o.Bus.Publish(chela.Event{
		Session: req.Session, Stream: chela.StreamApproval, Phase: chela.PhaseResolved, Data: req,
	})
	return req, expired
}

// putResume moves the call of a decided request on, and puts the item that
// resumes its run.
func putResume(tx store.Tx, req approval.Request, now time.Time) error {
	if req.Call == "" {
		return nil // a client asked, not a call
	}
	to := session.Denied
	if req.Decision.Allows() {
		to = session.Approved
	}
	if err := tx.Calls().Move(req.Call, to, session.Waiting); err != nil {
		if chela.CodeOf(err) == chela.CodeConflict {
			return nil // the run was stopped meanwhile
		}
		return err
	}
	it := queue.NewResume("resume:"+req.ID, run.Run{Session: req.Session, ID: req.Run, Principal: req.Requester},
		time.Time{}, now)
	it.Call = req.Call
	return store.Enqueue(tx, it)
}

// expire ends the approvals that nobody answered in time.
func (d *Dispatcher) expire(ctx context.Context) {
	pending, err := store.Get(ctx, d.o.Store,
		func(r store.Reader) ([]approval.Request, error) { return r.Approvals().Pending("") })
	if err != nil && ctx.Err() == nil {
		d.o.Log.Error("read pending approvals", "err", err)
	}
	for _, q := range pending {
		if time.Now().Before(q.Expires) {
			continue
		}
		_, err := d.decide(ctx, chela.Owner("expiry"), q.ID, string(approval.Deny))
		switch {
		case ctx.Err() != nil:
			return
		case chela.CodeOf(err) == chela.CodeConflict:
			d.o.Log.Info("approval expired", "approval", q.ID, "session", q.Session)
		case err != nil:
			d.o.Log.Error("expire approval; retrying", "approval", q.ID, "session", q.Session, "err", err)
		}
	}
}
