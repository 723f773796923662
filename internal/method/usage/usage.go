// Package usage is the method that says what was spent.
package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/usage"
	"github.com/chela-ai/chela/wire"
)

// Options is what the method works with.
type Options struct {
	Store   store.Store
	Default chela.AgentID
}

// Bounds of a report.
const (
	defaultDays = 30
	maxDays     = 366
)

// Methods returns the method.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	return []rpc.Method{
		rpc.New(wire.MethodUsageCost, wire.RoleOperator, chela.ScopeRead, m.cost).Accepting("startDate", "endDate", "mode", "utcOffset"),
	}
}

type methods struct{ o Options }

func (m methods) cost(ctx context.Context, _ rpc.Peer, in wire.UsageCost) (wire.UsageReport, error) {
	days := defaultDays
	if in.Days > 0 {
		days = min(in.Days, maxDays)
	}
	var key chela.SessionKey
	if in.SessionKey != "" {
		var err error
		if key, err = chela.ParseSessionKey(in.SessionKey, m.o.Default); err != nil {
			return wire.UsageReport{}, rpc.Invalid(wire.MethodUsageCost, "%v", err)
		}
	}
	now := time.Now().UTC()
	first := time.Date(now.Year(), now.Month(), now.Day()-days+1, 0, 0, 0, 0, time.UTC)
	var sums []usage.Sum
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		var err error
		sums, err = r.Usage().Daily(key, first)
		return err
	})
	return report(sums, first, days, now), err
}

// report lays sums out over the days, with those on which nothing was spent.
func report(sums []usage.Sum, first time.Time, days int, now time.Time) wire.UsageReport {
	out := wire.UsageReport{UpdatedAt: wire.At(now), Days: days, Models: []wire.UsageOf{}}
	at := map[string]int{}
	for i := range days {
		date := first.AddDate(0, 0, i).Format(time.DateOnly)
		at[date] = i
		out.Daily = append(out.Daily, wire.UsageDay{Date: date})
	}
	models := map[[2]string]*wire.UsageOf{}
	for _, s := range sums {
		if i, ok := at[s.Day]; ok {
			add(&out.Daily[i].UsageSum, s)
		}
		add(&out.Totals, s)
		id := [2]string{s.Provider, s.Model}
		if models[id] == nil {
			models[id] = &wire.UsageOf{Provider: s.Provider, Model: s.Model}
		}
		add(&models[id].UsageSum, s)
	}
	for _, of := range models {
		out.Models = append(out.Models, *of)
	}
	slices.SortFunc(out.Models, func(a, b wire.UsageOf) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Model, b.Model))
	})
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
