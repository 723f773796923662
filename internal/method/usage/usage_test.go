package usage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/llmtest"
	"github.com/chela-ai/chela/internal/method/methodtest"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/usage"
	"github.com/chela-ai/chela/wire"
)

func TestCost(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	now := time.Now().UTC()
	h.Put(func(tx store.Tx) error {
		for _, r := range []usage.Row{
			{Session: "agent:main:main", Model: "m1", Time: now, Tokens: llm.Usage{Input: 100, Output: 20}, NanoUSD: 2e9, Priced: true},
			{Session: "agent:main:main", Model: "m1", Time: now.AddDate(0, 0, -1), Tokens: llm.Usage{Input: 1, CacheRead: 5}, NanoUSD: 5e8, Priced: true},
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
		Models: []wire.UsageOf{{Provider: "mock", Model: "m1", UsageSum: both}},
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
	if all.Days != 30 || len(all.Daily) != 30 || all.Totals.Missing != 1 || all.Totals.Output != 27 || len(all.Models) != 2 || all.Models[0].Model != "m1" {
		t.Errorf("usage of all: %d days, totals %+v, models %+v", len(all.Daily), all.Totals, all.Models)
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	night := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC)
	h.Put(func(tx store.Tx) error {
		row := usage.Row{Session: "agent:main:main", Agent: "main", Provider: "p", Model: "m", Time: night, Tokens: llm.Usage{Input: 3}, Run: "r"}
		return tx.Usage().Add(row)
	})
	for _, tt := range []struct {
		in   wire.UsageCost
		days string // of the report, and the one that has something
		want string // error
	}{
		{wire.UsageCost{Start: "2026-02-28", End: "2026-03-02"}, "2026-02-28 2026-03-01 2026-03-02, 2026-03-01", ""},
		{wire.UsageCost{Start: "2026-03-01", End: "2026-03-02", Mode: "specific", Offset: "UTC+1"}, "2026-03-01 2026-03-02, 2026-03-02", ""},
		{wire.UsageCost{Start: "2026-03-01", End: "2026-03-02", Mode: "specific", Offset: "UTC-0:30"}, "2026-03-01 2026-03-02, 2026-03-01", ""},
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
			row := usage.Row{Session: key, Agent: "main", Provider: "p", Model: "m", Time: now, Tokens: llm.Usage{Input: 1000}, Run: "r"}
			if key == "agent:main:gone" {
				row.NanoUSD, row.Priced = 9e9, true
			}
			if err := tx.Usage().Add(row); err != nil {
				return err
			}
		}
		return nil
	})
	got := methodtest.Do[wire.SessionsUsage](t, h, wire.MethodSessionsUsage, map[string]any{"range": "7d", "groupBy": "instance"})
	if len(got.Sessions) != 2 || got.Sessions[0].Key != "agent:main:gone" || got.Sessions[0].SessionID != "" || got.Sessions[1].SessionID == "" {
		t.Fatalf("sessions %+v", got.Sessions)
	}
	if got.Totals.Cost < 9 || got.Totals.Unpriced["p/m"] != 1 || got.Aggregates.Sessions != 2 || len(got.Aggregates.Agents) != 1 {
		t.Errorf("totals %+v, aggregates %+v", got.Totals, got.Aggregates)
	}
	day := now.Format(time.DateOnly)
	if got.End != day || len(got.Sessions[0].Usage.Dates) != 1 || got.Sessions[0].Usage.Dates[0] != day || got.Sessions[0].Usage.Daily[0].Tokens != 1000 {
		t.Errorf("until %s: %+v", got.End, got.Sessions[0].Usage)
	}
	if one := methodtest.Do[wire.SessionsUsage](t, h, wire.MethodSessionsUsage, wire.SessionsUsageGet{Key: "main", Limit: 1}); len(one.Sessions) != 1 || one.Sessions[0].Key != "agent:main:main" {
		t.Errorf("of one session: %+v", one.Sessions)
	}
	if s := methodtest.Do[wire.UsageStatus](t, h, wire.MethodUsageStatus, nil); s.UpdatedAt == 0 || s.Providers == nil || len(s.Providers) != 0 {
		t.Errorf("status %+v", s)
	}
	for in, want := range map[wire.SessionsUsageGet]string{
		{Range: "2d"}: "at /range", {Limit: -1}: "at /limit", {AgentID: "nope"}: "unknown agent", {Start: "x"}: "at /startDate", {Key: "agent:\n"}: "invalid sessions.usage params",
	} {
		if err := h.Call(t.Context(), wire.MethodSessionsUsage, in, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", in, err, want)
		}
	}
}
