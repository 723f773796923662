package usage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestCost(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	now := time.Now().UTC()
	h.Put(func(tx store.Tx) error {
		for _, r := range []usage.Row{
			{Session: "agent:main:main", Model: "m1", Time: now, Tokens: llm.Usage{Input: 100, Output: 20},
				NanoUSD: 2e9, Priced: true},
			{Session: "agent:main:main", Model: "m1", Time: now.AddDate(0, 0, -1), Tokens: llm.Usage{Input: 1, CacheRead: 5},
				NanoUSD: 5e8, Priced: true},
			{Session: "agent:main:work", Model: "m2", Time: now, Tokens: llm.Usage{Output: 7}},
			{Session: "agent:main:work", Model: "m2", Time: now.AddDate(0, 0, -90), Tokens: llm.Usage{Output: 7000}},
		} {
			r.Agent, r.Provider, r.Run = "main", "mock", "r"
			if err := tx.Usage().Add(r); err != nil {
				return err
			}
		}
		return nil
	})
	today := wire.UsageSum{Calls: 1, Input: 100, Output: 20, Total: 120, Cost: 2}
	yesterday := wire.UsageSum{Calls: 1, Input: 1, CacheRead: 5, Total: 6, Cost: 0.5}
	both := wire.UsageSum{Calls: 2, Input: 101, Output: 20, CacheRead: 5, Total: 126, Cost: 2.5}
	got := methodtest.Do[wire.UsageReport](t, h, wire.MethodUsageCost, wire.UsageCost{Days: 3, SessionKey: "main"})
	want := wire.UsageReport{
		UpdatedAt: got.UpdatedAt, Days: 3, Totals: both,
		Models: []wire.ModelUsage{{Provider: "mock", Model: "m1", UsageSum: both}},
		Daily: []wire.UsageDay{
			{Date: now.AddDate(0, 0, -2).Format(time.DateOnly)},
			{Date: now.AddDate(0, 0, -1).Format(time.DateOnly), UsageSum: yesterday},
			{Date: now.Format(time.DateOnly), UsageSum: today},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage of a session (-want +got):\n%s", diff)
	}
	all := methodtest.Do[wire.UsageReport](t, h, wire.MethodUsageCost, nil)
	if all.Days != 30 || len(all.Daily) != 30 || all.Totals.Missing != 1 || all.Totals.Output != 27 ||
		len(all.Models) != 2 || all.Models[0].Model != "m1" {
		t.Errorf("usage of all: %d days, totals %+v, models %+v", len(all.Daily), all.Totals, all.Models)
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	night := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)
	h.Put(func(tx store.Tx) error {
		row := usage.Row{
			Session:  "agent:main:main",
			Agent:    "main",
			Provider: "p",
			Model:    "m",
			Time:     night,
			Tokens:   llm.Usage{Input: 3},
			Run:      "r",
		}
		return tx.Usage().Add(row)
	})
	for _, tt := range []struct {
		in   wire.UsageCost
		days string // of the report, and the one with usage
		want string // error
	}{
		{wire.UsageCost{Start: "2026-02-28", End: "2026-03-02"}, "2026-02-28 2026-03-01 2026-03-02, 2026-03-01", ""},
		{wire.UsageCost{Start: "2026-03-01", End: "2026-03-02", Mode: "specific", Offset: "UTC+1"},
			"2026-03-01 2026-03-02, 2026-03-02", ""},
		{wire.UsageCost{Start: "2026-03-01", End: "2026-03-02", Mode: "specific", Offset: "UTC-0:30"},
			"2026-03-01 2026-03-02, 2026-03-01", ""},
		{wire.UsageCost{Start: "2026-03-02", End: "2026-03-02"}, "2026-03-02, ", ""},
		{wire.UsageCost{Start: "2026-03-02", End: "2026-03-01"}, "", "at /endDate"},
		{wire.UsageCost{Start: "2020-03-02", End: "2026-03-01"}, "", "at /startDate"},
		{wire.UsageCost{Start: "yesterday"}, "", "at /startDate"},
		{wire.UsageCost{Mode: "specific", Offset: "UTC+15"}, "", "at /utcOffset"},
		{wire.UsageCost{Mode: "specific"}, "", "at /utcOffset"},
		{wire.UsageCost{Mode: "mine"}, "", "at /mode"},
		{wire.UsageCost{Days: -1}, "", "at /days"},
	} {
		var got wire.UsageReport
		err := h.Call(t.Context(), wire.MethodUsageCost, tt.in, &got)
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), "invalid usage.cost params: "+tt.want) {
				t.Errorf("%+v: %v, want %s", tt.in, err, tt.want)
			}
			continue
		}
		var all, some []string
		for _, d := range got.Daily {
			all = append(all, d.Date)
			if d.Total > 0 {
				some = append(some, d.Date)
			}
		}
		if days := strings.Join(all, " ") + ", " + strings.Join(some, " "); err != nil || days != tt.days {
			t.Errorf("%+v: %s, %v; want %s", tt.in, days, err, tt.days)
		}
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("Hello.")))
	run, err := h.Send(t.Context(), "main", "hi")
	if err != nil {
		t.Fatal(err)
	}
	h.End(run)
	now := time.Now().UTC()
	h.Put(func(tx store.Tx) error {
		for _, key := range []chela.SessionKey{"agent:main:main", "agent:main:gone"} {
			row := usage.Row{
				Session:  key,
				Agent:    "main",
				Provider: "p",
				Model:    "m",
				Time:     now,
				Tokens:   llm.Usage{Input: 1000},
				Run:      "r",
			}
			if key == "agent:main:gone" {
				row.NanoUSD, row.Priced = 9e9, true
			}
			if err := tx.Usage().Add(row); err != nil {
				return err
			}
		}
		return nil
	})
	got := methodtest.Do[wire.SessionsUsage](t, h, wire.MethodSessionsUsage,
		map[string]any{"range": "7d", "groupBy": "instance"})
	if len(got.Sessions) != 2 || got.Sessions[0].Key != "agent:main:gone" || got.Sessions[0].SessionID != "" ||
		got.Sessions[1].SessionID == "" {
		t.Fatalf("sessions %+v", got.Sessions)
	}
	if got.Totals.Cost < 9 || got.Totals.Unpriced["p/m"] != 1 || got.Aggregates.Sessions != 2 ||
		len(got.Aggregates.Agents) != 1 {
		t.Errorf("totals %+v, aggregates %+v", got.Totals, got.Aggregates)
	}
	day := now.Format(time.DateOnly)
	a := got.Aggregates
	if m := got.Sessions[1].Usage.Messages; m.User != 1 || m.Assistant != 2 || m.Total != 3 {
		t.Errorf("messages of the session: %+v", m)
	}
	if m := (wire.MessageCounts{Total: 4, User: 1, Assistant: 3}); a.Messages != m || a.Tools.Calls != 0 ||
		a.Tools.Tools == nil || a.Latency == nil {
		t.Errorf("messages %+v, tools %+v, latency %v", a.Messages, a.Tools, a.Latency)
	}
	if len(a.Channels) != 1 || a.Channels[0].Channel != chela.LocalChannel ||
		a.Channels[0].Totals.Cost != got.Totals.Cost {
		t.Errorf("by channel: %+v", a.Channels)
	}
	if len(a.CostDaily) != 1 || a.CostDaily[0].Date != day || a.CostDaily[0].Total != got.Totals.Total {
		t.Errorf("by day: %+v", a.CostDaily)
	}
	if len(a.ModelDays) != 2 || a.ModelDays[0].Model != "m" || a.ModelDays[0].Count != 2 || a.ModelDays[0].Tokens != 2000 {
		t.Errorf("by day and model: %+v", a.ModelDays)
	}
	if len(a.Daily) != 1 || a.Daily[0].Messages != 4 || a.Daily[0].Tokens != got.Totals.Total {
		t.Errorf("by day, with messages: %+v", a.Daily)
	}
	if got.End != day || len(got.Sessions[0].Usage.Dates) != 1 || got.Sessions[0].Usage.Dates[0] != day ||
		got.Sessions[0].Usage.Daily[0].Tokens != 1000 {
		t.Errorf("until %s: %+v", got.End, got.Sessions[0].Usage)
	}
	if one := methodtest.Do[wire.SessionsUsage](t, h, wire.MethodSessionsUsage,
		wire.SessionsUsageGet{Key: "main", Limit: 1}); len(one.Sessions) != 1 || one.Sessions[0].Key != "agent:main:main" {
		t.Errorf("of one session: %+v", one.Sessions)
	}
	if s := methodtest.Do[wire.UsageStatus](t, h, wire.MethodUsageStatus, nil); s.UpdatedAt == 0 || s.Providers == nil ||
		len(s.Providers) != 0 {
		t.Errorf("status %+v", s)
	}
	for in, want := range map[wire.SessionsUsageGet]string{
		{Range: "2d"}:     "at /range",
		{Limit: -1}:       "at /limit",
		{AgentID: "nope"}: "unknown agent",
		{Start: "x"}:      "at /startDate",
		{Key: "agent:\n"}: "invalid sessions.usage params",
	} {
		if err := h.Call(t.Context(), wire.MethodSessionsUsage, in, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", in, err, want)
		}
	}
}

