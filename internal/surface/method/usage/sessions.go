package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Limits of the list of sessions.
const (
	defaultSessions = 50
	maxSessions     = 1000
)

func (m methods) sessions(ctx context.Context, _ rpc.Peer, in wire.SessionsUsageGet) (wire.SessionsUsage, error) {
	now := time.Now()
	days, known := ranges[cmp.Or(in.Range, "30d")]
	switch {
	case !known:
		return wire.SessionsUsage{}, rpc.Invalid("at /range: must be equal to one of the allowed values")
	case in.Limit < 0:
		return wire.SessionsUsage{}, rpc.Invalid("at /limit: must be >= 1")
	case in.AgentID != "" && !m.o.Agent(chela.AgentID(in.AgentID)):
		return wire.SessionsUsage{}, rpc.UnknownAgent(chela.AgentID(in.AgentID))
	}
	s, err := spanOf(in.Start, in.End, in.Mode, in.Offset, days, now)
	if err != nil {
		return wire.SessionsUsage{}, rpc.Invalid("%v", err)
	}
	q := usage.Query{Since: s.first, Until: s.until(), Offset: s.offset, BySession: true}
	if in.Key != "" {
		if q.Session, err = rpc.SessionKey(in.Key, "", m.o.Default); err != nil {
			return wire.SessionsUsage{}, err
		}
	}
	out := wire.SessionsUsage{UpdatedAt: wire.At(now), Start: s.day(0), End: s.day(s.days - 1)}
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		sums, err := r.Usage().Sums(q)
		if err != nil {
			return err
		}
		if in.AgentID != "" {
			sums = slices.DeleteFunc(sums, func(x usage.Sum) bool { return x.Session.Agent() != chela.AgentID(in.AgentID) })
		}
		out.Totals, out.Aggregates = total(sums), aggregate(sums)
		if out.Aggregates.Channels, err = byChannel(r, sums); err != nil {
			return err
		}
		activity, err := r.Usage().Activity(q)
		if err != nil {
			return err
		}
		if in.AgentID != "" {
			activity = slices.DeleteFunc(activity,
				func(a usage.Activity) bool { return a.Session.Agent() != chela.AgentID(in.AgentID) })
		}
		addActivity(&out.Aggregates, activity)
		out.Sessions, err = mostExpensive(r, sums, rpc.Limit(in.Limit, defaultSessions, maxSessions))
		addCounts(out.Sessions, activity)
		return err
	})
	return out, err
}

// aggregate returns the totals in all groupings.
func aggregate(sums []usage.Sum) wire.UsageGroups {
	g := wire.UsageGroups{
		Models: groups(sums,
			func(x usage.Sum) wire.UsageGroup { return wire.UsageGroup{Provider: x.Provider, Model: x.Model} }),
		Providers: groups(sums, func(x usage.Sum) wire.UsageGroup { return wire.UsageGroup{Provider: x.Provider} }),
		Agents:    []wire.UsageAgent{},
		CostDaily: []wire.UsageDay{},
		Latency:   []wire.None{},
		ModelDays: []wire.UsageModelDay{},
	}
	g.Sessions = len(bySession(sums))
	days := map[string][]usage.Sum{}
	for _, s := range sums {
		days[s.Day] = append(days[s.Day], s)
		g.Messages.Assistant += s.Calls
	}
	g.Messages.Total = g.Messages.Assistant
	for _, p := range points(sums) {
		t := total(days[p.Date])
		g.CostDaily = append(g.CostDaily, wire.UsageDay{Date: p.Date, UsageSum: t})
		g.Daily = append(g.Daily, wire.UsageActivity{UsagePoint: p, Messages: t.Calls})
		for _, m := range groups(days[p.Date],
			func(x usage.Sum) wire.UsageGroup { return wire.UsageGroup{Provider: x.Provider, Model: x.Model} }) {
			g.ModelDays = append(g.ModelDays, wire.UsageModelDay{
				Date: p.Date, Provider: m.Provider, Model: m.Model, Tokens: m.Totals.Total, Cost: m.Totals.Cost, Count: m.Count,
			})
		}
	}
	for _, a := range groups(sums,
		func(x usage.Sum) wire.UsageGroup { return wire.UsageGroup{Provider: string(x.Session.Agent())} }) {
		g.Agents = append(g.Agents, wire.UsageAgent{AgentID: a.Provider, Totals: a.Totals})
	}
	return g
}

func bySession(sums []usage.Sum) map[chela.SessionKey][]usage.Sum {
	by := map[chela.SessionKey][]usage.Sum{}
	for _, s := range sums {
		by[s.Session] = append(by[s.Session], s)
	}
	return by
}

// mostExpensive returns the most expensive sessions. Of a deleted session only
// the key is known.
func mostExpensive(r store.Reader, sums []usage.Sum, limit int) ([]wire.SessionUsage, error) {
	out := []wire.SessionUsage{}
	by := bySession(sums)
	for _, key := range slices.Sorted(maps.Keys(by)) {
		out = append(out, wire.SessionUsage{Key: string(key), Scope: "instance", AgentID: string(key.Agent()),
			Usage: detail(by[key])})
	}
	slices.SortStableFunc(out, func(a, b wire.SessionUsage) int { return costlier(a.Usage.UsageSum, b.Usage.UsageSum) })
	out = out[:min(len(out), limit)]
	for i := range out {
		meta, err := session.Lookup(r.Sessions(), chela.SessionKey(out[i].Key))
		if err != nil {
			return nil, err
		}
		out[i].Label, out[i].SessionID, out[i].UpdatedAt = meta.Label, meta.ID, wire.At(meta.Updated)
	}
	return out, nil
}

func detail(sums []usage.Sum) wire.UsageDetail {
	d := wire.UsageDetail{
		UsageSum: total(sums), Dates: []string{}, Daily: points(sums),
		Models: groups(sums,
			func(x usage.Sum) wire.UsageGroup { return wire.UsageGroup{Provider: x.Provider, Model: x.Model} }),
	}
	for _, p := range d.Daily {
		d.Dates = append(d.Dates, p.Date)
	}
	return d
}
