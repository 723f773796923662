package chelatest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// addJobs adds n jobs that are not due soon.
func addJobs(b *testing.B, c *Client, n int) {
	b.Helper()
	for i := range n {
		c.must(wire.MethodCronAdd, map[string]any{
			"name":          fmt.Sprintf("job %04d", i),
			"schedule":      map[string]any{"kind": "cron", "expr": fmt.Sprintf("%d 9 1 1 *", i%60), "tz": "UTC"},
			"sessionTarget": "isolated",
			"wakeMode":      "now",
			"payload": map[string]any{
				"kind":    "agentTurn",
				"message": fmt.Sprintf("Summarize feed number %d in two sentences.", i),
			},
			"delivery": map[string]any{"mode": "none"},
		}, nil)
	}
}

// BenchmarkCronList lists 200 of 1,000 jobs.
func BenchmarkCronList(b *testing.B) {
	g := Start(b, Options{Model: llmtest.NewScript()})
	c := g.Client()
	addJobs(b, c, 1_000)
	for b.Loop() {
		var page wire.CronPage
		c.must(wire.MethodCronList, map[string]any{"limit": 200, "includeDisabled": true}, &page)
		if len(page.Jobs) != 200 || page.Total != 1_000 {
			b.Fatalf("%d of %d jobs", len(page.Jobs), page.Total)
		}
	}
}

// BenchmarkCronDue runs 20 of 1,020 jobs that are due at one time. An operation takes
// the time from then until the last one is at the model.
func BenchmarkCronDue(b *testing.B) {
	const due = 20
	at := make(chan time.Time, due)
	model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
		at <- time.Now()
		return llmtest.Say("done")
	})
	g := Start(b, Options{Model: model})
	c := g.Client()
	addJobs(b, c, 1_000)
	var last, total time.Duration
	n := 0
	for b.Loop() {
		slot := time.Now().Add(1500 * time.Millisecond).Truncate(time.Second).Add(time.Second)
		for i := range due {
			c.must(wire.MethodCronAdd, map[string]any{
				"name":          fmt.Sprint("due ", i),
				"schedule":      map[string]any{"kind": "at", "at": slot.UTC().Format(time.RFC3339)},
				"sessionTarget": "isolated",
				"wakeMode":      "now",
				"payload":       map[string]any{"kind": "agentTurn", "message": "say done"},

				"delivery": map[string]any{"mode": "none"},
			}, nil)
		}
		for range due {
			last = (<-at).Sub(slot)
		}
		total, n = total+last, n+1
	}
	b.ReportMetric(float64(total.Microseconds())/float64(n)/1000, "last-ms")
}
