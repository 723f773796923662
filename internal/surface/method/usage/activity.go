package usage

import (
	"cmp"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/wire"
)

// addActivity adds messages and tool calls.
func addActivity(g *wire.UsageGroups, all []usage.Activity) {
	byTool, byDay := map[string]int64{}, map[string]*wire.UsageActivity{}
	for i := range g.Daily {
		byDay[g.Daily[i].Date] = &g.Daily[i]
	}
	for _, a := range all {
		count(&g.Messages, a)
		d := byDay[a.Day]
		if d == nil {
			d = &wire.UsageActivity{UsagePoint: wire.UsagePoint{Date: a.Day}}
			byDay[a.Day] = d
		}
		if a.Tool == "" {
			d.Messages += a.Count
			continue
		}
		byTool[a.Tool] += a.Count
		d.Calls += a.Count
		if a.Result == string(session.ResultError) {
			d.Errors += a.Count
		}
	}
	g.Tools = wire.ToolUsage{Calls: g.Messages.Calls, Names: len(byTool), Tools: []wire.ToolCount{}}
	for _, name := range slices.Sorted(maps.Keys(byTool)) {
		g.Tools.Tools = append(g.Tools.Tools, wire.ToolCount{Name: name, Count: byTool[name]})
	}
	slices.SortStableFunc(g.Tools.Tools, func(a, b wire.ToolCount) int { return cmp.Compare(b.Count, a.Count) })
	daily := []wire.UsageActivity{}
	for _, day := range slices.Sorted(maps.Keys(byDay)) {
		daily = append(daily, *byDay[day])
	}
	g.Daily = daily
}

// addCounts adds the messages and tool calls of each session.
func addCounts(sessions []wire.SessionUsage, all []usage.Activity) {
	counts := make(map[string]*wire.MessageCounts, len(sessions))
	for i := range sessions {
		s := &sessions[i]
		s.Usage.Messages = wire.MessageCounts{Assistant: s.Usage.Calls, Total: s.Usage.Calls}
		counts[s.Key] = &s.Usage.Messages
	}
	for _, a := range all {
		if m := counts[string(a.Session)]; m != nil {
			count(m, a)
		}
	}
}

// count adds an activity to the counts of messages and calls.
func count(m *wire.MessageCounts, a usage.Activity) {
	if a.Tool == "" {
		m.User += a.Count
		m.Total += a.Count
		return
	}
	m.Calls += a.Count
	if a.Result != "" {
		m.Results += a.Count
	}
	if a.Result == string(session.ResultError) {
		m.Errors += a.Count
	}
}

// byChannel returns the totals by the channel of the sessions, the most expensive first.
func byChannel(r store.Reader, sums []usage.Sum) ([]wire.UsageChannel, error) {
	by := map[string][]usage.Sum{}
	sessions := bySession(sums)
	for _, key := range slices.Sorted(maps.Keys(sessions)) {
		meta, err := session.Lookup(r.Sessions(), key)
		if err != nil {
			return nil, err
		}
		name := cmp.Or(meta.Address.Channel, chela.LocalChannel)
		by[name] = append(by[name], sessions[key]...)
	}
	out := []wire.UsageChannel{}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, wire.UsageChannel{Channel: name, Totals: total(by[name])})
	}
	slices.SortStableFunc(out, func(a, b wire.UsageChannel) int { return costlier(a.Totals, b.Totals) })
	return out, nil
}
