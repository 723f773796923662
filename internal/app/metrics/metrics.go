// Package metrics counts runs and tool calls, for the gateway's route /metrics.
package metrics

import (
	"context"
	"maps"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/surface/httpapi"
)

// Metrics counts runs and tool calls. Use [New]. It is safe for concurrent use.
type Metrics struct {
	mu     sync.Mutex
	runs   map[string]float64 // that ended, by chela.Outcome
	tokens map[string]float64 // by direction
	calls  map[string]float64 // of tools, by outcome
	took   time.Duration      // by calls
}

// New returns Metrics with all counts zero.
func New() *Metrics {
	return &Metrics{
		runs: map[string]float64{
			string(chela.OutcomeOK): 0, string(chela.OutcomeError): 0, string(chela.OutcomeTimeout): 0,
			string(chela.OutcomeAborted): 0, string(chela.OutcomeSuperseded): 0,
		},
		tokens: map[string]float64{"input": 0, "output": 0},
		calls:  map[string]float64{"ok": 0, "error": 0},
	}
}

// Watch counts the runs whose ends are published on the bus.
func (m *Metrics) Watch(b *bus.Bus) {
	b.Subscribe(func(e chela.Event) {
		if e.Stream != chela.StreamLifecycle || e.End == nil {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.runs[string(e.End.Outcome)]++
		m.tokens["input"] += float64(e.End.Input)
		m.tokens["output"] += float64(e.End.Output)
	})
}

// Hook returns a hook that counts tool calls.
func (m *Metrics) Hook() hook.After {
	return hook.After{Name: "metrics", Quick: true, Func: func(_ context.Context, d hook.Done) (hook.None, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if d.IsError {
			m.calls["error"]++
		} else {
			m.calls["ok"]++
		}
		m.took += d.Took
		return hook.None{}, nil
	}}
}

// Gauges are the present values of the gateway.
type Gauges struct {
	Version     string
	Up          time.Duration
	Clients     int
	Sessions    int
	Runs        int   // in progress
	Queued      int   // messages
	Approvals   int   // pending
	Undelivered int   // parts of answers
	Failures    int64 // of authentication
}

// Read returns the counts, the gauges and the metrics of the process.
func (m *Metrics) Read(now Gauges) []httpapi.Metric {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/sched/goroutines:goroutines"}}
	metrics.Read(sample)
	one := httpapi.One
	m.mu.Lock()
	defer m.mu.Unlock()
	return []httpapi.Metric{
		{Name: "chela_info", Help: "The running version.", Kind: httpapi.Gauge, Label: "version",
			Values: map[string]float64{now.Version: 1}},
		one("chela_uptime_seconds", "Time since the start of the gateway.", httpapi.Gauge, now.Up.Seconds()),
		one("chela_clients", "Connected clients.", httpapi.Gauge, float64(now.Clients)),
		one("chela_sessions", "Stored sessions.", httpapi.Gauge, float64(now.Sessions)),
		one("chela_runs_active", "Runs in progress.", httpapi.Gauge, float64(now.Runs)),
		one("chela_messages_queued", "Messages waiting for a run.", httpapi.Gauge, float64(now.Queued)),
		one("chela_approvals_pending", "Tool calls waiting for approval.", httpapi.Gauge, float64(now.Approvals)),
		one("chela_deliveries_open", "Parts of answers that are not delivered yet.", httpapi.Gauge, float64(now.Undelivered)),
		{Name: "chela_runs_total", Help: "Runs that ended, by outcome.", Kind: httpapi.Counter, Label: "outcome",
			Values: maps.Clone(m.runs)},
		{Name: "chela_tokens_total", Help: "Tokens of runs that ended.", Kind: httpapi.Counter, Label: "direction",
			Values: maps.Clone(m.tokens)},
		{Name: "chela_tool_calls_total", Help: "Tool calls that ran, by outcome.", Kind: httpapi.Counter, Label: "outcome",
			Values: maps.Clone(m.calls)},
		one("chela_tool_seconds_total", "Time spent in tool calls.", httpapi.Counter, m.took.Seconds()),
		one("chela_auth_failures_total", "Connections with wrong credentials.", httpapi.Counter, float64(now.Failures)),
		one("chela_memory_bytes", "Memory that the process has obtained from the system.", httpapi.Gauge,
			float64(sample[0].Value.Uint64()-sample[1].Value.Uint64())),
		one("chela_goroutines", "Goroutines.", httpapi.Gauge, float64(sample[2].Value.Uint64())),
	}
}
