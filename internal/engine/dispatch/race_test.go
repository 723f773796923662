package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/test/power"
)

// at calls f once, at the first named step.
func (h *harness) at(point string, f func()) {
	done := false
	h.step = func(name string) {
		if name == point && !done {
			done = true
			f()
		}
	}
}

// stopAll stops all work of the session.
func (h *harness) stopAll() {
	if _, err := h.con.Abort(h.t.Context(), key, ""); err != nil {
		h.t.Errorf("stop: %v", err)
	}
}

func TestSecondQuestion(t *testing.T) {
	t.Parallel()
	act := mustAsk("act")
	h := newHarness(t, llmtest.ScriptFunc(func(n int, _ *llm.Request) llmtest.Step {
		if n < 2 {
			return llmtest.Call(fmt.Sprint("c", n), "act", fmt.Sprintf(`{"x":"%d"}`, n))
		}
		return llmtest.Say("both")
	}), act).open()
	id := h.send("m1", "use it twice")
	first := h.pending().ID
	h.decide(first, "allow-once")
	h.until("another approval", func() bool { return h.pending().ID != first })
	h.decide(h.pending().ID, "allow-once")
	if r := h.wait(id); r.Text != "both" || act.count() != 2 {
		t.Errorf("answer %q (%s), ran %d times", r.Text, r.Error, act.count())
	}
}

// TestStopBetween stops everything between reading the rows and acting on them.
func TestStopBetween(t *testing.T) {
	t.Parallel()
	t.Run("a message before its run begins", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, asksOnce("act"))
		h.apart = true
		h.at("run.begin", h.stopAll)
		h.open()
		if r := h.ask("m1", "hello"); r.State != run.Aborted {
			t.Errorf("run is %s with %q", r.State, r.Text)
		}
		if r := h.ask("m2", "again"); r.Text != "heard: again" {
			t.Errorf("answer %q (%s)", r.Text, r.Error)
		}
		if diff := cmp.Diff([]string{"user: again", "assistant: heard: again"}, h.lines()); diff != "" {
			t.Errorf("transcript: %s", diff)
		}
	})
	t.Run("a run before it resumes", func(t *testing.T) {
		t.Parallel()
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act)
		h.at("run.resume", h.stopAll)
		h.open()
		id := h.send("m1", "use it")
		h.decide(h.pending().ID, "allow-once")
		h.wait(id)
		h.until("nothing waits", func() bool { return len(h.waiting()) == 0 })
		if r := h.ask("m2", "hello"); r.Text != "heard: hello" {
			t.Errorf("answer %q (%s)", r.Text, r.Error)
		}
		if r := h.wait(id); r.State != run.Aborted || act.count() != 0 {
			t.Errorf("run is %s, ran %d times", r.State, act.count())
		}
	})
	t.Run("a run before it is suspended", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, asksOnce("act"), mustAsk("act"))
		h.at("run.suspend", h.stopAll)
		h.open()
		if r := h.ask("m1", "use it"); r.State != run.Aborted {
			t.Errorf("run is %s", r.State)
		}
		if n := len(h.seen(chela.StreamApproval, chela.PhaseResolved)); n != 1 {
			t.Errorf("%d approvals were withdrawn, want 1", n)
		}
	})
	t.Run("a run after its first commit", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, asksOnce("act"))
		h.at("run.execute", h.stopAll)
		h.open()
		if r := h.ask("m1", "hello"); r.State != run.Aborted {
			t.Errorf("run is %s with %q", r.State, r.Text)
		}
	})
}

func TestSupersededIsPublished(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksOnce("act"), mustAsk("act")).open()
	id := h.send("m1", "use it")
	h.pending()
	h.suspended()
	h.ask("m2", "hello")
	for _, e := range h.seen(chela.StreamLifecycle, chela.PhaseEnd) {
		if e.Run == id && e.End.Outcome == chela.OutcomeSuperseded {
			return
		}
	}
	t.Error("the end of the run was not published")
}

