package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// crash makes the engine die at the nth call of a step: the store refuses all
// further writes.
type crash struct {
	step string
	n    int64

	at   atomic.Int64
	dead atomic.Bool
	died chan struct{}
	store.Store
}

func newCrash(step string, n int64) *crash {
	return &crash{step: step, n: n, died: make(chan struct{})}
}

var errDead = errors.New("the process is dead")

func (c *crash) hook(step string) {
	if step != c.step || c.at.Add(1) != c.n || c.dead.Swap(true) {
		return
	}
	close(c.died)
}

// wrap returns the store of the engine that dies.
func (c *crash) wrap(s store.Store) store.Store { c.Store = s; return c }

func (c *crash) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if c.dead.Load() {
		return errDead
	}
	return c.Store.Update(ctx, s, f)
}

// crashAt calls send, kills the engine at the step, and starts another one.
func (h *harness) crashAt(step string, n int64, send func()) {
	h.t.Helper()
	c := newCrash(step, n)
	h.step, h.wrap, h.drain = c.hook, c.wrap, time.Millisecond
	h.open()
	send()
	waittest.For(h.t, "the step "+step, c.died)
	h.stop()
	h.step, h.wrap, h.drain = nil, nil, 0
	h.mu.Lock()
	h.events = nil
	h.mu.Unlock()
	h.open()
}

