package usage

import (
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Limits of one answer.
const (
	maxSteps    = 200
	defaultLogs = 200
	maxLogs     = 1000
	logRunes    = 2000 // per message
	entryPage   = 500  // entries read at once
)

// timeseries returns the usage of a session over time. Each point merges the
// same number of calls.
func (m methods) timeseries(ctx context.Context, _ rpc.Peer, in wire.SessionUsageGet) (wire.UsageTimeseries, error) {
	out := wire.UsageTimeseries{Points: []wire.UsageTimeseriesPoint{}}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := m.meta(r, in.Key)
		if err != nil {
			return err
		}
		out.SessionID = meta.ID
		calls := []wire.UsageTimeseriesPoint{}
		for after, more := int64(0), true; more; {
			entries, err := r.Sessions().Entries(meta.ID, after, entryPage)
			if err != nil {
				return err
			}
			for _, e := range entries {
				after = e.Seq
				if e.Usage != nil {
					calls = append(calls, step(e))
				}
			}
			more = len(entries) == entryPage
		}
		out.Points = merge(calls)
		return nil
	})
	return out, err
}

// meta returns an existing session.
func (m methods) meta(r store.Reader, name string) (session.Meta, error) {
	if name == "" {
		return session.Meta{}, rpc.Invalid("must have required property 'key'")
	}
	key, err := rpc.SessionKey(name, "", m.o.Default)
	if err != nil {
		return session.Meta{}, err
	}
	return wireview.FindSession(r.Sessions(), key, "No transcript found for session: %s", key)
}

// step returns the usage of one call.
func step(e session.Entry) wire.UsageTimeseriesPoint {
	u := *e.Usage
	return wire.UsageTimeseriesPoint{
		Time: wire.At(e.Time), Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Total: u.Total(), Cost: wireview.Dollars(max(0, e.NanoUSD)),
	}
}

// merge returns at most maxSteps points with cumulative usage.
func merge(calls []wire.UsageTimeseriesPoint) []wire.UsageTimeseriesPoint {
	each := (len(calls) + maxSteps - 1) / maxSteps
	out := make([]wire.UsageTimeseriesPoint, 0, min(len(calls), maxSteps))
	var tokens int64
	var spent float64
	for i, c := range calls {
		if i%each == 0 {
			out = append(out, wire.UsageTimeseriesPoint{})
		}
		s := &out[len(out)-1]
		tokens, spent = tokens+c.Total, spent+c.Cost
		*s = wire.UsageTimeseriesPoint{
			Time:       c.Time,
			Input:      s.Input + c.Input,
			Output:     s.Output + c.Output,
			CacheRead:  s.CacheRead + c.CacheRead,
			CacheWrite: s.CacheWrite + c.CacheWrite,
			Total:      s.Total + c.Total,
			Cost:       s.Cost + c.Cost,
			Tokens:     tokens,
			Spent:      spent,
		}
	}
	return out
}

// logs returns the newest messages of a session with their cost.
func (m methods) logs(ctx context.Context, _ rpc.Peer, in wire.SessionUsageGet) (wire.UsageLogs, error) {
	out := wire.UsageLogs{Logs: []wire.UsageLog{}}
	if in.Limit < 0 {
		return out, rpc.Invalid("at /limit: must be >= 1")
	}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := m.meta(r, in.Key)
		if err != nil {
			return err
		}
		entries, err := r.Sessions().Last(meta.ID, rpc.Limit(in.Limit, defaultLogs, maxLogs))
		for _, e := range entries {
			if l := logEntry(e); l.Content != "" {
				out.Logs = append(out.Logs, l)
			}
		}
		return err
	})
	return out, err
}

// logEntry returns an entry as text; empty if it has no content.
func logEntry(e session.Entry) wire.UsageLog {
	if e.Kind != session.KindMessage || e.Message == nil {
		return wire.UsageLog{}
	}
	l := wire.UsageLog{Time: wire.At(e.Time), Role: string(e.Message.Role)}
	var lines []string
	if e.Message.Role == llm.RoleTool {
		l.Role = wire.RoleToolResult
		lines = append(lines, "[Tool: "+e.Message.ToolName+"]", "[Tool Result]")
	}
	if text := strings.TrimSpace(e.Message.PlainText()); text != "" {
		lines = append(lines, text)
	}
	for _, c := range e.Message.Calls() {
		lines = append(lines, "[Tool: "+c.Name+"]")
	}
	l.Content = humanize.Truncate(strings.Join(lines, "\n"), logRunes)
	if e.Usage != nil {
		l.Tokens = e.Usage.Total()
		if e.NanoUSD >= 0 {
			d := wireview.Dollars(e.NanoUSD)
			l.Cost = &d
		}
	}
	return l
}