// TestResetWhileSuspended resets a session with a suspended run.
func TestResetWhileSuspended(t *testing.T) {
	t.Parallel()
	act := mustAsk("act")
	h := newHarness(t, asksOnce("act"), act).open()
	id := h.send("m1", "use it")
	q := h.pending()
	h.suspended()
	err := h.st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		_, err := session.Reset(tx.Sessions(), key, "idle", time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.ask("m2", "hello")
	if diff := cmp.Diff([]string{"user: hello", "assistant: heard: hello"}, h.lines()); diff != "" {
		t.Errorf("the new transcript: %s", diff)
	}
	if r := h.wait(id); r.State != run.Aborted {
		t.Errorf("the run of the old one is %s", r.State)
	}
	if n := len(h.seen(chela.StreamApproval, chela.PhaseResolved)); n != 1 {
		t.Errorf("observers are told %d times that the approval was withdrawn", n)
	}
	if _, err := h.con.Decide(owner(t.Context()), q.ID, "allow-once"); chela.CodeOf(err) != chela.CodeConflict {
		t.Errorf("the withdrawn approval was accepted: %v", err)
	}
}

// spending is a model that is paid for a call without an answer before each answer.
type spending struct{ llm.Provider }

func (s spending) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if !yield(llm.Event{Kind: llm.Spent, Usage: llm.Usage{Input: 1000}}, nil) {
			return
		}
		for e, err := range s.Provider.Stream(ctx, r) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestResetWhileItRuns resets a session while a model is asked. What the run uses is
// stored, but not counted in the new conversation.
func TestResetWhileItRuns(t *testing.T) {
	t.Parallel()
	reset := func(h *harness) {
		err := h.st.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
			_, err := session.Reset(tx.Sessions(), key, "new", time.Now())
			return err
		})
		if err != nil {
			h.t.Error(err)
		}
	}
	for _, c := range []struct {
		name  string
		text  string
		reset func(h *harness)
		spent bool
		state run.State
		calls int64
	}{
		{"an answer", "hello", reset, false, run.OK, 1},
		{"a tool call", "use it", reset, false, run.OK, 2},
		{"a call without an answer", "hello", reset, true, run.OK, 2},
		{"a stop", "hello", func(h *harness) { reset(h); h.stopAll() }, false, run.Aborted, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var h *harness
			step := stepOf("act")
			var model llm.Provider = llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				s := step(n, r)
				if n == 0 {
					c.reset(h)
				}
				if c.state == run.Aborted && n == 0 {
					s.Fault.Hang = llmtest.HangMiddle
				}
				return s
			})
			if c.spent {
				model = spending{model}
			}
			h = newHarness(t, model, newTool("act", tool.Reads, nil))
			h.p.Model.Price = &llm.Price{Input: 1, Output: 1}
			h.open()
			if r := h.ask("m1", c.text); r.State != c.state {
				t.Errorf("the run is %s: %s", r.State, r.Error)
			}
			read := func(id chela.RunID) (m session.Meta, sum usage.Sum) {
				h.view(func(r store.Reader) (err error) {
					if sum, err = r.Usage().OfRun(id); err != nil {
						return err
					}
					m, err = r.Sessions().Get(key)
					return err
				})
				return m, sum
			}
			m, sum := read("m1")
			if m.Calls != 0 || m.Tokens != (llm.Usage{}) || m.NanoUSD != 0 || m.Priced || m.Context != 0 || m.Aborted {
				t.Errorf("counted in the new conversation: %+v", m)
			}
			if sum.Calls != c.calls || (sum.NanoUSD > 0) != (c.calls > 0) {
				t.Errorf("used by the run: %+v, want %d calls", sum, c.calls)
			}
			if diff := cmp.Diff([]string(nil), h.lines()); diff != "" {
				t.Errorf("the new transcript: %s", diff)
			}
			h.ask("m2", "and now")
			m, sum = read("m2")
			if m.Calls != sum.Calls || m.Tokens != sum.Tokens || m.NanoUSD != sum.NanoUSD || !m.Priced ||
				m.Calls == 0 || m.Context == 0 {
				t.Errorf("counted in the new conversation: %+v, want %+v", m, sum)
			}
		})
	}
	t.Run("a stop without a reset is noted", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
		})
		h := newHarness(t, model).open()
		h.send("m1", "hello")
		h.until("the model is called", func() bool { return len(model.Requests()) == 1 })
		h.stopAll()
		h.wait("m1")
		h.view(func(r store.Reader) error {
			m, err := r.Sessions().Get(key)
			if !m.Aborted {
				t.Error("the session does not say that its last run was aborted")
			}
			return err
		})
	})
}

