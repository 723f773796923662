package usage

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/wire"
)

// maxCalls is the number of tool calls that are counted, the latest ones.
const maxCalls = 20_000

// addCalls adds the tool calls, whose days are offset from UTC.
func addCalls(g *wire.UsageGroups, calls []session.Call, offset time.Duration) {
	byTool, byDay := map[string]int64{}, map[string]*wire.UsageActivity{}
	for i := range g.Daily {
		byDay[g.Daily[i].Date] = &g.Daily[i]
	}
	for _, c := range calls {
		byTool[c.Wire.Name]++
		day := c.Updated.UTC().Add(offset).Format(time.DateOnly)
		d := byDay[day]
		if d == nil {
			d = &wire.UsageActivity{UsagePoint: wire.UsagePoint{Date: day}}
			byDay[day] = d
		}
		d.Calls++
		g.Messages.Calls++
		if c.Outcome.Result != "" {
			g.Messages.Results++
		}
		if c.Outcome.Result == session.ResultError {
			g.Messages.Errors++
			d.Errors++
		}
	}
	g.Tools = wire.ToolUsage{Calls: int64(len(calls)), Names: len(byTool), Tools: []wire.ToolCount{}}
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
