package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// End returns the function that ends a run in a transaction. row is the run in
// its final state. End is the only way to a final state: it calls every Ended
// observer. It does no I/O, so that callers with a transaction of their own may
// call both parts in it.
func (r *Runner) End(row run.Run) func(store.Tx) error {
	var observed []func(store.Tx) error
	for _, f := range r.o.Ended {
		if g := f(row); g != nil {
			observed = append(observed, g)
		}
	}
	return func(tx store.Tx) error {
		if err := tx.Queue().Finish(row.ID); err != nil {
			return err
		}
		if err := tx.Runs().Put(row); err != nil {
			return err
		}
		for _, f := range observed {
			if err := f(tx); err != nil {
				return err
			}
		}
		return nil
	}
}

// finish ends a run after the loop's last event, or suspends it when a call waits
// for a decision.
func (r *Runner) finish(ctx context.Context, e *Execution, end agent.Event) error {
	r.setOutcome(ctx, e, end)
	if e.run.State == run.Suspended {
		return r.suspend(ctx, e)
	}
	return r.close(ctx, e)
}

// setOutcome sets the state, the answer and the error of a run from the loop's
// last event.
func (r *Runner) setOutcome(ctx context.Context, e *Execution, end agent.Event) {
	text := ""
	switch {
	case e.pending != nil:
		text = e.pending.entry.Message.PlainText()
	case e.attempt.answered:
		text = e.run.Text
	}
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	row := &e.run
	row.Ended, e.cause = time.Now(), end.Err
	switch cause := context.Cause(ctx); {
	case end.Reason == agent.Suspended:
		row.State, row.Waits, row.Ended = run.Suspended, run.WaitsApproval, time.Time{}
		return
	case end.Reason == agent.Yielded:
		row.State, row.Waits, row.Ended = run.Suspended, run.WaitsChildren, time.Time{}
		return
	case end.Reason == agent.Aborted && errors.Is(cause, errTimeout):
		row.State, row.Error = run.TimedOut, fmt.Sprintf("the run took longer than %s and was stopped", e.timeout())
	case end.Reason == agent.Aborted && errors.Is(cause, ErrSuperseded):
		row.State, row.Error = run.Superseded, ErrSuperseded.Error()
	case end.Reason == agent.Aborted:
		row.State, row.Error = run.Aborted, "stopped"
	case end.Reason == agent.Stopped:
		row.State, row.Failure, row.Error = run.Failed, run.Limit,
			cmp.Or(errorText(end.Err), "the run reached one of its limits and was ended")
	case end.Reason == agent.Failed && overBudget(end.Err):
		row.State, row.Failure, row.Error = run.Failed, run.Limit, errorText(end.Err)
		row.Silent = e.isSilent(end.Err)
	case end.Reason == agent.Failed && text == "" && e.attempt.failed != "" && llm.ClassOf(end.Err) == "":
		row.State, row.Text = run.OK, "⚠️ The model gave no answer after "+e.attempt.failed
		e.unsaid, e.attempt.stop = row.Text, llm.StopUnable
	case end.Reason == agent.Failed:
		row.State, row.Failure, row.Error = run.Failed, failureOf(end.Err), r.failureText(e, end.Err)
		row.Silent = e.isSilent(end.Err)
	default:
		row.State = run.OK
	}
	row.Error = secret.RedactAddresses(r.o.Executor.Redact(row.Error))
	if e.run.Silent { // a hook answered with silence
		return
	}
	if e.profile.Answer.Silent(text) {
		row.Silent, row.Text = true, ""
		return
	}
	if text != "" {
		row.Text = run.Strip(text)
		if note := e.attempt.stop.Note(); note != "" && row.State == run.OK {
			row.Text = strings.TrimSpace(row.Text + "\n\n⚠️ " + note)
		}
	}
	row.Reasoning = r.o.Executor.Redact(e.reasoning.all)
	if row.State == run.OK && row.Text != "" {
		if mode := cmp.Or(e.meta.Usage, e.profile.Usage); mode == "tokens" || mode == "full" {
			row.Footer = usage.Footer(mode, e.spent.tokens, e.spent.nanoUSD, e.spent.priced)
		}
	}
}