func TestTimeseries(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("Hello.")))
	run, err := h.Send(t.Context(), "main", "hi")
	if err != nil {
		t.Fatal(err)
	}
	h.End(run)
	const calls = 1001 // more than a page of entries, and more than maxSteps
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h.Put(func(tx store.Tx) error {
		meta, err := tx.Sessions().Get("agent:main:main")
		if err != nil {
			return err
		}
		meta.ID = "told"
		if err := tx.Sessions().Put(meta); err != nil {
			return err
		}
		entries := make([]*session.Entry, calls)
		for i := range entries {
			entries[i] = &session.Entry{
				ID:      fmt.Sprint(i),
				Kind:    session.KindMessage,
				Time:    begin.Add(time.Duration(i) * time.Second),
				Usage:   &llm.Usage{Input: 10, Output: 1},
				NanoUSD: 1e6,
				Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(strings.Repeat("ä", 3000)),
					{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c", Name: "read"}}}},
			}
			if i == calls-1 {
				entries[i].NanoUSD, entries[i].Message = -1,
					&llm.Message{Role: llm.RoleTool, ToolName: "read", Parts: []llm.Part{llm.Text("done")}}
			}
		}
		return tx.Sessions().Append("told", entries...)
	})

	c := methodtest.Do[wire.UsageTimeseries](t, h, wire.MethodUsageTimeseries, wire.SessionUsageGet{Key: "main"})
	if c.SessionID != "told" || len(c.Points) != 167 { // six calls each
		t.Fatalf("%d steps of %s", len(c.Points), c.SessionID)
	}
	first := wire.UsageTimeseriesPoint{
		Time:   wire.At(begin.Add(5 * time.Second)),
		Input:  60,
		Output: 6,
		Total:  66,
		Cost:   0.006,
		Tokens: 66,
		Spent:  0.006,
	}
	if diff := cmp.Diff(first, c.Points[0], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("the first step: -want +got\n%s", diff)
	}
	last := c.Points[len(c.Points)-1]
	if last.Tokens != 11*calls || last.Spent < 0.9999 || last.Spent > 1.0001 || last.Total != 55 ||
		last.Time != wire.At(begin.Add((calls-1)*time.Second)) {
		t.Errorf("the last step: %+v", last)
	}

	l := methodtest.Do[wire.UsageLogs](t, h, wire.MethodUsageLogs, wire.SessionUsageGet{Key: "main", Limit: 2}).Logs
	cost := 0.001
	want := []wire.UsageLog{
		{Time: wire.At(begin.Add((calls - 2) * time.Second)), Role: "assistant", Content: strings.Repeat("ä", 2000) + "…",
			Tokens: 11, Cost: &cost},
		{Time: wire.At(begin.Add((calls - 1) * time.Second)), Role: "toolResult",
			Content: "[Tool: read]\n[Tool Result]\ndone", Tokens: 11},
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for in, want := range map[wire.SessionUsageGet]string{
		{}: "must have required property 'key'", {Key: "agent:\n"}: "params: ",
		{Key: "nobody"}: "No transcript found for session: agent:main:nobody",
	} {
		for _, method := range []string{wire.MethodUsageTimeseries, wire.MethodUsageLogs} {
			if err := h.Call(t.Context(), method, in, nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %+v: %v, want %s", method, in, err, want)
			}
		}
	}
}

// TestToolUsage counts the tool calls by name and day.
func TestToolUsage(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(
		llmtest.Calls(llmtest.ToolCall("c1", "look", `{}`), llmtest.ToolCall("c2", "look", `{}`),
			llmtest.ToolCall("c3", "absent", `{}`)),
		llmtest.Say("Done."),
	), looking{})
	run, err := h.Send(t.Context(), "main", "look twice")
	if err != nil {
		t.Fatal(err)
	}
	h.End(run)
	a := methodtest.Do[wire.SessionsUsage](t, h, wire.MethodSessionsUsage,
		map[string]any{"range": "7d", "agentId": "main"}).Aggregates
	want := wire.ToolUsage{Calls: 3, Names: 2,
		Tools: []wire.ToolCount{{Name: "look", Count: 2}, {Name: "absent", Count: 1}}}
	if d := cmp.Diff(want, a.Tools); d != "" {
		t.Errorf("tools (-want +got):\n%s", d)
	}
	if a.Messages.Calls != 3 || a.Messages.Results != 3 || a.Messages.Errors != 1 || len(a.Daily) != 1 ||
		a.Daily[0].Calls != 3 || a.Daily[0].Errors != 1 {
		t.Errorf("messages %+v, days %+v", a.Messages, a.Daily)
	}
}

// looking is a tool that looks.
type looking struct{}

func (looking) Spec() tool.Spec {
	return tool.Spec{Name: "look", Description: "look", Effect: tool.Reads, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (looking) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Text("a tree"), nil }
