package usage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
