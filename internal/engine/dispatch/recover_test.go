package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// keepDying has one process after another die while it carries out the message m1, until
// its run has ended, and returns that.
func keepDying(h *harness, text string, next func(n int) *crash) run.Run {
	for n := 0; ; n++ {
		c := next(n)
		h.step, h.wrap, h.drain = c.hook, c.wrap, time.Millisecond
		if h.open(); n == 0 {
			h.send("m1", text)
		}
		ended := make(chan run.Run, 1)
		ctx, cancel := context.WithCancel(h.t.Context())
		go func() {
			defer close(ended)
			if r, err := h.con.Wait(ctx, "m1"); err == nil {
				ended <- r
			}
		}()
		var r run.Run
		select {
		case <-c.died:
		case r = <-ended:
		}
		cancel()
		<-ended
		if h.stop(); r.State != "" {
			return r
		}
	}
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
	t.Run("REC-03 a turn whose profile crashes the process is given up after ten starts in ten minutes",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, asksOnce("none"))
				starts, begun := 0, time.Now()
				r := keepDying(h, "hi", func(n int) *crash {
					c := newCrash([]string{"run.execute", "resolve"}[min(n, 1)], 1)
					h.resolve = func(context.Context, session.Meta, run.Run) { starts++; c.hook("resolve") }
					return c
				})
				if r.State != run.Failed || r.Attempts < 10 || r.Attempts != starts || time.Since(begun) < 10*time.Minute ||
					!strings.Contains(r.Error, "/retry") {
					t.Errorf("run %s after %d attempts, %d starts and %s: %s", r.State, r.Attempts, starts, time.Since(begun), r.Error)
				}
				h.step, h.wrap, h.drain, h.resolve = nil, nil, 0, nil
				h.open()
				defer h.stop()
				if r := h.ask("m2", "/retry"); r.Text != "heard: hi" {
					t.Errorf("/retry: run %s %q %s", r.State, r.Text, r.Error)
				}
			})
		})
	for _, c := range []struct{ name, step string }{
		{"before its model is asked", "run.execute"},
		{"before its call starts", "tool.start"},
		{"before its answer is stored", "run.end"},
	} {
		t.Run("messages of other sessions and of the same one go before a run that was interrupted three times "+c.name+
			", and do not see it", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				act := newTool("act", tool.Acts, nil)
				model := asksOnce("act")
				h := newHarness(t, model, act)
				for n := range 3 {
					c := newCrash(c.step, 1)
					h.step, h.wrap, h.drain = c.hook, c.wrap, time.Millisecond
					if h.open(); n == 0 {
						h.send("m1", "use it")
					}
					<-c.died
					h.stop()
				}
				h.step, h.wrap, h.drain = nil, nil, 0
				h.open()
				defer h.stop()
				h.until("the run waits", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseSuspended)) > 0 })
				before := len(model.Requests())
				if r := h.ask("m2", "hello"); r.Text != "heard: hello" || r.Replaces != "" {
					t.Errorf("the next message: run %s %q %s, replaces %q", r.State, r.Text, r.Error, r.Replaces)
				}
				if got := model.Requests()[before].Messages; len(got) != 1 {
					t.Errorf("the model of the next message is sent %d messages, the first is %q", len(got), got[0].PlainText())
				}
				if r := h.wait("m1"); r.State != run.OK || r.Attempts != 4 || act.count() != 1 {
					t.Errorf("the run that waited: %s %q %s after %d attempts; the tool ran %d times", r.State, r.Text, r.Error,
						r.Attempts, act.count())
				}
				if r := h.ask("m3", "bye"); r.Text != "heard: bye" {
					t.Errorf("a later message: run %s %q %s", r.State, r.Text, r.Error)
				}
				var got []string
				reqs := model.Requests()
				for _, m := range reqs[len(reqs)-1].Messages {
					got = append(got, line(session.Entry{Kind: session.KindMessage, Message: m}))
				}
				want := []string{"user: hello", "assistant: heard: hello", "user: use it", "assistant: <act>",
					"toolResult: ran act", "assistant: got: ran act", "user: bye"}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
				if n := strings.Count(strings.Join(h.lines(), "\n"), "user: use it"); n != 1 {
					t.Errorf("the person sees their message %d times", n)
				}
			})
		})
	}
	t.Run("a run that waits for another try can be stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, asksOnce("none"))
			for n := range 3 {
				c := newCrash("run.execute", 1)
				h.step, h.wrap, h.drain = c.hook, c.wrap, time.Millisecond
				if h.open(); n == 0 {
					h.send("m1", "hi")
				}
				<-c.died
				h.stop()
			}
			h.step, h.wrap, h.drain = nil, nil, 0
			h.open()
			defer h.stop()
			h.until("the run waits", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseSuspended)) > 0 })
			h.ask("m2", "hello")
			if _, err := h.con.Abort(t.Context(), key, "m1"); err != nil {
				t.Fatal(err)
			}
			if r := h.wait("m1"); r.State != run.Aborted {
				t.Errorf("run %s %q", r.State, r.Text)
			}
			time.Sleep(time.Hour)
			if n := len(h.waiting()); n != 0 {
				t.Errorf("%d items wait", n)
			}
		})
	})
	t.Run("a call that was repeated is not reported as not run when its turn is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			put := newTool("put", tool.Writes, nil)
			put.spec.Keyed = true
			h := newHarness(t, asksOnce("put"), put)
			r := keepDying(h, "use it", func(int) *crash { return newCrash("tool.end", 1) })
			if r.State != run.Failed || put.count() != r.Attempts {
				t.Errorf("run %s after %d attempts, the tool ran %d times", r.State, r.Attempts, put.count())
			}
			h.step, h.wrap, h.drain = nil, nil, 0
			h.open()
			defer h.stop()
			results := slices.DeleteFunc(h.lines(), func(l string) bool { return !strings.HasPrefix(l, "tool") })
			if len(results) != 1 || !strings.Contains(results[0], "outcome is unknown") {
				t.Errorf("results %q", results)
			}
		})
	})
}
