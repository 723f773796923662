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
	row := usage.Row{
		Run: e.run.ID, Session: e.run.Session, Agent: e.run.Agent, Provider: m.Provider, Model: m.ID,
		Time: now, Tokens: u, Priced: m.Price != nil,
	}
	if row.Priced {
		row.NanoUSD = m.Price.Cost(u)
	}
	s := &e.spent
	s.priced = row.Priced && (s.calls == 0 || s.priced)
	s.tokens = s.tokens.Add(u)
	s.nanoUSD += row.NanoUSD
	s.calls++
	return row
}

// countUsage stores the row of a model call and returns the session with the
// call counted.
func countUsage(tx store.Tx, e *Execution, row usage.Row) (session.Meta, error) {
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
	return meta, tx.Usage().Add(row)
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
	row := e.usage(answered, ev.Usage, time.Now())
	return r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		meta, err := countUsage(tx, e, row)
		if err != nil {
			return err
		}
		return tx.Sessions().Put(meta)
	})
}