// failureOf returns what an error of the loop means for a run.
func failureOf(err error) run.Failure {
	switch {
	case errors.Is(err, agent.ErrEmpty):
		return run.Empty
	case llm.Transient(err):
		return run.Transient
	}
	return ""
}

// close writes the end of a run whose outcome is set, and publishes it.
func (r *Runner) close(ctx context.Context, e *Execution) error {
	if r.o.Ending != nil {
		r.o.Ending(ctx, &e.run)
	}
	end := r.End(e.run)
	var (
		meta      session.Meta
		entries   []*session.Entry
		withdrawn []approval.Request
		waits     bool // for children or commands; then the run is suspended and not ended
	)
	if e.run.Kind == run.Turn && e.profile.Compaction.Automatic() {
		var err error
		if e.compactions.bytes, err = r.activeBytes(context.WithoutCancel(ctx), e); err != nil {
			return err
		}
	}
	r.o.Step("run.end")
	err := r.update(ctx, e, store.Synced, func(tx store.Tx) error {
		var err error
		if meta, entries, err = r.writeLast(tx, e); err != nil {
			return err
		}
		if waits, err = r.suspendOpen(tx, e); err != nil || waits {
			return errors.Join(err, tx.Leases().Release(e.lease))
		}
		if e.calls.open {
			var results []*session.Entry
			if results, withdrawn, err = closeCalls(tx, e); err != nil {
				return err
			}
			entries = append(entries, results...)
		}
		if text := cmp.Or(e.run.Error, e.unsaid); text != "" &&
			!(e.run.Silent && e.run.Origin.Kind == chela.OriginHeartbeat) {
			failure, err := writeFailure(tx, e.run, text, e.failureReason(), e.cause)
			if err != nil {
				return err
			}
			entries = append(entries, failure...)
		}
		return errors.Join(e.queueCompaction(tx, meta), end(tx), tx.Leases().Release(e.lease))
	})
	if err != nil {
		return err
	}
	r.o.Step("run.ended")
	last := e.pending
	e.pending = nil
	e.ended()
	r.publishStored(e, meta, entries...)
	if last != nil {
		r.publishNotice(e, last)
		r.o.Budgets.Publish(last.events)
	}
	if waits {
		r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseSuspended})
		return nil
	}
	r.publishWithdrawn(withdrawn)
	r.publishEnd(e)
	r.notifyEnd(e)
	return nil
}

// suspendOpen suspends a run that owes its result to another one and has children or
// background commands that have not ended. It reports whether it did.
func (r *Runner) suspendOpen(tx store.Tx, e *Execution) (bool, error) {
	origin := e.run.Origin.Kind
	owes := e.meta.IsChild() || origin == chela.OriginCron ||
		origin == chela.OriginWebhook && e.run.Overrides.Deliver.Mode != run.DeliverReply
	if !owes || e.run.State != run.OK {
		return false, nil
	}
	open, err := hasCommands(tx, e.run)
	if err == nil && !open {
		open, err = r.o.Children.Open(tx, e.run)
	}
	if err != nil || !open {
		return false, err
	}
	row := e.run
	row.State, row.Waits, row.Ended, row.Text, row.Footer, row.Silent = run.Suspended, run.WaitsChildren,
		time.Time{}, "", "", false
	return true, tx.Runs().Put(row)
}

// hasCommands reports whether a background command of the run has not ended, or has
// ended and its event waits for the run.
func hasCommands(tx store.Tx, row run.Run) (bool, error) {
	deferred, err := tx.Queue().Deferred()
	if err != nil {
		return false, err
	}
	waiting, err := tx.Queue().Waiting(row.Session)
	return slices.ContainsFunc(append(deferred, waiting...), func(it queue.Item) bool {
		return it.Kind == queue.Event && !it.Next && it.Session == row.Session && it.Parent == row.ID
	}), err
}

