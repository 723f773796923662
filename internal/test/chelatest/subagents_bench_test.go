//go:build unix

package chelatest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// BenchmarkSpawn measures the time from the call of sessions_spawn to the first model
// call of the subagent, and from the end of its answer to the model call that reports it.
func BenchmarkSpawn(b *testing.B) {
	var mu sync.Mutex
	at := map[string]time.Time{}
	mark := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		at[name] = time.Now()
	}
	told := make(chan struct{})
	n := 0
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case strings.Contains(systemOf(r), "# Subagent Context"):
			mark("child")
			mark("done")
			return llmtest.Say("done")
		case strings.Contains(last.PlainText(), "The subagent "):
			mark("told")
			told <- struct{}{}
			return llmtest.Say("NO_REPLY")
		case last.Role == llm.RoleTool:
			return llmtest.Say("started")
		}
		n++
		mark("spawn")
		return llmtest.Call(fmt.Sprint("c", n), "sessions_spawn", `{"task":"x"}`)
	})
	c := Start(b, Options{Model: model}).Client()
	var spawn, announce []time.Duration
	for b.Loop() {
		id := c.Send("main", "go")
		<-told
		c.Await(id)
		mu.Lock()
		spawn, announce = append(spawn, at["child"].Sub(at["spawn"])), append(announce, at["told"].Sub(at["done"]))
		mu.Unlock()
	}
	report(b, spawn, 0)
	b.ReportMetric(quantile(announce, 0.5), "announce-p50-ms")
	b.ReportMetric(quantile(announce, 0.95), "announce-p95-ms")
}
