// Package meter counts and measures what a gateway does, for its route /metrics.
package meter

import (
	"context"
	"maps"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/hook"
	"github.com/chela-ai/chela/internal/httpapi"
)

// Meter counts runs and calls of tools. Use [New]. It is safe for concurrent
// use.
type Meter struct {
	mu     sync.Mutex
	runs   map[string]float64 // that ended, by how
	tokens map[string]float64 // by direction
	calls  map[string]float64 // of tools, by how they ended
	took   time.Duration      // of calls
}

// New returns a Meter that has counted nothing.
func New() *Meter {
	return &Meter{
		runs:   map[string]float64{"ok": 0, "error": 0, "timeout": 0, "aborted": 0, "superseded": 0, "suspended": 0},
		tokens: map[string]float64{"input": 0, "output": 0},
		calls:  map[string]float64{"ok": 0, "error": 0},
	}
}

// Watch counts the runs whose ends the bus tells of.
func (m *Meter) Watch(b *bus.Bus) {
	b.Subscribe(func(e chela.Event) {
		if e.Stream != chela.StreamLifecycle || e.End == nil {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if _, known := m.runs[e.End.Outcome]; known { // labels stay few
			m.runs[e.End.Outcome]++
		}
		m.tokens["input"] += float64(e.End.Input)
		m.tokens["output"] += float64(e.End.Output)
	})
}

// Hook counts the calls of tools that it is told of.
func (m *Meter) Hook() hook.After {
	return hook.After{Name: "meter", Quick: true, Func: func(_ context.Context, _ hook.Call, d hook.Done) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if d.IsError {
			m.calls["error"]++
		} else {
			m.calls["ok"]++
		}
		m.took += d.Took
		return nil
	}}
}

// Now is how the gateway is at a moment.
type Now struct {
	Version     string
	Up          time.Duration
	Clients     int
	Sessions    int
	Runs        int // in progress
	Queued      int // messages
	Approvals   int // that wait for a person
	Undelivered int // parts of answers
	Failures    int64
}

// Read returns what was counted, and how the gateway and its process are.
func (m *Meter) Read(now Now) []httpapi.Metric {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/sched/goroutines:goroutines"}}
	metrics.Read(sample)
	one := httpapi.One
	m.mu.Lock()
	defer m.mu.Unlock()
	return []httpapi.Metric{
		{Name: "chela_info", Help: "The version that runs.", Kind: httpapi.Gauge, Label: "version", Values: map[string]float64{now.Version: 1}},
		one("chela_uptime_seconds", "How long the gateway runs.", httpapi.Gauge, now.Up.Seconds()),
		one("chela_clients", "Connected clients.", httpapi.Gauge, float64(now.Clients)),
		one("chela_sessions", "Sessions that are stored.", httpapi.Gauge, float64(now.Sessions)),
		one("chela_runs_active", "Runs in progress.", httpapi.Gauge, float64(now.Runs)),
		one("chela_messages_queued", "Messages that wait for a run.", httpapi.Gauge, float64(now.Queued)),
		one("chela_approvals_pending", "Calls that wait for a decision.", httpapi.Gauge, float64(now.Approvals)),
		one("chela_deliveries_open", "Parts of answers that are not delivered yet.", httpapi.Gauge, float64(now.Undelivered)),
		{Name: "chela_runs_total", Help: "Runs that ended, by how.", Kind: httpapi.Counter, Label: "outcome", Values: maps.Clone(m.runs)},
		{Name: "chela_tokens_total", Help: "Tokens of runs that ended.", Kind: httpapi.Counter, Label: "direction", Values: maps.Clone(m.tokens)},
		{Name: "chela_tool_calls_total", Help: "Calls of tools that ran, by how they ended.", Kind: httpapi.Counter, Label: "outcome", Values: maps.Clone(m.calls)},
		one("chela_tool_seconds_total", "How long tools ran.", httpapi.Counter, m.took.Seconds()),
		one("chela_auth_failures_total", "Wrong credentials that were shown.", httpapi.Counter, float64(now.Failures)),
		one("chela_memory_bytes", "Memory that the process has from the system.", httpapi.Gauge, float64(sample[0].Value.Uint64()-sample[1].Value.Uint64())),
		one("chela_goroutines", "Goroutines.", httpapi.Gauge, float64(sample[2].Value.Uint64())),
	}
}
