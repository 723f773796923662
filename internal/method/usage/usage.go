// Package usage is the methods that say what was spent.
package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/usage"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with.
type Options struct {
	Store   store.Store
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // whether there is such an agent
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodUsageCost, op, chela.ScopeRead, m.cost),
		rpc.New(wire.MethodUsageStatus, op, chela.ScopeRead, m.status),
		rpc.New(wire.MethodSessionsUsage, op, chela.ScopeRead, m.sessions).
			Accepting("agentScope", "creatorKey", "groupBy", "includeHistorical", "includeContextWeight", "timeZone"),
		rpc.New(wire.MethodUsageCourse, op, chela.ScopeRead, m.course).Accepting("agentId"),
		rpc.New(wire.MethodUsageLogs, op, chela.ScopeRead, m.logs).Accepting("agentId"),
	}
}

type methods struct{ o Options }

// status tells of quotas. No provider of this version reports one.
func (m methods) status(context.Context, rpc.Peer, wire.None) (wire.UsageStatus, error) {
	return wire.UsageStatus{UpdatedAt: wire.At(time.Now()), Providers: []wire.ProviderQuota{}}, nil
}

func (m methods) cost(ctx context.Context, _ rpc.Peer, in wire.UsageCost) (wire.UsageReport, error) {
	const method = wire.MethodUsageCost
	now := time.Now()
	if in.Days < 0 {
		return wire.UsageReport{}, rpc.Invalid(method, "at /days: must be >= 0")
	}
	s, err := spanOf(in.Start, in.End, in.Mode, in.Offset, cmp.Or(in.Days, defaultDays), now)
	if err != nil {
		return wire.UsageReport{}, rpc.Invalid(method, "%v", err)
	}
	q := usage.Query{Since: s.first, Until: s.until(), Offset: s.offset}
	if in.SessionKey != "" {
		if q.Session, err = chela.ParseSessionKey(in.SessionKey, m.o.Default); err != nil {
			return wire.UsageReport{}, rpc.Invalid(method, "%v", err)
		}
	}
	var sums []usage.Sum
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		var err error
		sums, err = r.Usage().Sums(q)
		return err
	})
	return report(sums, s, now), err
}

// report lays sums out over the days, with those on which nothing was spent.
func report(sums []usage.Sum, s span, now time.Time) wire.UsageReport {
	out := wire.UsageReport{UpdatedAt: wire.At(now), Days: s.days, Daily: []wire.UsageDay{}, Models: []wire.UsageOf{}}
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
	for _, g := range groups(sums, func(x usage.Sum) wire.UsageGroup { return wire.UsageGroup{Provider: x.Provider, Model: x.Model} }) {
		out.Models = append(out.Models, wire.UsageOf{Provider: g.Provider, Model: g.Model, UsageSum: g.Totals})
	}
	return out
}

// total returns the sum of sums, with the models that have no price.
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
	to.Cost += shape.Dollars(s.NanoUSD)
	to.Missing += s.Unpriced
}

// groups returns the sums of those that of gives the same name, costliest
// first.
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

// costlier orders sums by what they cost.
func costlier(a, b wire.UsageSum) int {
	return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Total, a.Total))
}

// points returns the sums by day, oldest first.
func points(sums []usage.Sum) []wire.UsagePoint {
	by := map[string]wire.UsagePoint{}
	for _, s := range sums {
		p := by[s.Day]
		p.Date, p.Tokens, p.Cost = s.Day, p.Tokens+s.Tokens.Total(), p.Cost+shape.Dollars(s.NanoUSD)
		by[s.Day] = p
	}
	out := []wire.UsagePoint{}
	for _, day := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[day])
	}
	return out
}
