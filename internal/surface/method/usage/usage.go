// Package usage implements the methods that report usage and cost, and those about
// budgets.
package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods.
type Options struct {
	Store   store.Store
	Default chela.AgentID
	Agent   func(chela.AgentID) bool         // reports whether the agent exists
	Limits  func(chela.AgentID) usage.Limits // of an agent; nil: there are none
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	if o.Limits == nil {
		o.Limits = func(chela.AgentID) usage.Limits { return usage.Limits{} }
	}
	m := methods{o}
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodUsageCost, op, chela.ScopeRead, m.cost),
		rpc.New(wire.MethodUsageReceipt, op, chela.ScopeRead, m.receipt),
		rpc.New(wire.MethodBudgetStatus, op, chela.ScopeRead, m.budget),
		rpc.New(wire.MethodBudgetSet, op, chela.ScopeAdmin, m.setBudget),
		rpc.New(wire.MethodUsageStatus, op, chela.ScopeRead, m.status),
		rpc.New(wire.MethodSessionsUsage, op, chela.ScopeRead, m.sessions),
		rpc.New(wire.MethodUsageTimeseries, op, chela.ScopeRead, m.timeseries),
		rpc.New(wire.MethodUsageLogs, op, chela.ScopeRead, m.logs),
	}
}

type methods struct{ o Options }

// status reports quotas. No provider reports one in this version.
func (m methods) status(context.Context, rpc.Peer, wire.None) (wire.UsageStatus, error) {
	return wire.UsageStatus{UpdatedAt: wire.At(time.Now()), Providers: []wire.ProviderQuota{}}, nil
}

func (m methods) cost(ctx context.Context, _ rpc.Peer, in wire.UsageCost) (wire.UsageReport, error) {
	now := time.Now()
	if in.Days < 0 {
		return wire.UsageReport{}, rpc.Invalid("at /days: must be >= 0")
	}
	s, err := spanOf(in.Start, in.End, in.Mode, in.Offset, cmp.Or(in.Days, defaultDays), now)
	if err != nil {
		return wire.UsageReport{}, rpc.Invalid("%v", err)
	}
	q := usage.Query{Since: s.first, Until: s.until(), Offset: s.offset}
	if in.SessionKey != "" {
		if q.Session, err = rpc.SessionKey(in.SessionKey, "", m.o.Default); err != nil {
			return wire.UsageReport{}, err
		}
	}
	sums, err := store.Get(ctx, m.o.Store, func(r store.Reader) ([]usage.Sum, error) { return r.Usage().Sums(q) })
	return report(sums, s, now), err
}

// report returns the usage of each day, including days without usage.
func report(sums []usage.Sum, s span, now time.Time) wire.UsageReport {
	out := wire.UsageReport{UpdatedAt: wire.At(now), Days: s.days, Daily: []wire.UsageDay{}, Models: []wire.ModelUsage{}}
	at := map[string]int{}
	for i := range s.days {
		at[s.day(i)] = i
		out.Daily = append(out.Daily, wire.UsageDay{Date: s.day(i)})
	}
	for _, x := range sums {
		if i, ok := at[x.Day]; ok {
			add(&out.Daily[i].UsageSum, x)
		}
	}
	out.Totals = total(sums)
	for _, g := range groups(sums,
		func(x usage.Sum) wire.UsageGroup { return wire.UsageGroup{Provider: x.Provider, Model: x.Model} }) {
		out.Models = append(out.Models, wire.ModelUsage{Provider: g.Provider, Model: g.Model, UsageSum: g.Totals})
	}
	return out
}

// total returns the total of sums, with the models whose price is unknown.
func total(sums []usage.Sum) wire.UsageSum {
	var out wire.UsageSum
	for _, s := range sums {
		add(&out, s)
		if s.Unpriced > 0 {
			if out.Unpriced == nil {
				out.Unpriced = map[string]int64{}
			}
			out.Unpriced[s.Provider+"/"+s.Model] += s.Unpriced
		}
	}
	return out
}

func add(to *wire.UsageSum, s usage.Sum) {
	to.Calls += s.Calls
	to.Input += s.Tokens.Input
	to.Output += s.Tokens.Output
	to.CacheRead += s.Tokens.CacheRead
	to.CacheWrite += s.Tokens.CacheWrite
	to.Total += s.Tokens.Total()
	to.Cost += wireview.Dollars(s.NanoUSD)
	to.Missing += s.Unpriced
}

// groups returns the totals by the provider and model that of returns, most
// expensive first.
func groups(sums []usage.Sum, of func(usage.Sum) wire.UsageGroup) []wire.UsageGroup {
	by := map[[2]string][]usage.Sum{}
	for _, s := range sums {
		g := of(s)
		id := [2]string{g.Provider, g.Model}
		by[id] = append(by[id], s)
	}
	out := []wire.UsageGroup{}
	for id, in := range by {
		t := total(in)
		out = append(out, wire.UsageGroup{Provider: id[0], Model: id[1], Count: t.Calls, Totals: t})
	}
	slices.SortFunc(out, func(a, b wire.UsageGroup) int {
		return cmp.Or(costlier(a.Totals, b.Totals), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return out
}

// costlier orders totals by descending cost.
func costlier(a, b wire.UsageSum) int {
	return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Total, a.Total))
}

// points returns the usage by day, oldest first.
func points(sums []usage.Sum) []wire.UsagePoint {
	by := map[string]wire.UsagePoint{}
	for _, s := range sums {
		p := by[s.Day]
		p.Date, p.Tokens, p.Cost = s.Day, p.Tokens+s.Tokens.Total(), p.Cost+wireview.Dollars(s.NanoUSD)
		by[s.Day] = p
	}
	out := []wire.UsagePoint{}
	for _, day := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[day])
	}
	return out
}
