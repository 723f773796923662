package runner

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/budget"
)

// spent is what a run has used so far. It counts against the run's budget, also
// when the run is resumed.
type spent struct {
	tokens  llm.Usage
	nanoUSD int64
	calls   int64
	priced  bool // every call so far had a price
}

// load sets s to what the rows of the run say.
func (s *spent) load(tx store.Tx, id chela.RunID) error {
	sum, err := tx.Usage().OfRun(id)
	*s = spent{tokens: sum.Tokens, nanoUSD: sum.NanoUSD, calls: sum.Calls, priced: sum.Calls > 0 && sum.Unpriced == 0}
	return err
}

// usage makes the row of a model call, and adds it to what the run spent.
func (e *Execution) usage(m llm.Model, u llm.Usage, now time.Time) usage.Row {
	row := usage.RowOf(m, u, now)
	row.Run, row.Session, row.Agent = e.run.ID, e.run.Session, e.run.Agent
	s := &e.spent
	s.priced = row.Priced && (s.calls == 0 || s.priced)
	s.tokens = s.tokens.Add(u)
	s.nanoUSD += row.NanoUSD
	s.calls++
	return row
}

// countUsage stores the row of a model call, for which money may be reserved. It returns
// the session with the call counted, and events to publish after the commit.
func (r *Runner) countUsage(tx store.Tx, e *Execution, res *budget.Reservation,
	row usage.Row) (session.Meta, []chela.Event, error) {
	meta, err := countInSession(tx, e, row)
	if err != nil {
		return meta, nil, err
	}
	events, err := r.o.Budgets.Settle(tx, res, row)
	return meta, events, err
}

// countInSession returns the session of a run with a model call counted.
func countInSession(tx store.Tx, e *Execution, row usage.Row) (session.Meta, error) {
	meta, err := tx.Sessions().Get(e.run.Session)
	if err != nil {
		return meta, err
	}
	if meta.ID == e.run.SessionID { // a reset meanwhile began new counters
		meta.Priced = row.Priced && (meta.Calls == 0 || meta.Priced)
		meta.Tokens = meta.Tokens.Add(row.Tokens)
		meta.NanoUSD += row.NanoUSD
		meta.Calls++
	}
	meta.Learned.Last = row.Time
	return meta, nil
}

// countWasted stores the usage of a model call that gave no answer.
func (r *Runner) countWasted(ctx context.Context, e *Execution, ev agent.Event) error {
	if ev.Usage.Total() == 0 {
		return nil
	}
	answered := e.profile.Model
	if ev.By != nil {
		answered = *ev.By
	}
	res := e.reserved
	e.reserved = nil
	return r.storeUsage(ctx, e, res, e.usage(answered, ev.Usage, time.Now()))
}

// storeUsage stores the usage of a model call in a commit.
func (r *Runner) storeUsage(ctx context.Context, e *Execution, res *budget.Reservation, row usage.Row) error {
	var events []chela.Event
	var meta session.Meta
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		var err error
		if meta, events, err = r.countUsage(tx, e, res, row); err != nil {
			return err
		}
		return tx.Sessions().Put(meta)
	})
	if err != nil {
		return err
	}
	if meta.ID == e.meta.ID {
		e.meta = meta
	}
	r.o.Budgets.Publish(events)
	return nil
}