// writeLast writes the last message of a run and the session's counters.
func (r *Runner) writeLast(tx store.Tx, e *Execution) (meta session.Meta, entries []*session.Entry, err error) {
	if p := e.pending; p != nil && (len(p.entry.Message.Parts) > 0 || p.entry.Usage.Total() > 0) {
		if meta, err = r.writeMessage(tx, e, p); err != nil {
			return meta, nil, err
		}
		entries = p.entries()
	} else if meta, err = tx.Sessions().Get(e.run.Session); err != nil {
		return meta, nil, err
	}
	updated := e.meta.Updated
	if err := e.checkWaiting(tx); err != nil {
		return meta, nil, err
	}
	if e.run.Silent && e.run.Origin.Kind == chela.OriginHeartbeat {
		meta.Updated = updated
		if acted, err := hasActed(tx, e.run.ID); err != nil || acted { // the model would do it again if it did not see it
			return meta, entries, errors.Join(err, tx.Sessions().Put(meta))
		}
		// as if it had not been asked
		void := &session.Entry{
			ID:    uuid.NewString(),
			Kind:  session.KindVoid,
			Time:  e.run.Ended,
			Run:   e.run.ID,
			Voids: session.Ref{Run: e.run.ID},
		}
		return meta, append(entries, void), errors.Join(tx.Sessions().Append(e.run.SessionID, void), tx.Sessions().Put(meta))
	}
	if e.run.Kind == run.Compact && e.run.Silent { // nobody sees it
		meta.Updated = updated
		return meta, entries, tx.Sessions().Put(meta)
	}
	meta.Updated, meta.Answered = e.run.Ended, e.run.Ended
	meta.Aborted = e.run.State == run.Aborted && meta.ID == e.run.SessionID // a run of the present transcript
	if e.run.State == run.Superseded && e.run.Kind == run.Turn {
		meta.Interrupted = e.run.ID
	}
	return meta, entries, tx.Sessions().Put(meta)
}

// hasActed reports whether a run has begun a call that can change something.
func hasActed(tx store.Tx, id chela.RunID) (bool, error) {
	calls, err := callsOf(tx.Calls(), id)
	return slices.ContainsFunc(calls,
		func(c session.Call) bool { return c.Effect != "" && c.Effect != tool.Reads.String() }), err
}

// closeCalls closes the calls that a run left open, with results, and withdraws its
// pending approvals.
func closeCalls(tx store.Tx, e *Execution) (results []*session.Entry, withdrawn []approval.Request, err error) {
	open, err := tx.Calls().Open(e.run.ID)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range open {
		text := "Not run: " + cmp.Or(e.run.Error, "the turn has ended") + "."
		if k.State == session.Started || k.State == session.Planned && k.Effect != "" { // the latter was to be repeated
			text = unknownText
		}
		results = append(results, resultEntry(e.run.ID, k, text, true, e.run.Ended))
		if err := e.calls.close(tx, k.ID); err != nil {
			return nil, nil, err
		}
	}
	if err := tx.Sessions().Append(e.run.SessionID, results...); err != nil {
		return nil, nil, err
	}
	withdrawn, err = Withdraw(tx, e.run, e.run.Ended)
	return results, withdrawn, err
}

// suspend records that the run waits for a decision about one of its calls, or for its
// children.
func (r *Runner) suspend(ctx context.Context, e *Execution) error {
	r.o.Step("run.suspend")
	var row run.Run
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		if err := tx.Runs().Put(e.run); err != nil {
			return err
		}
		if err := r.resumeDone(tx, e.run); err != nil {
			return err
		}
		var err error
		row, err = tx.Runs().Get(e.run.ID)
		return errors.Join(err, tx.Leases().Release(e.lease))
	})
	if err != nil {
		return err
	}
	e.ended()
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseSuspended})
	if row.Stop == "" {
		return nil
	}
	// A stop was requested before the commit above.
	var stopped []run.Run
	var withdrawn []approval.Request
	err = r.o.Store.Update(context.WithoutCancel(ctx), store.Synced, func(tx store.Tx) error {
		var err error
		stopped, withdrawn, err = r.StopSuspended(tx, e.run.Session, e.run.ID)
		return err
	})
	if err == nil {
		r.PublishStopped(stopped, withdrawn)
	}
	return err
}

// resumeDone puts an item that resumes a run which is about to wait for children, if the
// last one has ended since the run asked, without an announcement.
func (r *Runner) resumeDone(tx store.Tx, row run.Run) error {
	if row.Waits != run.WaitsChildren {
		return nil
	}
	open, err := r.o.Children.Open(tx, row)
	if err != nil || open {
		return err
	}
	return store.Enqueue(tx, queue.NewResume("resume:"+uuid.NewString(), row, time.Time{}, time.Now()))
}

