//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// BenchmarkChildren measures 200 subagents of ten sessions that are started at once,
// with a model that takes 50 ms: the time from the first model call of a subagent to
// the end of the last one, over the time that the width of their lane allows, and over
// that of 200 turns of as many sessions in a lane of the same width, which are measured
// alternately.
func BenchmarkChildren(b *testing.B) {
	const (
		requesters, each, width = 10, 20, 8
		all, takes              = requesters * each, 50 * time.Millisecond
	)
	var first, calls atomic.Int64
	slow := func() llmtest.Step {
		first.CompareAndSwap(0, time.Now().UnixNano())
		calls.Add(1)
		s := llmtest.Say("done")
		s.Delay = takes
		return s
	}
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case strings.Contains(systemOf(r), "# Subagent Context"):
			return slow()
		case strings.Contains(last.PlainText(), "The subagent "):
			return llmtest.Say("NO_REPLY")
		case last.Role == llm.RoleTool:
			return llmtest.Say("started")
		}
		var calls []llm.ToolCall
		for i := range each {
			calls = append(calls, llm.ToolCall{ID: fmt.Sprintf("%d-%d", len(r.Messages), i), Name: "sessions_spawn",
				Args: json.RawMessage(`{"task":"x"}`)})
		}
		return llmtest.Calls(calls...)
	})
	var st store.Store
	spawning := quiet(b, Options{
		Model: model, Wrap: func(s store.Store) store.Store { st = s; return s },
		Config: section("agents.defaults",
			fmt.Sprintf(`{"maxConcurrent": %d, "subagents": {"maxChildrenPerAgent": %d, "maxConcurrent": %d}}`,
				requesters, each, width)),
	}).Client()
	plain := quiet(b, Options{
		Model:  llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return slow() }),
		Config: section("agents.defaults", fmt.Sprintf(`{"maxConcurrent": %d}`, width)),
	}).Client()
	go func() {
		for range spawning.Events() { // the client must not fall behind
		}
	}()
	var children, turns []time.Duration
	var used time.Duration
	for n := 1; b.Loop(); n++ {
		first.Store(0)
		calls.Store(0)
		begun := cpu()
		for i := range requesters {
			spawning.Send(fmt.Sprintf("r%d-%d", n, i), "go")
		}
		for open := 1; open > 0; {
			time.Sleep(2 * time.Millisecond)
			if calls.Load() < all {
				continue
			}
			list, err := store.Get(b.Context(), st,
				func(r store.Reader) ([]subagent.Child, error) { return r.Children().Open("") })
			if err != nil {
				b.Fatal(err)
			}
			open = len(list)
		}
		children, used = append(children, time.Since(time.Unix(0, first.Load()))), used+cpu()-begun
		busy := true
		for busy { // until all results were told
			active, err := store.Get(b.Context(), st, func(r store.Reader) ([]run.Run, error) { return r.Runs().Active("") })
			if err != nil {
				b.Fatal(err)
			}
			busy = len(active) > 0
			time.Sleep(20 * time.Millisecond)
		}

		first.Store(0)
		for i := range all {
			plain.Send(fmt.Sprintf("p%d-%d", n, i), "go")
		}
		for range all {
			plain.next()
		}
		turns = append(turns, time.Since(time.Unix(0, first.Load())))
	}
	p50 := quantile(children, 0.5)
	b.ReportMetric(p50, "p50-ms")
	b.ReportMetric(p50/(float64(all/width*takes)/1e6), "of-the-lane")
	b.ReportMetric(p50/quantile(turns, 0.5), "of-plain-turns")
	b.ReportMetric(float64(used)/1e6/float64(len(children)*all), "cpu-ms/child")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRestingChildren counts the goroutines of subagents that wait for subagents
// of their own, beyond those that these need.
func BenchmarkRestingChildren(b *testing.B) {
	const n = 16
	goroutines := func(depth int) int {
		var held atomic.Int64
		release := make(chan struct{})
		leaf := func() llmtest.Step { held.Add(1); <-release; return llmtest.Say("done") }
		var mu sync.Mutex
		serial := 0
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			child := strings.Contains(systemOf(r), "# Subagent Context")
			mu.Lock()
			serial++
			id := fmt.Sprint("c", serial)
			mu.Unlock()
			switch {
			case strings.Contains(last.PlainText(), "The subagent "), !child && last.Role == llm.RoleTool:
				return llmtest.Say("NO_REPLY")
			case child && r.Messages[0].PlainText() == "leaf":
				return leaf()
			case child:
				return llmtest.Calls(llmtest.ToolCall(id, "sessions_spawn", `{"task":"leaf"}`),
					llmtest.ToolCall(id+"y", "sessions_yield", `{}`))
			}
			task := map[int]string{1: "leaf", 2: "middle"}[depth]
			var calls []llm.ToolCall
			for i := range n {
				calls = append(calls, llmtest.ToolCall(fmt.Sprint(id, "-", i), "sessions_spawn", `{"task":"`+task+`"}`))
			}
			return llmtest.Calls(calls...)
		})
		g := quiet(b,
			Options{Model: model, Config: section("agents.defaults",
				`{"subagents": {"maxSpawnDepth": 2, "maxChildrenPerAgent": 20, "maxConcurrent": 64}}`)})
		c := g.Client()
		c.Ask("main", "go")
		for held.Load() < n {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond) // what begins and ends with the last commits
		count := runtime.NumGoroutine()
		close(release)
		c.Close()
		g.Stop()
		return count
	}
	for b.Loop() {
		leaves, both := goroutines(1), goroutines(2)
		b.ReportMetric(float64(both-leaves)/n, "goroutines/resting-child")
	}
	b.ReportMetric(0, "ns/op")
}

