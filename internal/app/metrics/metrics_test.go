package metrics_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/metrics"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	m, b := metrics.New(), bus.New(slog.New(slog.DiscardHandler))
	m.Watch(b)
	for _, outcome := range []chela.Outcome{chela.OutcomeOK, chela.OutcomeOK, chela.OutcomeError} {
		b.Publish(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd, End: &chela.EndEvent{Outcome: outcome,
			Input: 10, Output: 1}})
	}
	b.Publish(chela.Event{Stream: chela.StreamAssistant, Delta: "x"})
	for _, d := range []hook.Done{{Took: time.Second}, {IsError: true, Err: errors.New("boom"), Took: time.Second}} {
		if _, err := m.Hook().Func(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]map[string]float64{}
	for _, x := range m.Read(metrics.Gauges{
		Version:     "1",
		Up:          90 * time.Second,
		Clients:     2,
		Failures:    3,
		Sessions:    4,
		Runs:        5,
		Queued:      6,
		Approvals:   7,
		Undelivered: 8,
	}) {
		got[x.Name] = x.Values
	}
	for name, want := range map[string]map[string]float64{
		"chela_runs_total":          {"ok": 2, "error": 1, "timeout": 0, "aborted": 0, "superseded": 0},
		"chela_tokens_total":        {"input": 30, "output": 3},
		"chela_tool_calls_total":    {"ok": 1, "error": 1},
		"chela_tool_seconds_total":  {"": 2},
		"chela_clients":             {"": 2},
		"chela_auth_failures_total": {"": 3},
		"chela_info":                {"1": 1},
		"chela_uptime_seconds":      {"": 90},
		"chela_sessions":            {"": 4},
		"chela_runs_active":         {"": 5},
		"chela_messages_queued":     {"": 6},
		"chela_approvals_pending":   {"": 7},
		"chela_deliveries_open":     {"": 8},
	} {
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got["chela_memory_bytes"][""] <= 0 || got["chela_goroutines"][""] < 1 {
		t.Errorf("the process: %v, %v", got["chela_memory_bytes"], got["chela_goroutines"])
	}
}