func TestNoProfile(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksOnce("act"))
	h.refuse = chela.Errorf(chela.CodeInvalid, "this session is pinned to a model that is gone")
	h.open()
	if r := h.ask("m1", "hello"); r.State != run.Failed || r.Error != h.refuse.Error() {
		t.Errorf("run is %s: %q", r.State, r.Error)
	}
}

func TestApprovalDoesNotCountAsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act)
		h.p.Timeout = time.Minute
		h.start(power.New(t).Open(t), slog.New(slog.DiscardHandler), func() error { return nil })
		defer h.stop()
		id := h.send("m1", "use it")
		q := h.pending()
		h.suspended()
		time.Sleep(10 * time.Minute)
		h.decide(q.ID, "allow-once")
		if r := h.wait(id); r.State != run.OK || act.count() != 1 {
			t.Errorf("run is %s (%s), ran %d times", r.State, r.Error, act.count())
		}
	})
}

func TestDeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksOnce("act"))
	h.at("run.end", func() {
		err := h.st.Update(t.Context(), store.Synced, func(tx store.Tx) error { return tx.Sessions().Delete(key) })
		if err != nil {
			t.Error(err)
		}
	})
	h.open()
	h.send("m1", "hello")
	h.until("the end is published", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseEnd)) == 1 })
	if n := len(h.bus.Live("")); n != 0 {
		t.Errorf("%d runs are still live", n)
	}
	if ls := h.lines(); len(ls) != 0 {
		t.Errorf("written after the deletion: %q", ls)
	}
}

// failing is a store whose next write can be made to fail.
type failing struct {
	store.Store
	next atomic.Bool
}

func (f *failing) Update(ctx context.Context, s store.Sync, g func(store.Tx) error) error {
	if f.next.Swap(false) {
		return errors.New("the disk failed")
	}
	return f.Store.Update(ctx, s, g)
}

func TestSteerNotStored(t *testing.T) {
	t.Parallel()
	var h *harness
	look := newTool("look", tool.Reads, func(context.Context, tool.Call) (tool.Result, error) {
		h.send("m2", "and this", mode("steer"))
		return tool.Text("seen"), nil
	})
	h = newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		if n == 0 {
			return llmtest.Call("c1", "look", `{}`)
		}
		return llmtest.Say("heard: " + r.Messages[len(r.Messages)-1].PlainText())
	}), look)
	f := new(failing)
	h.wrap = func(s store.Store) store.Store { f.Store = s; return f }
	h.at("run.steer", func() { f.next.Store(true) })
	h.open()
	if r := h.ask("m1", "use it"); r.State != run.OK || r.Text != "heard: and this" {
		t.Errorf("run is %s: %q (%s)", r.State, r.Text, r.Error)
	}
}

// TestSteerRevoked revokes a device after its message was chosen to steer a run of
// another device, and before the commit that takes it.
func TestSteerRevoked(t *testing.T) {
	t.Parallel()
	var h *harness
	say := func(from, id, text, mode string) {
		in := chela.Inbound{
			ID:      id,
			Session: key,
			Text:    text,
			Mode:    mode,
			Address: chela.Address{Channel: chela.LocalChannel},
			Sender:  chela.Sender{ID: "owner"},
		}
		if _, err := h.gate.Admit(chela.WithPrincipal(t.Context(), device(from)), in); err != nil {
			t.Error(err)
		}
	}
	look := newTool("look", tool.Reads, func(context.Context, tool.Call) (tool.Result, error) {
		say("laptop", "m2", "and delete it", "steer")
		return tool.Text("seen"), nil
	})
	h = newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		if n == 0 {
			return llmtest.Call("c1", "look", `{}`)
		}
		return llmtest.Say("heard: " + r.Messages[len(r.Messages)-1].PlainText())
	}), look)
	steers := false
	h.at("run.steer", func() {
		steers = true
		h.pair("laptop", true, chela.ScopeApprovals, chela.ScopeWrite)
	})
	h.open()
	for _, id := range []string{"phone", "laptop"} {
		h.pair(id, false, chela.ScopeApprovals, chela.ScopeWrite)
	}
	say("phone", "m1", "use it", "")
	if r := h.wait("m1"); r.State != run.OK || r.Text != "heard: seen" || !steers {
		t.Errorf("run is %s: %q (%s)", r.State, r.Text, r.Error)
	}
	if r := h.wait("m2"); r.State != run.Aborted || r.Error != "the device was revoked" {
		t.Errorf("the message of the revoked device: %s, %q", r.State, r.Error)
	}
}
