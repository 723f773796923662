package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

// unknownText answers a call that had begun when the process died.
const unknownText = "Interrupted by a restart while this was running: its outcome is unknown. It was not repeated. " +
	"Look at the current state before you decide what to do."

// recover wakes every session in which something is left to do. What is owed
// was promised by a process that is no more.
func (c *Conductor) recover(ctx context.Context) error {
	keys := map[chela.SessionKey]bool{}
	owed, err := store.Get(ctx, c.o.Store, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Owed() })
	if err == nil && len(owed) > 0 {
		err = c.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			_, err := queue.Release(tx.Queue())
			return err
		})
	}
	if err != nil {
		return err
	}
	err = c.o.Store.View(ctx, func(r store.Reader) error {
		waiting, err := r.Queue().Sessions()
		if err != nil {
			return err
		}
		for _, k := range waiting {
			keys[k] = true
		}
		active, err := r.Runs().Active("")
		for _, a := range active {
			if a.State == run.Running {
				keys[a.Session] = true
			}
		}
		return err
	})
	for k := range keys {
		c.wake(k)
	}
	return err
}

// again makes a job of a run that has begun before: one whose process died, or
// one that was suspended, or one whose rows could not be written for a while.
// crashed says that its process died, which is counted. It takes the lease
// anew, so that whoever still holds the old one can write nothing, and settles
// the calls that had begun. A run that was stopped meanwhile is errMoved.
func (c *Conductor) again(ctx context.Context, r run.Run, taken []queue.Item, crashed bool) (*job, error) {
	meta, err := c.meta(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	p, err := c.o.Profile(meta)
	if err != nil {
		return nil, fmt.Errorf("settings of session %s: %w", r.Session, err)
	}
	var j *job
	var stored []*session.Entry
	c.o.Step("run.again")
	err = c.taking(ctx, func(tx store.Tx, sync store.Sync) error {
		stored = nil
		r, err := tx.Runs().Get(r.ID)
		switch {
		case errors.Is(err, chela.ErrNotFound) || err == nil && r.State.Final():
			return errMoved
		case err != nil:
			return err
		}
		j = &job{r: r, p: p, meta: meta, resumed: true, called: true}
		if j.lease, err = c.acquire(tx, sync, r.Session, r.ID); err != nil {
			return err
		}
		return c.againTx(tx, j, crashed, taken, &stored)
	})
	if err != nil {
		return nil, err
	}
	c.o.Cache.Append(j.r.SessionID, stored...)
	c.announce(j, stored...)
	return j, nil
}

func (c *Conductor) againTx(tx store.Tx, j *job, crashed bool, taken []queue.Item, stored *[]*session.Entry) error {
	now := time.Now()
	j.r.State, j.r.Fence = run.Running, j.lease.Fence
	if crashed {
		j.r.Attempts++
	}
	spentSoFar, err := tx.Usage().OfRun(j.r.ID)
	if err != nil {
		return err
	}
	j.spent = spent{
		tokens: spentSoFar.Tokens, nano: spentSoFar.NanoUSD, calls: spentSoFar.Calls,
		priced: spentSoFar.Calls > 0 && spentSoFar.Unpriced == 0,
	}
	write := func(e *session.Entry) error {
		*stored = append(*stored, e)
		return tx.Sessions().Append(j.r.SessionID, e)
	}
	if err := j.reopen(tx, write, now); err != nil {
		return err
	}
	if crashed {
		e := &session.Entry{
			ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Run: j.r.ID,
			Text: "interrupted by a restart; going on",
		}
		if err := write(e); err != nil {
			return err
		}
	}
	if len(taken) > 0 {
		if err := tx.Queue().Set(queue.Done, taken...); err != nil {
			return err
		}
	}
	last, err := tx.Sessions().Last(j.r.SessionID, 8)
	if err != nil {
		return err
	}
	j.answered = len(j.open) == 0 && !j.unknown && endsWithAnswer(last, j)
	return tx.Runs().Put(j.r)
}

// reopen finds the calls that have no result. What only reads is made again;
// what was begun and may have changed something gets a result that says so.
func (j *job) reopen(tx store.Tx, write func(*session.Entry) error, now time.Time) error {
	calls, err := tx.Calls().Open(j.r.ID)
	if err != nil {
		return err
	}
	j.calls = map[string]session.Call{}
	for _, k := range calls {
		j.calls[k.Wire.ID] = k
		switch {
		case k.State != session.Started:
			j.open = append(j.open, k)
		case k.Effect == "reads":
			k.State = session.Planned
			j.open = append(j.open, k)
			err = tx.Calls().Put(k)
		default:
			j.unknown = true
			if err = write(wording.Result(j.r.ID, k, unknownText, now)); err == nil {
				err = tx.Calls().Close(k.ID, session.Outcome{Who: j.r.Principal.ID, Decision: "allowed", Rule: "default", Result: "unknown"})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endsWithAnswer reports whether the newest message is an answer of the run
// that asks for no tools: all that is missing is the run's end.
func endsWithAnswer(last []session.Entry, j *job) bool {
	for i := len(last) - 1; i >= 0; i-- {
		e := last[i]
		if e.Kind != session.KindMessage {
			continue
		}
		m := e.Message
		if m.Role != llm.RoleAssistant || e.Run != j.r.ID || len(m.Calls()) > 0 || e.Partial {
			return false
		}
		j.r.Text = m.PlainText()
		return true
	}
	return false
}

// hopeless returns why a run that was interrupted is closed instead of
// resumed; "" when it is to be resumed.
func hopeless(r run.Run, now time.Time) string {
	switch {
	case r.Attempts >= maxResumes:
		return fmt.Sprintf("interrupted %d times while this was being answered; it was given up", r.Attempts)
	case now.Sub(r.Started) > resumeWithin:
		return "interrupted by a restart too long ago to go on by itself; send the message again if it still matters"
	}
	return ""
}

// giveUp closes an interrupted run with a notice.
func (c *Conductor) giveUp(ctx context.Context, r run.Run, why string) error {
	j, err := c.again(ctx, r, nil, true)
	if err != nil {
		return err
	}
	j.r.State, j.r.Error = run.Failed, why
	j.r.Ended = time.Now()
	c.publish(j, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
	return c.close(ctx, j)
}

// isFenced reports whether another owner has the session now.
func isFenced(err error) bool { return errors.Is(err, chela.ErrFenced) }
