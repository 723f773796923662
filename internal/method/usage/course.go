package usage

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// How much is told of a session.
const (
	maxSteps  = 200
	someLogs  = 200
	maxLogs   = 1000
	logRunes  = 2000 // of one message
	entryPage = 500  // entries that are read at once
)

// course is what a session spent in the course of its conversation. What is
// summed up in one step is as many calls as in any other.
func (m methods) course(ctx context.Context, _ rpc.Peer, in wire.SessionUsageOf) (wire.UsageCourse, error) {
	out := wire.UsageCourse{Points: []wire.UsageStep{}}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := m.meta(r, wire.MethodUsageCourse, in.Key)
		if err != nil {
			return err
		}
		out.SessionID = meta.ID
		calls := []wire.UsageStep{}
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
		out.Points = joined(calls)
		return nil
	})
	return out, err
}

// meta returns a session that there is.
func (m methods) meta(r store.Reader, method, name string) (session.Meta, error) {
	if name == "" {
		return session.Meta{}, rpc.Invalid(method, "must have required property 'key'")
	}
	key, err := chela.ParseSessionKey(name, m.o.Default)
	if err != nil {
		return session.Meta{}, rpc.Invalid(method, "%v", err)
	}
	meta, err := r.Sessions().Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return meta, shape.NoSession("No transcript found for session: %s", key)
	}
	return meta, err
}

// step is what one call spent.
func step(e session.Entry) wire.UsageStep {
	u := *e.Usage
	return wire.UsageStep{
		Time: wire.At(e.Time), Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Total: u.Total(), Cost: shape.Dollars(max(0, e.NanoUSD)),
	}
}

// joined returns at most maxSteps steps, with what was spent up to each.
func joined(calls []wire.UsageStep) []wire.UsageStep {
	each := (len(calls) + maxSteps - 1) / maxSteps
	out := make([]wire.UsageStep, 0, min(len(calls), maxSteps))
	var tokens int64
	var spent float64
	for i, c := range calls {
		if i%each == 0 {
			out = append(out, wire.UsageStep{})
		}
		s := &out[len(out)-1]
		tokens, spent = tokens+c.Total, spent+c.Cost
		*s = wire.UsageStep{
			Time: c.Time, Input: s.Input + c.Input, Output: s.Output + c.Output, CacheRead: s.CacheRead + c.CacheRead,
			CacheWrite: s.CacheWrite + c.CacheWrite, Total: s.Total + c.Total, Cost: s.Cost + c.Cost, Tokens: tokens, Spent: spent,
		}
	}
	return out
}

// logs are the newest messages of a session, with what each cost.
func (m methods) logs(ctx context.Context, _ rpc.Peer, in wire.SessionUsageOf) (wire.UsageLogs, error) {
	out := wire.UsageLogs{Logs: []wire.UsageLog{}}
	if in.Limit < 0 {
		return out, rpc.Invalid(wire.MethodUsageLogs, "at /limit: must be >= 1")
	}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := m.meta(r, wire.MethodUsageLogs, in.Key)
		if err != nil {
			return err
		}
		entries, err := r.Sessions().Last(meta.ID, min(cmp.Or(in.Limit, someLogs), maxLogs))
		for _, e := range entries {
			if l := logged(e); l.Content != "" {
				out.Logs = append(out.Logs, l)
			}
		}
		return err
	})
	return out, err
}

// logged is an entry as one text; empty when nothing was said or done.
func logged(e session.Entry) wire.UsageLog {
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
	l.Content = strings.Join(lines, "\n")
	if r := []rune(l.Content); len(r) > logRunes {
		l.Content = string(r[:logRunes]) + "…"
	}
	if e.Usage != nil {
		l.Tokens = e.Usage.Total()
		if e.NanoUSD >= 0 {
			d := shape.Dollars(e.NanoUSD)
			l.Cost = &d
		}
	}
	return l
}