// ended reports that the rows of the run say that it ended. This precedes the
// event: observers that ask then find no run in progress.
func (e *Execution) ended() {
	if e.session != nil {
		e.session.Ended()
	}
}

func (r *Runner) publishEnd(e *Execution) {
	phase, stop := chela.PhaseEnd, ""
	if e.attempt.stop.Told() {
		stop = string(e.attempt.stop)
	}
	if e.run.State == run.Failed || e.run.State == run.TimedOut {
		phase = chela.PhaseError
	}
	if e.run.Failure == run.Limit {
		stop = chela.StopLimit
	}
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: phase, Text: e.run.Error, End: &chela.EndEvent{
		Outcome: e.run.State.Outcome(), Text: e.run.Text, Footer: e.run.Footer, Error: e.run.Error, Silent: e.run.Silent,
		Started: e.run.Started, Ended: e.run.Ended, Model: e.run.Model, Stop: stop,
		Input: e.spent.tokens.Prompt(), Output: e.spent.tokens.Output,
		NanoUSD: e.spent.nanoUSD, HasPrice: e.spent.priced,
	}})
}

// StopSuspended stops the suspended runs of a session, or the one with the id. The
// session is woken, because events may have waited for their end.
func (r *Runner) StopSuspended(tx store.Tx, key chela.SessionKey,
	id chela.RunID) (stopped []run.Run, withdrawn []approval.Request, err error) {
	active, err := tx.Runs().Active(key)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	for _, row := range active {
		if row.State != run.Suspended || id != "" && row.ID != id {
			continue
		}
		w, err := r.stop(tx, &row, now)
		if err != nil {
			return nil, nil, err
		}
		stopped, withdrawn = append(stopped, row), append(withdrawn, w...)
	}
	if len(stopped) > 0 {
		tx.Wake(store.Topic{Kind: store.TopicQueue, Session: key})
	}
	return stopped, withdrawn, nil
}

// EndSession stops every run of a session that the transaction deletes. A run in
// progress loses its lease by the deletion and cannot write any more.
func (r *Runner) EndSession(tx store.Tx, key chela.SessionKey) error {
	active, err := tx.Runs().Active(key)
	for i := 0; i < len(active) && err == nil; i++ {
		_, err = r.stop(tx, &active[i], time.Now())
	}
	return err
}

// stop ends a run that no process carries out, with results for its open calls,
// and withdraws its pending approvals.
func (r *Runner) stop(tx store.Tx, row *run.Run, now time.Time) ([]approval.Request, error) {
	if err := errors.Join(endRetries(tx, *row), bringBack(tx, *row, now)); err != nil {
		return nil, err
	}
	open, err := tx.Calls().Open(row.ID)
	if err != nil {
		return nil, err
	}
	for _, k := range open {
		text, outcome := "Not run: the person stopped this.", session.Outcome{}
		if k.State == session.Started { // by a process that did not record its end
			text, outcome = unknownText, unknownOutcome(*row)
		}
		if err := tx.Sessions().Append(row.SessionID, resultEntry(row.ID, k, text, true, now)); err != nil {
			return nil, err
		}
		if err := tx.Calls().Close(k.ID, outcome); err != nil {
			return nil, err
		}
	}
	withdrawn, err := Withdraw(tx, *row, now)
	if err != nil {
		return nil, err
	}
	row.State, row.Error, row.Ended = run.Aborted, "stopped", now
	if _, err := writeFailure(tx, *row, row.Error, "it was stopped", nil); err != nil {
		return nil, err
	}
	return withdrawn, r.End(*row)(tx)
}

// Withdraw closes the pending approvals of a run that was stopped or has ended, and
// returns them.
func Withdraw(tx store.Tx, row run.Run, now time.Time) ([]approval.Request, error) {
	pending, err := tx.Approvals().Pending(row.Session)
	if err != nil {
		return nil, err
	}
	var out []approval.Request
	for _, q := range pending {
		if q.Run != row.ID {
			continue
		}
		q.Decision, q.Decided, q.By = approval.Withdrawn, now, "stop"
		if err := tx.Approvals().Put(q); err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, nil
}
