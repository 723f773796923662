package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// callOutcome is the outcome of a call.
type callOutcome string

const (
	ran     callOutcome = "ran"
	warned  callOutcome = "warned"
	blocked callOutcome = "blocked"
	stopped callOutcome = "stopped"
)

// callOutcomes executes calls one after the other and returns their outcomes. If turns is
// set, each call has its own turn.
func callOutcomes(t *testing.T, v *invoke.View, turns bool, calls ...llm.ToolCall) []callOutcome {
	t.Helper()
	var out []callOutcome
	for _, c := range calls {
		if turns {
			v.Turn()
		}
		r, err := v.Invoke(t.Context(), c, nil)
		switch {
		case errors.Is(err, tool.ErrStop):
			out = append(out, stopped)
		case err != nil:
			t.Fatal(err)
		case strings.Contains(text(r), `"error":"blocked`):
			out = append(out, blocked)
		case strings.Contains(text(r), "[Warning"):
			out = append(out, warned)
		default:
			out = append(out, ran)
		}
	}
	return out
}

// want checks that the nth call, counted from 1, is the first one with the callOutcome;
// 0: none is.
func want(t *testing.T, fs []callOutcome, f callOutcome, n int) {
	t.Helper()
	for i, got := range fs {
		if got != f {
			continue
		}
		if i+1 != n {
			t.Errorf("first %s is call %d, want %d", f, i+1, n)
		}
		return
	}
	if n > 0 {
		t.Errorf("none %s, want call %d: %v", f, n, fs)
	}
}

func times(n int, c ...llm.ToolCall) []llm.ToolCall {
	var cs []llm.ToolCall
	for range n {
		cs = append(cs, c...)
	}
	return cs
}

