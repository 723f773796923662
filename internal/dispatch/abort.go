package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
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
	var ids []chela.RunID
	var cancelled []queue.Item
	var ended []run.Run
	var withdrawn []approval.Request
	err := c.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		ids, cancelled, ended, withdrawn = nil, nil, nil, nil
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
		if len(cancelled) > 0 {
			if err := tx.Queue().Set(queue.Cancelled, cancelled...); err != nil {
				return err
			}
		}
		ended, withdrawn, err = stopSuspended(tx, key, id)
		for _, r := range ended {
			ids = append(ids, r.ID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, it := range cancelled {
		c.absorbed(it)
	}
	for _, q := range withdrawn {
		c.o.Bus.Publish(chela.Event{Session: q.Session, Stream: chela.StreamApproval, Phase: chela.PhaseResolved, Data: q})
	}
	for _, r := range ended {
		j := &job{r: r}
		c.publish(j, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseResume}) // observers of a new process do not know it
		c.publishEnd(j)
	}
	c.mu.Lock()
	s := c.live[key]
	c.mu.Unlock()
	if s != nil {
		if rid, ok := s.stop(id, errStopped); ok {
			ids = append(ids, rid)
		}
	}
	return ids, nil
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
		calls, err := tx.Calls().Open(r.ID)
		if err != nil {
			return nil, nil, err
		}
		for _, k := range calls {
			if err := tx.Sessions().Append(r.SessionID, resultEntry(r.ID, k, "Not run: the person stopped this.", now)); err != nil {
				return nil, nil, err
			}
			if err := tx.Calls().Move(k.ID, session.Closed); err != nil {
				return nil, nil, err
			}
		}
		w, err := withdraw(tx, r, now)
		if err != nil {
			return nil, nil, err
		}
		withdrawn = append(withdrawn, w...)
		r.State, r.Error, r.Ended = run.Aborted, "stopped", now
		if err := tx.Runs().Put(r); err != nil {
			return nil, nil, err
		}
		if err := doneItems(tx, r.ID); err != nil {
			return nil, nil, err
		}
		ended = append(ended, r)
	}
	return ended, withdrawn, nil
}

func asLLM(err error) (*llm.Error, bool) { return errors.AsType[*llm.Error](err) }