func TestRecover(t *testing.T) {
	t.Run("SESS-04 the next turn's request contains the earlier turns after a restart", func(t *testing.T) {
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step { return llmtest.Say("answer") })
		h := newHarness(t, model).open()
		h.ask("m1", "first")
		h.stop()
		h.open()
		h.ask("m2", "second")
		var got []string
		reqs := model.Requests()
		for _, m := range reqs[len(reqs)-1].Messages {
			got = append(got, string(m.Role)+": "+m.PlainText())
		}
		if diff := cmp.Diff([]string{"user: first", "assistant: answer", "user: second"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("REC-01 killed during a tool call, the turn resumes once with a synthetic result", func(t *testing.T) {
		act := newTool("act", tool.Acts, nil)
		h := newHarness(t, asksOnce("act"), act)
		h.crashAt("tool.run", 1, func() { h.send("m1", "use it") })
		r := h.wait("m1")
		if r.State != run.OK || !strings.Contains(r.Text, "outcome is unknown") || r.Attempts != 2 {
			t.Errorf("run %s after %d attempts: %q %s", r.State, r.Attempts, r.Text, r.Error)
		}
		if act.count() > 1 {
			t.Errorf("ran %d times", act.count())
		}
		if n := len(h.seen(chela.StreamLifecycle, chela.PhaseEnd)); n != 1 {
			t.Errorf("%d ends", n)
		}
	})
	t.Run("killed before a planned call started, it runs once", func(t *testing.T) {
		act := newTool("act", tool.Acts, nil)
		h := newHarness(t, asksOnce("act"), act)
		h.crashAt("tool.start", 1, func() { h.send("m1", "use it") })
		if r := h.wait("m1"); r.Text != "got: ran act" || act.count() != 1 {
			t.Errorf("answer %q (%s), ran %d times", r.Text, r.Error, act.count())
		}
	})
	t.Run("a call that only reads is repeated", func(t *testing.T) {
		look := newTool("look", tool.Reads, nil)
		h := newHarness(t, asksOnce("look"), look)
		h.crashAt("tool.end", 1, func() { h.send("m1", "use it") })
		if r := h.wait("m1"); r.Text != "got: ran look" || look.count() != 2 {
			t.Errorf("answer %q (%s), ran %d times", r.Text, r.Error, look.count())
		}
	})
	t.Run("killed before the answer was stored, the model is asked again and answers once", func(t *testing.T) {
		h := newHarness(t, asksOnce("none"))
		h.crashAt("run.end", 1, func() { h.send("m1", "hi") })
		h.wait("m1")
		want := []string{"user: hi", "notice: interrupted by a restart; resuming", "assistant: heard: hi"}
		if diff := cmp.Diff(want, h.lines()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a run completes before the engine is stopped", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Step{Parts: []llm.Part{llm.Text("late")}, Delay: 300 * time.Millisecond})
		h := newHarness(t, model)
		h.drain = waittest.Limit
		h.open()
		h.send("m1", "hi")
		h.until("the model is asked", func() bool { return len(model.Requests()) > 0 })
		h.stop()
		h.open()
		if r := h.wait("m1"); r.Text != "late" || r.Attempts != 1 {
			t.Errorf("answer %q after %d attempts", r.Text, r.Attempts)
		}
	})
	t.Run("REC-06 after a call with an unknown outcome only tools that read, for one model call", func(t *testing.T) {
		act, look := newTool("act", tool.Acts, nil), newTool("look", tool.Reads, nil)
		var mu sync.Mutex
		var offered [][]string
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			var names []string
			for _, s := range r.Tools {
				names = append(names, s.Name)
			}
			mu.Lock()
			offered = append(offered, names)
			mu.Unlock()
			switch n {
			case 0:
				return llmtest.Call("c1", "act", `{}`)
			case 1:
				return llmtest.Call("c2", "look", `{}`)
			}
			return llmtest.Say("done")
		})
		h := newHarness(t, model, act, look)
		h.crashAt("tool.run", 1, func() { h.send("m1", "use it") })
		if r := h.wait("m1"); r.Text != "done" {
			t.Fatalf("answer %q (%s)", r.Text, r.Error)
		}
		want := [][]string{{"act", "look"}, {"look"}, {"act", "look"}}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, offered); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("killed between an interruption and the next run, that run replaces the interrupted one", func(t *testing.T) {
		model, hold, begun, release := holds()
		defer release()
		h := newHarness(t, model, hold)
		h.apart, h.q.Mode = true, queue.Interrupt
		h.crashAt("run.begin", 2, func() {
			h.send("m1", "hold")
			<-begun
			h.send("m2", "hello")
		})
		if r := h.wait("m2"); r.Text != "re: hello" || r.Replaces != "m1" {
			t.Errorf("run is %s with %q and replaces %q", r.State, r.Text, r.Replaces)
		}
		if r := h.ask("m3", "again"); r.Replaces != "" {
			t.Errorf("the run after it replaces %q", r.Replaces)
		}
	})
	t.Run("a queued message is answered after a restart", func(t *testing.T) {
		h := newHarness(t, asksOnce("none"))
		h.apart = true
		h.crashAt("run.begin", 1, func() { h.send("m1", "hi") })
		if r := h.wait("m1"); r.Text != "heard: hi" || r.Attempts != 1 {
			t.Errorf("answer %q after %d attempts", r.Text, r.Attempts)
		}
	})
	t.Run("REC-03 a turn whose profile crashes the process is given up after 3 attempts", func(t *testing.T) {
		h := newHarness(t, asksOnce("none"))
		resolved := 0
		die := func(step string) {
			c := newCrash(step, 1)
			h.step, h.wrap, h.drain = c.hook, c.wrap, time.Millisecond
			h.resolve = func(context.Context, session.Meta, run.Run) { resolved++; c.hook("resolve") }
			h.open()
			if step == "run.execute" {
				h.send("m1", "hi")
			}
			<-c.died
			h.stop()
		}
		for _, step := range []string{"run.execute", "resolve", "resolve"} {
			die(step)
		}
		h.step, h.wrap, h.drain = nil, nil, 0
		h.open()
		if r := h.wait("m1"); r.State != run.Failed || r.Attempts != 3 || !strings.Contains(r.Error, "interrupted 3 times") {
			t.Errorf("run %s after %d attempts: %s", r.State, r.Attempts, r.Error)
		}
		if resolved != 3 {
			t.Errorf("the profile was resolved %d times, want once for each attempt", resolved)
		}
	})
	t.Run("a call that was repeated is not reported as not run when its turn is given up", func(t *testing.T) {
		put := newTool("put", tool.Writes, nil)
		put.spec.Keyed = true
		h := newHarness(t, asksOnce("put"), put)
		for n := range 3 {
			c := newCrash("tool.end", 1)
			h.step, h.wrap, h.drain = c.hook, c.wrap, time.Millisecond
			h.open()
			if n == 0 {
				h.send("m1", "use it")
			}
			<-c.died
			h.stop()
		}
		h.step, h.wrap, h.drain = nil, nil, 0
		h.open()
		if r := h.wait("m1"); r.State != run.Failed || put.count() != 3 {
			t.Errorf("run %s, the tool ran %d times", r.State, put.count())
		}
		results := slices.DeleteFunc(h.lines(), func(l string) bool { return !strings.HasPrefix(l, "tool") })
		if len(results) != 1 || !strings.Contains(results[0], "outcome is unknown") {
			t.Errorf("results %q", results)
		}
	})
}