func TestLoopDetection(t *testing.T) {
	t.Parallel()
	executor := func() *invoke.Executor { return invoke.New(invoke.Options{}) }
	same := open("same", nil)
	n := 0
	count := open("count", func(context.Context, tool.Call) (tool.Result, error) {
		n++
		return tool.Text(fmt.Sprint(n)), nil
	})
	bad := open("bad", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("no") })
	a, b := call("same", `{"x":1}`), call("same", `{"x":2}`)

	t.Run("LOOPDET-01 a warning after 10 calls, a block after 20, and the end of the run after 30 without progress",
		func(t *testing.T) {
			fs := callOutcomes(t, executor().For(scope(same)), false, times(40, a)...)
			want(t, fs, warned, 10)
			want(t, fs, blocked, 21)
			want(t, fs, stopped, 32) // the first call had a new result; the next thirty did not
		})
	t.Run("LOOPDET-01 thirty different calls without progress end the run", func(t *testing.T) {
		mix := []llm.ToolCall{call("same", `{"x":1}`), call("same", `{"x":2}`), call("same", `{"x":3}`)}
		fs := callOutcomes(t, executor().For(scope(same)), true, times(15, mix...)...)
		want(t, fs, blocked, 0)
		want(t, fs, stopped, 34) // three results were new
	})
	t.Run("TH-08 after a block the model has one more turn, then the run ends", func(t *testing.T) {
		fs := callOutcomes(t, executor().For(scope(same)), true, append(times(21, a), b, a)...)
		want(t, fs, blocked, 21)
		want(t, fs, stopped, 23)
		if fs[21] != ran {
			t.Errorf("another call after the block: %s", fs[21])
		}
	})
	t.Run("the rest of a batch is blocked with the call", func(t *testing.T) {
		v := executor().For(scope(same))
		callOutcomes(t, v, true, times(20, a)...)
		v.Turn()
		if fs := callOutcomes(t, v, false, a, b); fs[0] != blocked || fs[1] != blocked {
			t.Errorf("got %v", fs)
		}
	})
	t.Run("LOOPDET-02 TH-09 calls with changing results are not a loop", func(t *testing.T) {
		for i, f := range callOutcomes(t, executor().For(scope(count)), true,
			times(60, call("count", `{"action":"poll"}`))...) {
			if f != ran {
				t.Fatalf("call %d %s", i+1, f)
			}
		}
	})
	t.Run("LOOPDET-03 two alternating calls are a loop", func(t *testing.T) {
		var o invoke.LoopOptions
		off := false
		o.Detectors.GenericRepeat = &off
		s := scope(same)
		s.Loop = o
		fs := callOutcomes(t, executor().For(s), true, times(20, a, b)...)
		want(t, fs, warned, 10)
		want(t, fs, blocked, 21)
		r, _ := executor().For(s).Invoke(t.Context(), a, nil)
		if r.IsError {
			t.Errorf("another run: %s", text(r))
		}
	})
	t.Run("LOOPDET-04 polling without changes is a loop with its own detector", func(t *testing.T) {
		s := scope(&fake{spec: tool.Spec{Name: "process", Volatile: []string{"pid", "ms"}},
			run: func(context.Context, tool.Call) (tool.Result, error) {
				n++
				r := tool.Text("running")
				r.Details = json.RawMessage(fmt.Sprintf(`{"pid":%d,"ms":%d,"state":"running"}`, n, n))
				return r, nil
			}})
		off := false
		s.Loop.Detectors.GenericRepeat, s.Loop.Detectors.PingPong = &off, &off
		poll := call("process", `{"action":"poll","id":"1"}`)
		v := executor().For(s)
		want(t, callOutcomes(t, v, true, times(9, poll)...), warned, 0)
		r, _ := v.Invoke(t.Context(), poll, nil)
		if !strings.Contains(text(r), "process has polled 10 times") {
			t.Errorf("got %q", text(r))
		}
		want(t, callOutcomes(t, v, true, times(11, poll)...), blocked, 11)
	})
	t.Run("one call again and again, or a third one, does not alternate", func(t *testing.T) {
		off := false
		s := scope(same)
		s.Loop.Detectors.GenericRepeat = &off
		want(t, callOutcomes(t, executor().For(s), true, times(25, a)...), warned, 0)
		c := call("same", `{"x":3}`)
		fs := callOutcomes(t, executor().For(s), true, append(times(7, a, b), c, a)...)
		want(t, fs, warned, 10)
		if fs[14] != ran || fs[15] != ran {
			t.Errorf("another call after 14: %s, then %s", fs[14], fs[15])
		}
	})
	t.Run("LOOPDET-05 thresholds must rise", func(t *testing.T) {
		for _, o := range []invoke.LoopOptions{
			{WarningThreshold: 20, CriticalThreshold: 10, BreakerThreshold: 30},
			{WarningThreshold: 10, CriticalThreshold: 10},
			{CriticalThreshold: 30},
			{WarningThreshold: 1},
			{HistorySize: 5},
		} {
			if o.Validate() == nil {
				t.Errorf("%+v is valid", o)
			}
		}
		if err := (invoke.LoopOptions{}).Validate(); err != nil {
			t.Errorf("the defaults: %v", err)
		}
	})
	t.Run("LOOPDET-06 a new run counts from zero", func(t *testing.T) {
		d := executor()
		want(t, callOutcomes(t, d.For(scope(same)), true, times(15, a)...), warned, 10)
		s := scope(same)
		s.Run = "next"
		want(t, callOutcomes(t, d.For(s), true, times(10, a)...), warned, 10)
		want(t, callOutcomes(t, d.For(scope(same)), true, times(6, a)...), blocked, 6) // the first run continues its count
	})
	t.Run("LOOPDET-08 failures count like results", func(t *testing.T) {
		v := executor().For(scope(bad))
		for _, c := range []llm.ToolCall{call("bad", "{}")} {
			fs := callOutcomes(t, v, true, times(21, c)...)
			want(t, fs, warned, 10)
			want(t, fs, blocked, 21)
		}
		fs := callOutcomes(t, executor().For(scope(bad)), true, times(21, call("nothing", "{}"))...)
		want(t, fs, warned, 10)
		want(t, fs, blocked, 21)
	})
	t.Run("LOOPDET-09 the arguments after the hooks count", func(t *testing.T) {
		d := invoke.New(invoke.Options{Hooks: points(nil,
			[]hook.Before{{Func: func(context.Context, hook.Call) (hook.Verdict, error) {
				return hook.Verdict{Args: json.RawMessage(`{"x":0}`)}, nil
			}}})})
		var cs []llm.ToolCall
		for i := range 21 {
			cs = append(cs, call("same", fmt.Sprintf(`{"x":%d}`, i)))
		}
		fs := callOutcomes(t, d.For(scope(same)), true, cs...)
		want(t, fs, warned, 10)
		want(t, fs, blocked, 21)
	})
	t.Run("it can be disabled", func(t *testing.T) {
		s := scope(same)
		off := false
		s.Loop.Enabled = &off
		want(t, callOutcomes(t, executor().For(s), true, times(40, a)...), warned, 0)
	})
	t.Run("the order of arguments does not matter", func(t *testing.T) {
		want(t, callOutcomes(t, executor().For(scope(same)), true, times(5, call("same", `{"a":1,"b":2}`),
			call("same", `{ "b":2, "a":1 }`))...), warned, 10)
	})
}

func TestCompactionLoop(t *testing.T) {
	t.Parallel()
	same, other := open("same", nil),
		open("other", func(context.Context, tool.Call) (tool.Result, error) { return tool.Text("another"), nil })
	a, b := call("same", `{"x":1}`), call("other", `{}`)
	run := func(s invoke.Scope, calls ...llm.ToolCall) []callOutcome {
		x := invoke.New(invoke.Options{})
		v := x.For(s)
		before := callOutcomes(t, v, true, a, a)
		x.Compacted(s.Run)
		return append(before, callOutcomes(t, v, true, calls...)...)
	}
	t.Run("three equal calls after a compaction end the run", func(t *testing.T) {
		want(t, run(scope(same, other), times(5, a)...), stopped, 6)
	})
	t.Run("a file that is read again is no loop", func(t *testing.T) {
		want(t, run(scope(same, other), a, a, b, a, a, a, a), stopped, 0)
	})
	t.Run("the guard can be switched off", func(t *testing.T) {
		s := scope(same, other)
		s.Loop.PostCompaction.Enabled = new(bool)
		want(t, run(s, times(5, a)...), stopped, 0)
	})
	t.Run("its window can be set", func(t *testing.T) {
		s := scope(same, other)
		s.Loop.PostCompaction.WindowSize = 5
		want(t, run(s, times(7, a)...), stopped, 8)
	})
}
