package dispatch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// pending waits for a pending approval and returns it.
func (h *harness) pending() approval.Request {
	h.t.Helper()
	var reqs []approval.Request
	h.until("a pending approval", func() bool {
		h.view(func(r store.Reader) error {
			var err error
			reqs, err = r.Approvals().Pending(key)
			return err
		})
		return len(reqs) > 0
	})
	return reqs[0]
}

// suspended waits until a run is suspended.
func (h *harness) suspended() {
	h.t.Helper()
	h.until("a suspended run", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseSuspended)) > 0 })
}

func (h *harness) decide(id, decision string) {
	h.t.Helper()
	if _, err := h.con.Decide(owner(h.t.Context()), id, decision); err != nil {
		h.t.Fatalf("decide: %v", err)
	}
}

// asksOnce is a model that calls the tool once and answers with its result.
func asksOnce(name string) *llmtest.Script { return llmtest.ScriptFunc(stepOf(name)) }

// stepOf returns the steps of asksOnce.
func stepOf(name string) func(int, *llm.Request) llmtest.Step {
	return func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case last.Role == llm.RoleTool:
			return llmtest.Say("got: " + last.PlainText())
		case strings.Contains(last.PlainText(), "use"):
			return llmtest.Call("c1", name, `{"x":"1"}`)
		}
		return llmtest.Say("heard: " + last.PlainText())
	}
}

func TestApproval(t *testing.T) {
	t.Run("an allowed call runs once and the run resumes", func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act).open()
		id := h.send("m1", "use it")
		q := h.pending()
		if act.count() != 0 {
			t.Fatal("it ran before it was allowed")
		}
		h.decide(q.ID, "allow-once")
		if r := h.wait(id); r.Text != "got: ran act" {
			t.Errorf("answer %q (%s)", r.Text, r.Error)
		}
		if act.count() != 1 {
			t.Errorf("ran %d times", act.count())
		}
	})
	t.Run("a call that is allowed after a restart runs once", func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act).open()
		id := h.send("m1", "use it")
		q := h.pending()
		h.suspended()
		h.stop()
		h.open()
		h.decide(q.ID, "yes")
		if r := h.wait(id); r.Text != "got: ran act" {
			t.Errorf("answer %q (%s)", r.Text, r.Error)
		}
		if act.count() != 1 {
			t.Errorf("ran %d times", act.count())
		}
	})
	t.Run("the model is told of a denial", func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act).open()
		id := h.send("m1", "use it")
		h.decide(h.pending().ID, "deny")
		if r := h.wait(id); !strings.Contains(r.Text, "denied") || act.count() != 0 {
			t.Errorf("answer %q, ran %d times", r.Text, act.count())
		}
	})
	t.Run("a message to a suspended run is answered at once, and the result follows", func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act).open()
		h.send("m1", "use it")
		q := h.pending()
		h.suspended()
		if r := h.ask("m2", "hello"); r.Text != "heard: hello" {
			t.Errorf("answer %q (%s)", r.Text, r.Error)
		}
		h.decide(q.ID, "allow-once")
		h.until("the result is reported", func() bool {
			ls := h.lines()
			return strings.HasPrefix(ls[len(ls)-1], "assistant: heard: [System] The call act that waited")
		})
		want := []string{
			"user: use it", "assistant: <act>", "toolResult: waiting for approval " + q.ID,
			"user: hello", "assistant: heard: hello",
		}
		if diff := cmp.Diff(want, h.lines()[:5]); diff != "" {
			t.Errorf("transcript: %s", diff)
		}
		if act.count() != 1 {
			t.Errorf("ran %d times", act.count())
		}
		if n := len(h.waiting()); n != 0 {
			t.Errorf("%d items are waiting", n)
		}
	})
	t.Run("a stop of a run that has ended leaves the suspended one", func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act).open()
		h.ask("m1", "hello")
		id := h.send("m2", "use it")
		q := h.pending()
		h.suspended()
		if ids, err := h.con.Abort(t.Context(), key, "m1"); err != nil || len(ids) != 0 {
			t.Errorf("stopped %q, %v", ids, err)
		}
		h.decide(q.ID, "allow-once")
		if r := h.wait(id); r.Text != "got: ran act" || act.count() != 1 {
			t.Errorf("run is %s: %q, ran %d times", r.State, r.Text, act.count())
		}
	})
	t.Run("a stop withdraws the approval", func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act).open()
		id := h.send("m1", "use it")
		q := h.pending()
		h.suspended()
		if _, err := h.con.Abort(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
		if r := h.wait(id); r.State != run.Aborted {
			t.Errorf("run is %s", r.State)
		}
		if _, err := h.con.Decide(owner(t.Context()), q.ID, "allow-once"); err == nil {
			t.Error("a withdrawn approval was accepted")
		}
		if r := h.ask("m2", "hello"); r.Text != "heard: hello" || act.count() != 0 {
			t.Errorf("answer %q, ran %d times", r.Text, act.count())
		}
	})
}

