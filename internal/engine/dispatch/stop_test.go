package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// faulty is a store of which one commit fails.
type faulty struct {
	store.Store
	in atomic.Int64 // number of commits until the one that fails; 0: none fails
}

func (f *faulty) Update(ctx context.Context, s store.Sync, g func(store.Tx) error) error {
	if f.in.Load() > 0 && f.in.Add(-1) == 0 {
		return errors.New("disk I/O error")
	}
	return f.Store.Update(ctx, s, g)
}

// openFaulty starts the engine on a store of which a commit can be made to fail.
func (h *harness) openFaulty() *faulty {
	f := new(faulty)
	h.outer = func(s store.Store) store.Store { f.Store = s; return f }
	h.open()
	return f
}

func TestStopCommand(t *testing.T) {
	t.Run("L3 a stop that was accepted ends the run, even if the next commit fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, llmtest.NewScript(llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangBody}}))
			f := h.openFaulty()
			defer h.stop()
			id := h.send("m1", "hi")
			synctest.Wait() // the model hangs
			f.in.Store(2)
			h.send("stop", "/stop")
			if r := h.wait(id); r.State != run.Aborted {
				t.Errorf("the run is %s: %s", r.State, r.Error)
			}
		})
	})
	t.Run("/retry sends a message again whose run was stopped during its answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			half := llmtest.Say("I begin with a long answer")
			half.Fault.Hang = llmtest.HangMiddle
			h := newHarness(t, llmtest.NewScript(half, llmtest.Say("heard"))).open()
			defer h.stop()
			id := h.send("m1", "hi")
			synctest.Wait() // a part has arrived
			if _, err := h.con.Abort(t.Context(), key, id); err != nil {
				t.Fatal(err)
			}
			if r := h.wait(id); r.State != run.Aborted || r.Text == "" {
				t.Fatalf("the run is %s with %q, want a part of the answer", r.State, r.Text)
			}
			if r := h.ask("m2", "/retry"); r.Text != "heard" {
				t.Errorf("/retry: run %s %q %s", r.State, r.Text, r.Error)
			}
		})
	})
	t.Run("D3 an event that waits for a suspended run is handled after a stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHarness(t, asksOnce("act"), mustAsk("act")).open()
			defer h.stop()
			h.send("m1", "use it")
			h.suspended()
			err := h.st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
				_, err := tx.Queue().Put(queue.Item{
					ID: "e1", Key: "e1", Session: key, Kind: queue.Event, State: queue.Waiting, Principal: chela.Owner("test"),
					Origin: chela.Origin{Kind: chela.OriginProcess}, Inbound: chela.Inbound{Text: "it has ended"},
				})
				tx.Wake(store.Topic{Kind: store.TopicQueue, Session: key})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := len(h.waiting()); n != 1 {
				t.Fatalf("%d items wait, want the event", n)
			}
			h.send("stop", "/stop")
			if r := h.wait("e1"); r.State != run.OK {
				t.Errorf("the run of the event is %s: %s", r.State, r.Error)
			}
		})
	})
}

func TestStopAfterCrash(t *testing.T) {
	t.Run("D5 the outcome of a call that had started is unknown, and a call that had not started was not run",
		func(t *testing.T) {
			var h *harness
			act := newTool("act", tool.Acts, func(context.Context, tool.Call) (tool.Result, error) {
				err := h.st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
					_, err := tx.Runs().RequestStop("m1", "stopped")
					return err
				})
				return tool.Text("acted"), err
			})
			h = newHarness(t, llmtest.NewScript(llmtest.Calls(llmtest.ToolCall("c1", "act", "{}"),
				llmtest.ToolCall("c2", "act", "{}"))), act)
			h.crashAt("tool.end", 1, func() { h.send("m1", "hi") })
			if r := h.wait("m1"); r.State != run.Aborted {
				t.Errorf("the run is %s: %s", r.State, r.Error)
			}
			var results []string
			for _, l := range h.lines() {
				if text, ok := strings.CutPrefix(l, "toolResult: "); ok {
					results = append(results, text)
				}
			}
			if len(results) != 2 || !strings.Contains(results[0], "outcome is unknown") ||
				!strings.HasPrefix(results[1], "Not run") {
				t.Errorf("results %q", results)
			}
		})
}

func TestUnfinishedWorkIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, llmtest.NewScript(llmtest.Say("hello")))
		h.apart = true
		h.open()
		put := func(it queue.Item) {
			t.Helper()
			if err := h.st.Update(t.Context(), store.Synced,
				func(tx store.Tx) error { _, err := tx.Queue().Put(it); return err }); err != nil {
				t.Fatal(err)
			}
		}
		put(queue.Item{
			ID:        "e1",
			Key:       "e1",
			Session:   key,
			Kind:      queue.Event,
			State:     queue.Deferred,
			Owner:     "an earlier process",
			Principal: chela.Owner("test"),
			Inbound:   chela.Inbound{Text: "it was lost"},
		})
		h.stop()
		f := new(faulty)
		f.in.Store(1) // the release of the event
		h.outer = func(s store.Store) store.Store { f.Store = s; return f }
		h.open()
		defer h.stop()
		if r := h.wait("e1"); r.State != run.OK {
			t.Errorf("the run of the event is %s: %s", r.State, r.Error)
		}
	})
}
