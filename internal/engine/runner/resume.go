package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	// unknownText is the result of a call that had started and whose end is not known.
	unknownText = "Interrupted while this was running: its outcome is unknown. It was not repeated. " +
		"Check the current state before you decide what to do."
	interruptedNotice = "interrupted by a restart; resuming"
)

// Resume prepares a suspended run to be executed again. taken are the queue items
// that resume it; the model is told of those that are events. The lease is acquired
// again, so that its former holder cannot write any more. ErrChanged is returned
// when the run has ended meanwhile, or ends because a stop was requested, or when its
// profile is stale.
func (r *Runner) Resume(ctx context.Context, row run.Run, taken ...queue.Item) (*Execution, error) {
	meta, err := r.meta(ctx, row.Session)
	if err != nil {
		return nil, err
	}
	p, err := r.resolve(ctx, meta, row)
	if err != nil {
		return nil, err
	}
	return r.resume(ctx, meta, p, row, taken)
}

// ResumeInterrupted is Resume for a run that is marked as running although no
// process carries it out. One that was interrupted several times is suspended first, so that
// others go first, or ended: then the Execution is nil.
func (r *Runner) ResumeInterrupted(ctx context.Context, row run.Run) (*Execution, error) {
	held, err := store.Get(ctx, r.o.Store,
		func(rd store.Reader) (lease.Lease, error) { return rd.Leases().Get(lease.Session(row.Session)) })
	if err != nil {
		return nil, err
	}
	switch {
	case held.Owner == r.o.Owner.ID(): // this process could not write its rows for a while
		return r.Resume(ctx, row)
	case row.Attempts < startsAtOnce || row.Stop != "":
		e, err := r.Retry(ctx, row)
		if err == nil {
			e.phase = chela.PhaseStart
		}
		return e, err
	case row.Attempts >= maxStarts && time.Since(row.Started) >= minTrying:
		return nil, r.giveUp(ctx, row)
	}
	return nil, r.postpone(ctx, row.ID)
}

// Retry is Resume for a run that was interrupted. The start is counted before the profile is
// resolved, so that a run whose profile kills the process is given up as well.
func (r *Runner) Retry(ctx context.Context, row run.Run, taken ...queue.Item) (*Execution, error) {
	if err := r.countAttempt(ctx, row.ID); err != nil {
		return nil, err
	}
	return r.Resume(ctx, row, taken...)
}

// postpone suspends a run that was interrupted several times, until the time of its next
// start. Meanwhile the session is free for others.
func (r *Runner) postpone(ctx context.Context, id chela.RunID) error {
	var row run.Run
	var text string
	r.o.Step("run.postpone")
	err := r.takeLease(ctx, func(tx store.Tx, sync store.Sync) error {
		var err error
		row, err = tx.Runs().Get(id)
		switch {
		case errors.Is(err, chela.ErrNotFound) || err == nil && (row.State != run.Running || row.Stop != ""):
			return ErrChanged
		case err != nil:
			return err
		}
		l, err := r.acquire(tx, sync, row.Session)
		if err != nil {
			return err
		}
		now, pause := time.Now(), retryPause.Delay(row.Attempts-startsAtOnce+1, 0)
		row.State, row.Waits, row.Fence = run.Suspended, run.WaitsRetry, l.Fence
		text = fmt.Sprintf("interrupted %d times; others go first, and this is tried again in %s",
			row.Attempts, humanize.Span(pause))
		err = store.Enqueue(tx, queue.NewResume(fmt.Sprintf("retry:%s:%d", row.ID, l.Fence), row, now.Add(pause), now))
		return errors.Join(err, tx.Runs().Put(row), tx.Leases().Release(l),
			tx.Sessions().Append(row.SessionID, &session.Entry{
				ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Run: id, Text: text,
			}))
	})
	if err != nil {
		return err
	}
	e := &Execution{run: row}
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
	r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: text})
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseSuspended})
	return nil
}

// countAttempt counts a start of an interrupted run, and takes its lease over.
func (r *Runner) countAttempt(ctx context.Context, id chela.RunID) error {
	return r.takeLease(ctx, func(tx store.Tx, sync store.Sync) error {
		row, err := tx.Runs().Get(id)
		switch {
		case errors.Is(err, chela.ErrNotFound) || err == nil && row.State.Final():
			return ErrChanged
		case err != nil:
			return err
		}
		l, err := r.acquire(tx, sync, row.Session)
		if err != nil {
			return err
		}
		if err := endRetries(tx, row); err != nil {
			return err
		}
		row.State, row.Waits, row.Attempts, row.Fence = run.Running, "", row.Attempts+1, l.Fence
		if err := tx.Runs().Put(row); err != nil || row.Stop != "" {
			return err
		}
		return tx.Sessions().Append(row.SessionID, &session.Entry{
			ID: uuid.NewString(), Kind: session.KindNotice, Time: time.Now(), Run: id, Text: interruptedNotice,
		})
	})
}

