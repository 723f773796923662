package invoke_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

var (
	_ agent.Tools  = (*invoke.View)(nil)
	_ agent.Turner = (*invoke.View)(nil)
)

// runLoop runs the agent loop with the view's tools. It returns the results in
// order and the last event.
func runLoop(t *testing.T, m *llmtest.Script, v *invoke.View) (results []string, end agent.Event) {
	t.Helper()
	r := &agent.Request{Model: m, Tools: v, Prompt: llm.Request{Model: "m", Messages: []*llm.Message{llm.User("hi")}}}
	for e := range agent.Run(t.Context(), r) {
		if e.Kind == agent.ToolEnd {
			results = append(results, e.Result.PlainText())
		}
		end = e
	}
	return results, end
}

// TestRun tests the executor together with the agent loop.
func TestRun(t *testing.T) {
	t.Parallel()
	same := open("same", nil)

	t.Run("TOOL-01 TH-06 the run continues after an error", func(t *testing.T) {
		m := llmtest.NewScript(llmtest.Call("1", "bad", "{}"), llmtest.Say("it did not work"))
		bad := open("bad", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("boom") })
		results, end := runLoop(t, m, invoke.New(invoke.Options{}).For(scope(bad)))
		if len(results) != 1 || results[0] != `{"status":"error","tool":"bad","error":"boom"}` || end.Reason != agent.Done {
			t.Errorf("%q, %s", results, end.Reason)
		}
		if last := m.Requests()[1].Messages[2]; !last.IsError || last.CallID != "1" {
			t.Errorf("the model got %+v", last)
		}
	})

	t.Run("TH-08 the model has one more turn after a blocked batch, then the run ends", func(t *testing.T) {
		n := 0
		m := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			n++
			return llmtest.Calls(llmtest.ToolCall(fmt.Sprint(n, "a"), "same", "{}"),
				llmtest.ToolCall(fmt.Sprint(n, "b"), "same", "{}"))
		})
		results, end := runLoop(t, m, invoke.New(invoke.Options{}).For(scope(same)))
		if n != 12 || end.Reason != agent.Stopped || !errors.Is(end.Err, tool.ErrStop) {
			t.Errorf("%d model calls, ended %s: %v", n, end.Reason, end.Err)
		}
		if len(results) != 24 || !strings.Contains(results[20], "20 times") ||
			!strings.Contains(results[21], "rest of its batch") ||
			!strings.Contains(results[22], "even after it was blocked") || results[23] != agent.NotRunText {
			t.Errorf("%d results, the last: %q", len(results), results[len(results)-4:])
		}
	})

	t.Run("LOOP-23 reads overlap, writes never do, and results keep call order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var reading, writing, mostReads, mostWrites atomic.Int32
			slow := func(now, most *atomic.Int32) func(context.Context, tool.Call) (tool.Result, error) {
				return func(_ context.Context, c tool.Call) (tool.Result, error) {
					n := now.Add(1)
					most.Store(max(most.Load(), n))
					time.Sleep(time.Second)
					now.Add(-1)
					return tool.Text(c.ID), nil
				}
			}
			rd, wr := open("rd", slow(&reading, &mostReads)), open("wr", slow(&writing, &mostWrites))
			rd.spec.Parallel, wr.spec.Effect = true, tool.Writes
			var calls []llm.ToolCall
			for i, name := range strings.Fields("rd rd rd wr wr rd wr rd rd wr") {
				calls = append(calls, llmtest.ToolCall(fmt.Sprint(i), name, "{}"))
			}
			m := llmtest.NewScript(llmtest.Calls(calls...), llmtest.Say("ok"))
			results, _ := runLoop(t, m, invoke.New(invoke.Options{}).For(scope(rd, wr)))
			if got := strings.Join(results, " "); got != "0 1 2 3 4 5 6 7 8 9" {
				t.Errorf("results %s", got)
			}
			if mostReads.Load() != 3 || mostWrites.Load() != 1 {
				t.Errorf("in parallel: %d reads, %d writes", mostReads.Load(), mostWrites.Load())
			}
		})
	})

	t.Run("the other calls of a suspended group have results", func(t *testing.T) {
		p := &planner{fake: fake{spec: tool.Spec{Name: "exec", Parallel: true}}, plan: func() (tool.Plan, error) {
			return tool.Plan{Effect: tool.Acts, Ask: true, Hash: "h"}, nil
		}}
		s := scope(p, read())
		l := &ledger{}
		s.Ledger = l
		m := llmtest.NewScript(llmtest.Calls(llmtest.ToolCall("1", "exec", "{}"),
			llmtest.ToolCall("2", "read", `{"path":"a"}`)))
		results, end := runLoop(t, m, invoke.New(invoke.Options{}).For(s))
		if len(results) != 1 || results[0] != "ok" || end.Reason != agent.Suspended || len(p.args) != 0 {
			t.Errorf("%q, %s, run %v", results, end.Reason, p.args)
		}
	})
}
