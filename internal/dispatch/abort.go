package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

// Abort stops work of a session and returns the ids of what it stopped. With
// an id, only that: a message that still waits, or the run in progress. Without
// one, first what waits and then the run, also one that waits for a decision.
// It does not wait until the run has ended.
func (c *Conductor) Abort(ctx context.Context, key chela.SessionKey, id chela.RunID) ([]chela.RunID, error) {
	ids, running, err := c.abortRows(ctx, key, id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	s := c.live[key]
	c.mu.Unlock()
	if s == nil {
		return ids, nil
	}
	if running == "" { // a call that was decided late may be in progress
		if rid, ok := s.stop(id, errStopped); ok {
			ids = append(ids, rid)
		}
		return ids, nil
	}
	ids = append(ids, running)
	if s.halt(running) {
		return ids, nil
	}
	// It is about to begin, or it has come to its end or to a question since:
	// what is left of it then is in its rows.
	_, _, err = c.abortRows(ctx, key, running)
	return ids, err
}

// Revoke stops the runs that a credential began, in progress or waiting for a
// decision: who lost it does not act through them any longer.
func (c *Conductor) Revoke(ctx context.Context, credential string) error {
	active, err := store.Get(ctx, c.o.Store, func(r store.Reader) ([]run.Run, error) { return r.Runs().Active("") })
	for _, r := range active {
		if r.Principal.Credential == credential {
			_, aerr := c.Abort(ctx, r.Session, r.ID)
			err = errors.Join(err, aerr)
		}
	}
	return err
}

// abortRows stops what only rows know of, and returns the ids of that and of
// the run that is running.
func (c *Conductor) abortRows(ctx context.Context, key chela.SessionKey, id chela.RunID) (ids []chela.RunID, running chela.RunID, err error) {
	var cancelled []queue.Item
	var ended []run.Run
	var withdrawn []approval.Request
	err = c.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		ids, running, cancelled, ended, withdrawn = nil, "", nil, nil, nil
		items, err := tx.Queue().Waiting(key)
		if err != nil {
			return err
		}
		for _, it := range items {
			if it.Kind == queue.Message && (id == "" || it.ID == string(id)) {
				it.Note = "stopped before it began"
				cancelled = append(cancelled, it)
				ids = append(ids, chela.RunID(it.ID))
			}
		}
		if err := tx.Queue().Set(queue.Cancelled, cancelled...); err != nil {
			return err
		}
		active, err := tx.Runs().Active(key)
		if err != nil {
			return err
		}
		for _, r := range active {
			if r.State == run.Running && (id == "" || r.ID == id) {
				running = r.ID
			}
		}
		ended, withdrawn, err = stopSuspended(tx, key, id)
		for _, r := range ended {
			ids = append(ids, r.ID)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	for _, it := range cancelled {
		c.absorbed(it)
	}
	c.leftBehind(ended, withdrawn)
	return ids, running, nil
}

// leftBehind says that suspended runs have ended, and with them what they asked.
// Observers of a new process do not know the runs yet.
func (c *Conductor) leftBehind(runs []run.Run, withdrawn []approval.Request) {
	c.publishWithdrawn(withdrawn)
	for _, r := range runs {
		j := &job{r: r}
		c.publish(j, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseResume})
		c.publishEnd(j)
	}
}

func (c *Conductor) publishWithdrawn(list []approval.Request) {
	for _, q := range list {
		c.o.Bus.Publish(chela.Event{Session: q.Session, Stream: chela.StreamApproval, Phase: chela.PhaseResolved, Data: q})
	}
}

// stopSuspended ends the runs of a session that wait for a decision.
func stopSuspended(tx store.Tx, key chela.SessionKey, id chela.RunID) ([]run.Run, []approval.Request, error) {
	active, err := tx.Runs().Active(key)
	if err != nil {
		return nil, nil, err
	}
	var ended []run.Run
	var withdrawn []approval.Request
	now := time.Now()
	for _, r := range active {
		if r.State != run.Suspended || id != "" && r.ID != id {
			continue
		}
		w, err := stopOne(tx, &r, now)
		if err != nil {
			return nil, nil, err
		}
		withdrawn, ended = append(withdrawn, w...), append(ended, r)
	}
	return ended, withdrawn, nil
}

// stopOne ends a run that waits for a decision, and withdraws its questions.
func stopOne(tx store.Tx, r *run.Run, now time.Time) ([]approval.Request, error) {
	calls, err := tx.Calls().Open(r.ID)
	if err != nil {
		return nil, err
	}
	for _, k := range calls {
		if err := tx.Sessions().Append(r.SessionID, wording.Result(r.ID, k, "Not run: the person stopped this.", now)); err != nil {
			return nil, err
		}
		if err := tx.Calls().Move(k.ID, session.Closed); err != nil {
			return nil, err
		}
	}
	withdrawn, err := withdraw(tx, *r, now)
	if err != nil {
		return nil, err
	}
	r.State, r.Error, r.Ended = run.Aborted, "stopped", now
	if err := tx.Runs().Put(*r); err != nil {
		return nil, err
	}
	return withdrawn, tx.Queue().Finish(r.ID)
}

func asLLM(err error) (*llm.Error, bool) { return errors.AsType[*llm.Error](err) }