// endedChildren writes subagents that ended in the last 29 days, as the product leaves
// them.
func endedChildren(b testing.TB, dir string, n int) {
	b.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(dir, "chela.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now := time.Now()
	err = db.Update(context.Background(), store.Synced, func(tx store.Tx) error {
		for i := range n {
			id := chela.RunID(fmt.Sprintf("%08d-0000-0000-0000-000000000000", i))
			at := now.Add(-29 * 24 * time.Hour).Add(time.Duration(i) * 29 * 24 * time.Hour / time.Duration(n))
			m := session.Meta{
				Key:     chela.SessionKey("agent:main:subagent:" + string(id)),
				ID:      "t" + string(id),
				Agent:   chela.DefaultAgent,
				Label:   "Task 1",
				Title:   "count the words",
				Created: at,
				Started: at,
				Updated: at,
				Prompt:  strings.Repeat("Your task: count the words. ", 60),

				Bounds: session.Bounds{SpawnedBy: "agent:main:main", Depth: 1, Lane: "subagent"},
			}
			child := subagent.Child{
				ID:        id,
				Session:   m.Key,
				Requester: "agent:main:main",
				Root:      id,
				Task:      "count the words",
				Label:     "Task 1",
				Cleanup:   subagent.Keep,
				Created:   at,
				Ended:     at,
				Outcome:   chela.OutcomeOK,
				Result:    strings.Repeat("There are many words. ", 10),
			}
			if now.Sub(at) > time.Hour {
				m.Archived, child.Archived = at, at
			}
			user := &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text(child.Task)}}
			answer := &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(child.Result)}}
			for _, err := range []error{
				tx.Sessions().Put(m), tx.Children().Put(child),
				tx.Sessions().Append(m.ID, &session.Entry{ID: "1", Kind: session.KindMessage, Time: at, Message: user},
					&session.Entry{ID: "2", Kind: session.KindMessage, Time: at, Message: answer}),
				tx.Runs().Put(run.Run{
					ID:        id,
					Session:   m.Key,
					SessionID: m.ID,
					Agent:     m.Agent,
					State:     run.OK,
					Started:   at,
					Ended:     at,
					Text:      child.Result,
				}),
			} {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEndedChildren compares a gateway with 10,000 ended subagents with one
// without any: the time from the start of the process to the hello, and the resident
// memory after the first turns.
func BenchmarkEndedChildren(b *testing.B) {
	url, _ := mock(b)
	var dirs [2]string
	for i := range dirs {
		dirs[i] = b.TempDir()
		writeConfig(b, dirs[i], served(url))
		p := spawn(b, dirs[i], "") // the state directory exists
		p.stop(b)
	}
	endedChildren(b, dirs[1], 10_000)
	var starts [2][]time.Duration
	var resident [2]float64
	measure := func(i int, rest bool) {
		at := time.Now()
		p := spawn(b, dirs[i], "")
		cl, err := client.Dial(context.Background(), client.Options{Dial: dial(dirs[i])})
		if err != nil {
			b.Fatal(err)
		}
		starts[i] = append(starts[i], time.Since(at))
		if rest {
			tc := &Client{Client: cl, t: b}
			for range 10 {
				tc.Ask("main", "hi")
			}
			cl.Close()
			time.Sleep(8 * time.Second)
			resident[i] = memory(b, p.Process.Pid, "Rss")
		}
		cl.Close()
		p.stop(b)
	}
	for b.Loop() {
		for n := range 10 { // alternately, and each of them first as often as the other
			measure(n%2, false)
			measure(1-n%2, false)
		}
		measure(0, true)
		measure(1, true)
	}
	b.ReportMetric(quantile(starts[0], 0.5), "start-without-ms")
	b.ReportMetric(quantile(starts[1], 0.5), "start-with-ms")
	b.ReportMetric(quantile(starts[1], 0.5)/quantile(starts[0], 0.5), "start-ratio")
	b.ReportMetric(resident[0], "resident-without-MB")
	b.ReportMetric(resident[1], "resident-with-MB")
	b.ReportMetric(resident[1]/resident[0], "resident-ratio")
	b.ReportMetric(0, "ns/op")
}
