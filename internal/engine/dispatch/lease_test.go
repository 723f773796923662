package dispatch_test

import (
	"context"
	"log/slog"
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

// TestSupersededByInterrupt interrupts a run in one of two processes that share a
// store. The process that began the run is stopped until its leases have ended, and
// continues it after the interruption.
func TestSupersededByInterrupt(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"the result of a tool", "the start of a tool", "an answer"} {
		t.Run("LOOP-10 a run that was superseded by an interrupt cannot append "+point, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reached, resume := make(chan struct{}), make(chan struct{})
				var stopped, done atomic.Bool
				stopAt := func(at string) { // every goroutine of the process stops at its next point
					if at == point && !done.Swap(true) {
						stopped.Store(true)
						close(reached)
					}
					if stopped.Load() {
						<-resume
					}
				}
				var acts atomic.Int64
				act := newTool("act", tool.Acts, func(context.Context, tool.Call) (tool.Result, error) {
					acts.Add(1)
					stopAt("the result of a tool")
					return tool.Text("late"), nil
				})
				step := stepOf("act")
				old := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
					if point == "an answer" {
						stopAt(point)
						return llmtest.Say("late")
					}
					return step(n, r)
				})
				// The model of the other process does not answer the old run.
				model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
					if last := r.Messages[len(r.Messages)-1].PlainText(); last == "stop that" {
						return llmtest.Say("stopped")
					}
					return llmtest.Step{Parts: []llm.Part{llm.Text("?")}, Delay: time.Hour}
				})
				st := power.New(t).Open(t)
				a := share(t, 1, old, act)
				a.step = func(s string) {
					stopAt(map[string]string{"tool.start": "the start of a tool"}[s])
				}
				a.startOn(st)
				defer a.stop()
				b := share(t, 2, model, newTool("act", tool.Acts, nil)).startOn(st)
				b.q.Mode = queue.Interrupt
				defer b.stop()
				proceed := sync.OnceFunc(func() { stopped.Store(false); close(resume) })
				defer proceed()
				a.send("m1", "use it")
				<-reached
				time.Sleep(time.Second) // only newer messages interrupt
				b.send("m2", "stop that")
				time.Sleep(2 * ttl)
				if r := b.wait("m2"); r.Text != "stopped" || r.Replaces != "m1" {
					t.Fatalf("the newer run is %s with %q and replaces %q", r.State, r.Text, r.Replaces)
				}
				if r := b.wait("m1"); r.State != run.Superseded {
					t.Fatalf("the older run is %s: %s", r.State, r.Error)
				}
				before, acted := b.lines(), acts.Load()
				proceed()
				time.Sleep(ttl)
				if diff := cmp.Diff(before, b.lines()); diff != "" {
					t.Errorf("the older run wrote:\n%s", diff)
				}
				if strings.Contains(strings.Join(before, "\n"), "late") {
					t.Errorf("the transcript contains its output:\n%s", strings.Join(before, "\n"))
				}
				if acts.Load() != acted {
					t.Error("the older run started a tool")
				}
				if r := b.wait("m1"); r.State != run.Superseded {
					t.Errorf("the older run is %s now: %s", r.State, r.Error)
				}
				for _, e := range a.seen(chela.StreamLifecycle, chela.PhaseEnd) {
					if e.End.Outcome != run.Superseded.Outcome() || e.End.Text != "" {
						t.Errorf("the clients of its process saw the end %+v", e.End)
					}
				}
			})
		})
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
			if _, err := dispatch.Defer(st, owner, strings.TrimSpace, func(queue.Item) {})(t.Context(),
				tool.Call{ID: owner, Session: key, Run: "m1"}, text); err != nil {
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
