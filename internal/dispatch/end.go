package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/agent"
	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/usage"
)

// silentToken is the answer with which a model says nothing.
const silentToken = "NO_REPLY"

// outcome turns the loop's last event into the run's.
func (j *job) outcome(ctx context.Context, end agent.Event) {
	text := ""
	if j.final != nil {
		text = j.final.entry.Message.PlainText()
	}
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	r := &j.r
	r.Ended = time.Now()
	switch cause := context.Cause(ctx); {
	case end.Reason == agent.Suspended:
		r.State, r.Ended = run.Suspended, time.Time{}
		return
	case end.Reason == agent.Aborted && errors.Is(cause, errTimeout):
		r.State, r.Error = run.TimedOut, fmt.Sprintf("the run took longer than %s and was stopped", j.p.Timeout)
	case end.Reason == agent.Aborted && errors.Is(cause, errSuperseded):
		r.State, r.Error = run.Superseded, errSuperseded.Error()
	case end.Reason == agent.Aborted:
		r.State, r.Error = run.Aborted, "stopped"
	case end.Reason == agent.Stopped:
		r.State, r.Error, j.stop = run.Failed, cmp.Or(wording.Error(end.Err), "the run reached one of its limits and was ended"), chela.StopLimit
	case end.Reason == agent.Failed && text == "" && j.failed != "" && llm.ClassOf(end.Err) == "":
		r.State, r.Text = run.OK, "⚠️ "+j.failed // the model had nothing to say about a tool that failed
	case end.Reason == agent.Failed:
		r.State, r.Error = run.Failed, wording.Failure(end.Err)
	default:
		r.State = run.OK
	}
	if strings.EqualFold(strings.TrimSpace(text), silentToken) {
		r.Silent = true
		return
	}
	if text != "" {
		r.Text = text
	}
	if r.State == run.OK && r.Text != "" {
		if mode := cmp.Or(j.meta.Usage, j.p.Usage); mode == "tokens" || mode == "full" {
			r.Footer = usage.Footer(mode, j.spent.tokens, j.spent.nano, j.spent.priced)
		}
	}
}

// finish writes the end of the run: the last entry, its outcome, the session's
// counters, and what is owed because of it, in one commit; then it says so. A
// run in which a call waits for a decision does not end.
func (c *Conductor) finish(ctx context.Context, j *job, end agent.Event) error {
	j.outcome(ctx, end)
	if j.r.State == run.Suspended {
		return c.suspend(ctx, j)
	}
	return c.close(ctx, j)
}

// close writes the end of a run whose outcome is known.
func (c *Conductor) close(ctx context.Context, j *job) error {
	var owed []func(store.Tx) error
	for _, f := range c.o.Ended {
		if g := f(j.r); g != nil {
			owed = append(owed, g)
		}
	}
	var (
		meta      session.Meta
		entries   []*session.Entry
		withdrawn []approval.Request
	)
	c.o.Step("run.end")
	err := store.Held(context.WithoutCancel(ctx), c.o.Store, j.lease, store.Synced, func(tx store.Tx) error {
		var err error
		entries = nil
		meta, err = c.finishTx(tx, j, &entries)
		if err != nil {
			return err
		}
		if j.called {
			if withdrawn, err = c.leaveCalls(tx, j); err != nil {
				return err
			}
		}
		for _, f := range owed {
			if err := f(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.o.Step("run.ended")
	last := j.final
	j.final = nil
	j.ended()
	c.stored(j, meta, entries...)
	if last != nil {
		c.told(j, last)
	}
	c.publishWithdrawn(withdrawn)
	c.publishEnd(j)
	return nil
}

func (c *Conductor) finishTx(tx store.Tx, j *job, entries *[]*session.Entry) (session.Meta, error) {
	var meta session.Meta
	var err error
	if h := j.final; h != nil && (len(h.entry.Message.Parts) > 0 || h.entry.Usage.Total() > 0) {
		if meta, err = c.writeAssistant(tx, j, h); err != nil {
			return meta, err
		}
		*entries = append(*entries, h.entries()...)
	} else if meta, err = tx.Sessions().Get(j.r.Session); err != nil {
		return meta, err
	}
	if j.r.Error != "" {
		e := &session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: j.r.Ended, Run: j.r.ID, Text: j.r.Error}
		if err := tx.Sessions().Append(j.r.SessionID, e); err != nil {
			return meta, err
		}
		*entries = append(*entries, e)
	}
	if err := tx.Queue().Finish(j.r.ID); err != nil {
		return meta, err
	}
	waiting, err := tx.Queue().Waiting(j.r.Session)
	if err != nil {
		return meta, err
	}
	j.idle = len(waiting) == 0
	meta.Updated, meta.Answered = j.r.Ended, j.r.Ended
	meta.Aborted = j.r.State == run.Aborted
	if err := tx.Sessions().Put(meta); err != nil {
		return meta, err
	}
	return meta, tx.Runs().Put(j.r)
}

// leaveCalls closes calls that a stop left open, and what they asked: nobody
// goes on with them.
func (c *Conductor) leaveCalls(tx store.Tx, j *job) ([]approval.Request, error) {
	calls, err := tx.Calls().Open(j.r.ID)
	if err != nil {
		return nil, err
	}
	for _, k := range calls {
		if err := j.closed(tx, k.ID); err != nil {
			return nil, err
		}
	}
	return withdraw(tx, j.r, j.r.Ended)
}

// suspend records that a call of the run waits for a decision.
func (c *Conductor) suspend(ctx context.Context, j *job) error {
	c.o.Step("run.suspend")
	err := store.Held(context.WithoutCancel(ctx), c.o.Store, j.lease, store.Ordered, func(tx store.Tx) error {
		return tx.Runs().Put(j.r)
	})
	if err != nil {
		return err
	}
	j.ended()
	c.publish(j, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseSuspended})
	if errors.Is(context.Cause(ctx), errStopped) { // it was stopped while this was written
		_, _, err = c.abortRows(context.WithoutCancel(ctx), j.r.Session, j.r.ID)
	}
	return err
}

// ended is told before observers are: who asks then finds nothing in progress.
func (j *job) ended() {
	if j.over != nil {
		j.over()
	}
}

func (c *Conductor) publishEnd(j *job) {
	phase := chela.PhaseEnd
	if j.r.State == run.Failed || j.r.State == run.TimedOut {
		phase = chela.PhaseError
	}
	c.publish(j, chela.Event{Stream: chela.StreamLifecycle, Phase: phase, Text: j.r.Error, End: &chela.EndEvent{
		Outcome: string(j.r.State), Text: j.r.Text, Footer: j.r.Footer, Error: j.r.Error, Silent: j.r.Silent,
		Started: j.r.Started, Ended: j.r.Ended, Model: j.r.Model, Stop: j.stop,
		Input: j.spent.tokens.Prompt(), Output: j.spent.tokens.Output,
		NanoUSD: j.spent.nano, HasPrice: j.spent.priced,
	}})
}
