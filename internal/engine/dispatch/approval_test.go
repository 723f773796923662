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