// TestDecidedWhileSuperseded decides about a call after a message was chosen to
// supersede its run, and before the commit that does so.
func TestDecidedWhileSuperseded(t *testing.T) {
	t.Parallel()
	for decision, want := range map[string]string{
		"allow-once": "was allowed and has run",
		"deny":       "was not allowed (deny)",
	} {
		t.Run(decision, func(t *testing.T) {
			t.Parallel()
			act := mustAsk("act")
			h := newHarness(t, asksOnce("act"), act)
			h.apart = true
			begun := 0
			h.step = func(name string) {
				if name != "run.begin" {
					return
				}
				if begun++; begun == 2 {
					h.decide(h.pending().ID, decision)
				}
			}
			h.open()
			id := h.send("m1", "use it")
			h.pending()
			h.suspended()
			if r := h.ask("m2", "hello"); r.Replaces != id {
				t.Fatalf("the run replaces %q, want %q", r.Replaces, id)
			}
			h.until("the result is reported", func() bool {
				ls := h.lines()
				return strings.HasPrefix(ls[len(ls)-1], "assistant: heard: [System] The call act that waited") &&
					strings.Contains(ls[len(ls)-1], want)
			})
			if n, ran := act.count(), decision == "allow-once"; ran != (n == 1) {
				t.Errorf("ran %d times", n)
			}
			for _, e := range h.entries() {
				if e.Origin.Kind != chela.OriginProcess {
					continue
				}
				h.view(func(rd store.Reader) error {
					r, err := rd.Runs().Get(e.Run)
					if r.Root != id || r.Parent != id {
						t.Errorf("the run that reports it belongs to %q and %q, want %q", r.Root, r.Parent, id)
					}
					return err
				})
			}
		})
	}
}

// TestStopOfAnotherRun stops a run in a session that also has a detached call.
func TestStopOfAnotherRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text string }{
		{"suspended", "use it again"},
		{"in progress", "hang"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			act := mustAsk("act")
			called := make(chan struct{})
			model := stepOf("act")
			h := newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				if r.Messages[len(r.Messages)-1].PlainText() == "hang" {
					close(called)
					return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
				}
				return model(n, r)
			}), act).open()
			h.send("m1", "use it")
			first := h.pending()
			h.suspended()
			id := h.send("m2", c.text)
			if c.text == "hang" {
				<-called
			} else {
				h.until("both runs were suspended",
					func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseSuspended)) == 2 })
			}
			if _, err := h.con.Abort(t.Context(), key, id); err != nil {
				t.Fatal(err)
			}
			if r := h.wait(id); r.State != run.Aborted {
				t.Errorf("run is %s", r.State)
			}
			for _, e := range h.seen(chela.StreamApproval, chela.PhaseResolved) {
				if q := e.Data.(approval.Request); q.ID == first.ID {
					t.Errorf("the approval of the detached call: %+v", q)
				}
			}
			h.decide(first.ID, "allow-once")
			h.until("the detached call has run", func() bool { return act.count() == 1 })
		})
	}
}
