package usage

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// budget reports what model calls may cost.
func (m methods) budget(ctx context.Context, _ rpc.Peer, in wire.BudgetGet) (wire.BudgetStatus, error) {
	id := cmp.Or(chela.AgentID(in.AgentID), m.o.Default)
	if !m.o.Agent(id) {
		return wire.BudgetStatus{}, rpc.UnknownAgent(id)
	}
	l, now := m.o.Limits(id), time.Now()
	at := l.In(now)
	out := wire.BudgetStatus{
		AgentID:  string(id),
		Day:      at.Format(time.DateOnly),
		ResetsAt: wire.At(usage.NextDay(at)),
		TimeZone: usage.ZoneName(at),
		Budgets:  []wire.Budget{},
		Task:     wireview.Dollars(l.Task),
		Run:      wireview.Dollars(l.Run),
	}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		today, err := usage.ReadToday(r, at)
		if err != nil {
			return err
		}
		states, err := l.States(r.Usage(), id, today, now)
		for _, s := range states {
			of := wire.BudgetOfAll
			if s.Kind() == usage.ScopeAgent {
				of = wire.BudgetOfAgent
			}
			out.Budgets = append(out.Budgets, wire.Budget{
				Scope: of, Limit: wireview.Dollars(s.Limit), Configured: wireview.Dollars(s.Configured),
				Spent: wireview.Dollars(s.Spent), Held: wireview.Dollars(s.Held), Left: wireview.Dollars(s.Left()),
			})
		}
		return err
	})
	return out, err
}

// setBudget sets a budget until the day ends.
func (m methods) setBudget(ctx context.Context, p rpc.Peer, in wire.BudgetSet) (wire.BudgetStatus, error) {
	id := chela.AgentID(in.AgentID)
	switch {
	case id != "" && !m.o.Agent(id):
		return wire.BudgetStatus{}, rpc.UnknownAgent(id)
	case in.USD < 0, in.USD*1e9 > usage.MaxLimit:
		return wire.BudgetStatus{}, rpc.Invalid("at /usd: must be >= 0 and <= %d", usage.MaxLimit/1_000_000_000)
	}
	l := m.o.Limits(cmp.Or(id, m.o.Default))
	err := m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		return l.SetLimit(tx, id, int64(math.Round(in.USD*1e9)), time.Now())
	})
	if err != nil {
		return wire.BudgetStatus{}, err
	}
	return m.budget(ctx, p, wire.BudgetGet{AgentID: in.AgentID})
}

// receipt returns what a task has used.
func (m methods) receipt(ctx context.Context, _ rpc.Peer, in wire.ReceiptGet) (wire.UsageReceipt, error) {
	out := wire.UsageReceipt{Models: []wire.ModelUsage{}, Runs: []wire.RunUsage{}}
	if in.RunID == "" {
		return out, rpc.Invalid("must have required property 'runId'")
	}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		row, err := r.Runs().Get(chela.RunID(in.RunID))
		if errors.Is(err, chela.ErrNotFound) {
			return chela.Errorf(chela.CodeNotFound, "unknown run %q", in.RunID)
		}
		if err != nil {
			return err
		}
		sums, err := r.Usage().OfTree(row.Tree())
		if err != nil {
			return err
		}
		of := usage.NewReceipt(row.Tree(), sums)
		out.RunID, out.Totals = string(of.Root), total(sums)
		for _, s := range of.Models {
			u := wire.ModelUsage{Provider: s.Provider, Model: s.Model}
			add(&u.UsageSum, s)
			out.Models = append(out.Models, u)
		}
		for _, s := range of.Runs {
			meta, err := session.Lookup(r.Sessions(), s.Session)
			if err != nil {
				return err
			}
			u := wire.RunUsage{RunID: string(s.Run), SessionKey: string(s.Session), Label: meta.Label}
			add(&u.UsageSum, s)
			out.Runs = append(out.Runs, u)
		}
		return nil
	})
	return out, err
}
