package dispatch_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/test/power"
)

// ttl is how long the leases of a stopped process last in these tests.
const ttl = 30 * time.Second

// share returns an engine that shares a store with others. n makes its owner
// ids unique.
func share(t *testing.T, n int, model llm.Provider, tools ...tool.Tool) *harness {
	t.Helper()
	h := newHarness(t, model, tools...)
	h.ttl, h.boots = ttl, 100*n
	h.q.Mode = queue.Followup
	return h
}

// startOn starts the engine on a store, in a synctest bubble.
func (h *harness) startOn(st store.Store) *harness {
	h.start(st, slog.New(slog.DiscardHandler), func() error { return nil })
	synctest.Wait() // until it accepts reservations
	return h
}

// TestStoppedProcess stops one of two processes in the middle of a run, for longer
// than its leases last, and continues it.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point    string
		answer   string // of the run that the other process took over
		attempts int
	}{
		{"tool", "outcome is unknown", 2},
		{"model", "got: ran act", 2},
		{"tool.start", "got: ran act", 2},
		{"run.end", "got: ran act", 2},
	} {
		for _, takenOver := range []bool{true, false} {
			name := "at " + c.point + map[bool]string{true: ", taken over", false: ", alone"}[takenOver]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var stopped, done atomic.Bool
					reached, resume := make(chan struct{}), make(chan struct{})
					stopAt := func(point string) { // every goroutine of the process stops at its next point
						if point == c.point && !done.Swap(true) {
							stopped.Store(true)
							close(reached)
						}
						if stopped.Load() {
							<-resume
						}
					}
					var acts atomic.Int64
					act := func(point func(string)) *fakeTool {
						return newTool("act", tool.Acts, func(context.Context, tool.Call) (tool.Result, error) {
							acts.Add(1)
							point("tool")
							return tool.Text("ran act"), nil
						})
					}
					model := func(point func(string)) llm.Provider {
						step := stepOf("act")
						return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
							point("model")
							return step(n, r)
						})
					}
					st := power.New(t).Open(t)
					a := share(t, 1, model(stopAt), act(stopAt))
					a.step = stopAt
					a.startOn(st)
					defer a.stop()
					nothing := func(string) {}
					other := a
					if takenOver {
						other = share(t, 2, model(nothing), act(nothing)).startOn(st)
						defer other.stop()
					}
					a.send("m1", "use it")
					select {
					case <-reached:
					case <-time.After(10 * time.Second):
						t.Fatalf("%s was not reached", c.point)
					}
					if takenOver {
						other.send("m2", "hello")
					}
					time.Sleep(ttl / 2)
					if takenOver && len(other.seen(chela.StreamLifecycle, chela.PhaseStart)) != 0 {
						t.Error("taken over while the owner's leases last")
					}
					time.Sleep(2 * ttl)
					stopped.Store(false)
					close(resume)
					time.Sleep(ttl)
					r := other.wait("m1")
					want, attempts := c.answer, c.attempts
					if !takenOver { // the run continues where it was
						want, attempts = "got: ran act", 1
					}
					if r.State != run.OK || !strings.Contains(r.Text, want) || r.Attempts != attempts {
						t.Errorf("run is %s after %d attempts: %q %s", r.State, r.Attempts, r.Text, r.Error)
					}
					if takenOver {
						if r := other.wait("m2"); r.Text != "heard: hello" {
							t.Errorf("the message that waited: %s, %q", r.State, r.Text)
						}
					}
					if n := acts.Load(); n != 1 {
						t.Errorf("the tool ran %d times", n)
					}
					if r := a.ask("m3", "again"); r.Text != "heard: again" {
						t.Errorf("the next run: %s, %q", r.State, r.Text)
					}
					answers := 0
					for _, l := range other.lines() {
						if strings.HasPrefix(l, "assistant: got: ") {
							answers++
						}
					}
					if answers != 1 {
						t.Errorf("%d answers:\n%s", answers, strings.Join(other.lines(), "\n"))
					}
				})
			})
		}
	}
}

// TestStopInAnotherProcess stops a run of another process.
func TestStopInAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		slow := newTool("act", tool.Acts, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			close(begun)
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		st := power.New(t).Open(t)
		a := share(t, 1, asksOnce("act"), slow).startOn(st)
		defer a.stop()
		b := share(t, 2, asksOnce("act"), slow).startOn(st)
		defer b.stop()
		id := a.send("m1", "use it")
		<-begun
		if ids, err := b.con.Abort(t.Context(), key, ""); err != nil || len(ids) != 1 || ids[0] != id {
			t.Errorf("abort: %v, %v", ids, err)
		}
		if r := a.wait(id); r.State != run.Aborted {
			t.Errorf("run is %s: %s", r.State, r.Error)
		}
	})
}

// TestDeferredOfDeadOwner restarts one of two processes that have deferred events.
func TestDeferredOfDeadOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := power.New(t).Open(t)
		a := share(t, 1, asksOnce("none")).startOn(st)
		b := share(t, 2, asksOnce("none")).startOn(st)
		defer b.stop()
		a.ask("m1", "hi")
		for owner, text := range map[string]string{"boot101": "of a", "boot201": "of b"} {
			if _, err := dispatch.Defer(st, owner)(t.Context(), tool.Call{ID: owner, Session: key, Run: "m1"}, text); err != nil {
				t.Fatal(err)
			}
		}
		a.stop()
		a.startOn(st)
		defer a.stop()
		time.Sleep(2 * ttl)
		var deferred []queue.Item
		a.view(func(r store.Reader) (err error) { deferred, err = r.Queue().Deferred(); return err })
		if len(deferred) != 1 || deferred[0].Owner != "boot201" {
			t.Errorf("deferred: %+v", deferred)
		}
		all := strings.Join(a.lines(), "\n")
		if strings.Count(all, "user: [System] of a") != 1 || strings.Contains(all, "of b") {
			t.Errorf("transcript:\n%s", all)
		}
	})
}