// endRetries removes the items that would start a run again.
func endRetries(tx store.Tx, row run.Run) error {
	waiting, err := tx.Queue().Waiting(row.Session)
	if err != nil {
		return err
	}
	return tx.Queue().Set(queue.Done, slices.DeleteFunc(waiting, func(it queue.Item) bool {
		return !it.Retries() || it.Parent != row.ID
	})...)
}

// setAside ends that the messages of a run that waits for another try are sent to a model,
// because another run begins in its session.
func setAside(tx store.Tx, row run.Run, now time.Time) ([]*session.Entry, error) {
	entries, err := tx.Sessions().Entries(row.SessionID, 0, 0)
	if err != nil {
		return nil, err
	}
	out := session.SetAside(entries, row.ID, now)
	return out, tx.Sessions().Append(row.SessionID, out...)
}

// setOthersAside is setAside for the other runs of a session that wait for another try.
func setOthersAside(tx store.Tx, row run.Run, now time.Time) error {
	active, err := tx.Runs().Active(row.Session)
	for i := 0; i < len(active) && err == nil; i++ {
		if other := active[i]; other.ID != row.ID && other.Waits == run.WaitsRetry && other.SessionID == row.SessionID {
			_, err = setAside(tx, other, now)
		}
	}
	return err
}

// bringBack is the opposite of setAside, when the run goes on or ends.
func bringBack(tx store.Tx, row run.Run, now time.Time) error {
	if row.Attempts < startsAtOnce {
		return nil // it never waited
	}
	entries, err := tx.Sessions().Entries(row.SessionID, 0, 0)
	if err != nil {
		return err
	}
	return tx.Sessions().Append(row.SessionID, session.BringBack(entries, row.ID, now)...)
}

// giveUp ends an interrupted run without resolving its profile.
func (r *Runner) giveUp(ctx context.Context, row run.Run) error {
	meta, err := r.meta(ctx, row.Session)
	if err != nil {
		return err
	}
	e, err := r.resume(ctx, meta, &Profile{For: SettingsOf(meta), Gen: r.o.Profiles.Gen()}, row, nil)
	if err != nil {
		return err
	}
	e.run.State, e.run.Failure, e.run.Ended = run.Failed, run.Interrupted, time.Now()
	e.run.Error = fmt.Sprintf("interrupted %d times while this was being answered; it was given up, /retry sends it again",
		row.Attempts)
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
	return r.close(ctx, e)
}

// resume makes the Execution of a run from its rows.
func (r *Runner) resume(ctx context.Context, meta session.Meta, p *Profile, row run.Run,
	taken []queue.Item) (*Execution, error) {
	var e *Execution
	var stored []*session.Entry
	var stopped []run.Run
	var withdrawn []approval.Request
	r.o.Step("run.resume")
	err := r.takeLease(ctx, func(tx store.Tx, sync store.Sync) error {
		row, err := tx.Runs().Get(row.ID)
		switch {
		case errors.Is(err, chela.ErrNotFound) || err == nil && row.State.Final():
			return ErrChanged
		case err != nil:
			return err
		}
		who, err := pairing.Current(tx.Devices(), row.Principal) // the grant may have changed since the run began
		if err != nil {
			return err
		}
		if who.ID == row.Principal.ID {
			row.Principal = who
		} else {
			row.Stop = "revoked"
		}
		e = &Execution{
			alive:   r.o.Owner.Track(),
			run:     row,
			profile: p,
			meta:    meta,
			phase:   chela.PhaseResume,
			resumed: true,
			calls:   calls{open: true},
		}
		if e.lease, err = r.acquire(tx, sync, row.Session); err != nil {
			return err
		}
		switch {
		case row.Stop != "" && sync != store.Synced:
			return errNeedsSync
		case row.Stop != "":
			l := e.lease
			e = nil
			withdrawn, err = r.stop(tx, &row, time.Now())
			stopped = []run.Run{row}
			return errors.Join(err, tx.Leases().Release(l))
		}
		if e.meta, err = session.Lookup(tx.Sessions(), row.Session); err != nil {
			return err
		}
		if err := r.checkProfile(p, e.meta); err != nil {
			return err
		}
		if err := errors.Join(endRetries(tx, row), setOthersAside(tx, row, time.Now()),
			bringBack(tx, row, time.Now())); err != nil {
			return err
		}
		if stored, err = e.load(tx, taken, time.Now()); err != nil {
			return err
		}
		if e.task, err = isTask(tx, row.ID); err != nil {
			return err
		}
		open, err := readOpenWork(e.meta, tx.Children(), tx.Runs())
		e.open = &open
		return err
	})
	if err != nil {
		return nil, err
	}
	if e == nil {
		r.PublishStopped(stopped, withdrawn)
		return nil, ErrChanged
	}
	r.cache.Append(e.run.SessionID, stored...)
	r.publishEntries(e, stored...)
	return e, nil
}

func (r *Runner) meta(ctx context.Context, key chela.SessionKey) (session.Meta, error) {
	return store.Get(ctx, r.o.Store,
		func(rd store.Reader) (session.Meta, error) { return session.Lookup(rd.Sessions(), key) })
}

// load restores the state of a run from its rows, and marks it as running. It
// returns the entries that it wrote.
func (e *Execution) load(tx store.Tx, taken []queue.Item, now time.Time) ([]*session.Entry, error) {
	e.run.State, e.run.Waits, e.run.Fence = run.Running, "", e.lease.Fence
	if err := e.spent.load(tx, e.run.ID); err != nil {
		return nil, err
	}
	stored, err := e.loadCalls(tx, now)
	if err != nil {
		return nil, err
	}
	events := slices.DeleteFunc(slices.Clone(taken), func(it queue.Item) bool { return it.Kind != queue.Event })
	if len(events) == 0 {
		err = tx.Queue().Set(queue.Done, taken...)
	} else {
		err = take(tx, queue.Taken, takenBy(e.run.ID, events))
		stored = append(stored, inputEntries(events, "", e.run.ID, now)...)
	}
	if err != nil {
		return nil, err
	}
	if len(stored) > 0 {
		if err := tx.Sessions().Append(e.run.SessionID, stored...); err != nil {
			return nil, err
		}
	}
	if err := e.loadAnswer(tx); err != nil {
		return nil, err
	}
	return stored, tx.Runs().Put(e.run)
}

// loadCalls finds the calls that have no result. A call that only reads is
// repeated. A call that had started and may have had an effect is closed with the
// returned result.
func (e *Execution) loadCalls(tx store.Tx, now time.Time) (results []*session.Entry, err error) {
	open, err := tx.Calls().Open(e.run.ID)
	if err != nil {
		return nil, err
	}
	e.calls.byWire = map[string]session.Call{}
	for _, k := range open {
		e.calls.byWire[k.Wire.ID] = k
		switch {
		case k.State != session.Started:
			e.attempt.open = append(e.attempt.open, k)
		case k.Effect == tool.Reads.String():
			k.State = session.Planned
			e.attempt.open = append(e.attempt.open, k)
			err = tx.Calls().Put(k)
		default:
			e.attempt.unknown = true
			results = append(results, resultEntry(e.run.ID, k, unknownText, true, now))
			err = tx.Calls().Close(k.ID, unknownOutcome(e.run))
		}
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// unknownOutcome is the outcome of a call that had started before a crash.
func unknownOutcome(row run.Run) session.Outcome {
	return session.Outcome{Who: row.Principal.ID, Decision: session.DecisionAllowed, Rule: "default",
		Result: session.ResultUnknown}
}

// loadAnswer notes whether the newest message of the run is an answer that asks for no
// tools: then only the end of the run is missing. Notices, commands and messages of
// others may follow it.
func (e *Execution) loadAnswer(tx store.Tx) error {
	for n := 8; ; n *= 8 {
		last, err := tx.Sessions().Last(e.run.SessionID, n)
		if err != nil {
			return err
		}
		for _, entry := range slices.Backward(last) {
			if entry.Kind != session.KindMessage || entry.Run != e.run.ID {
				continue
			}
			if m := entry.Message; m.Role == llm.RoleAssistant && len(m.Calls()) == 0 {
				e.attempt.answered, e.attempt.stop, e.run.Text = true, m.Stop, m.PlainText()
			}
			return nil
		}
		if len(last) < n {
			return nil
		}
	}
}
