package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// says is a model that always gives the same answer.
func says(text string) *llmtest.Script {
	return llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say(text) })
}

// TestStaleProfile changes what a profile depends on between Resolve and Begin.
func TestStaleProfile(t *testing.T) {
	t.Parallel()
	update := func(h *harness, f func(store.Tx) error) {
		if err := h.st.Update(h.t.Context(), store.Synced, f); err != nil {
			h.t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(h *harness)
		want   []string // the transcript
	}{
		{"a new configuration", func(h *harness) {
			h.p.Provider = says("new")
			h.gen.Add(1)
		}, []string{"user: hi", "assistant: old", "user: again", "assistant: new"}},
		{"an inline /model", func(h *harness) {
			h.p.Provider = says("new")
			h.change(func(m *session.Meta) { m.Model = "mock/new" })
		}, []string{"user: hi", "assistant: old", "user: again", "assistant: new"}},
		{"a reset", func(h *harness) {
			update(h, func(tx store.Tx) error {
				_, err := session.Reset(tx.Sessions(), key, "new", time.Now())
				return err
			})
		}, []string{"user: again", "assistant: old"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, says("old")).open()
			h.ask("m0", "hi")
			h.until("the session is idle", func() bool { return !h.con.Live(key) })
			resolved := 0
			h.resolve = func(context.Context, session.Meta, run.Run) {
				if resolved++; resolved == 1 {
					c.change(h)
				}
			}
			r := h.ask("m1", "again")
			if r.State != run.OK || r.ID != "m1" {
				t.Errorf("run %s is %s: %s", r.ID, r.State, r.Error)
			}
			if diff := cmp.Diff(c.want, h.lines()); diff != "" {
				t.Errorf("transcript (-want +got):\n%s", diff)
			}
			model := h.p.Provider.(*llmtest.Script)
			var sent []string
			for _, m := range model.Requests()[len(model.Requests())-1].Messages {
				sent = append(sent, string(m.Role)+": "+m.PlainText())
			}
			if diff := cmp.Diff(c.want[:len(c.want)-1], sent); diff != "" {
				t.Errorf("sent to the model (-want +got):\n%s", diff)
			}
			if want := 1 + len(c.want)/4; resolved != want {
				t.Errorf("resolved %d times, want %d", resolved, want)
			}
			h.until("both answers are published", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseEnd)) == 2 })
		})
	}
}

// TestStaleProfileAtResume changes what a profile depends on between Resolve and the
// commit that resumes a run, or that begins a decided call whose run was superseded.
func TestStaleProfileAtResume(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{false, true} {
		for _, model := range []bool{false, true} {
			t.Run(fmt.Sprintf("detached %t, model %t", detached, model), func(t *testing.T) {
				t.Parallel()
				h, act, id, q := asks(t)
				h.q.Mode = queue.Followup
				if detached {
					h.ask("m2", "hello")
					h.until("the session is idle", func() bool { return !h.con.Live(key) })
				}
				current := mustAsk("act")
				current.run = func(context.Context, tool.Call) (tool.Result, error) { return tool.Text("acted anew"), nil }
				resolved := 0
				h.resolve = func(context.Context, session.Meta, run.Run) {
					if resolved++; resolved > 1 {
						return
					}
					h.p.Tools = tool.NewSet(current)
					if model {
						h.change(func(m *session.Meta) { m.Model = "mock/new" })
					} else {
						h.gen.Add(1)
					}
				}
				h.decide(q.ID, "allow-once")
				if !detached {
					if r := h.wait(id); r.Text != "got: acted anew" {
						t.Errorf("run is %s: %q %s", r.State, r.Text, r.Error)
					}
				}
				h.until("the call was carried out",
					func() bool { return act.count()+current.count() == 1 && len(h.waiting()) == 0 && !h.con.Live(key) })
				if act.count() != 0 {
					t.Error("the call was carried out with the stale profile")
				}
			})
		}
	}
}

// TestResolveBlocks blocks Resolve of one session. Other sessions are answered
// meanwhile, which they could not be if it were called in a transaction.
func TestResolveBlocks(t *testing.T) {
	t.Parallel()
	h := newHarness(t, says("here"))
	var blocked sync.Once
	entered, release := make(chan struct{}), make(chan struct{})
	h.resolve = func(_ context.Context, m session.Meta, _ run.Run) {
		if m.Key == key {
			blocked.Do(func() {
				close(entered)
				<-release
			})
		}
	}
	h.open()
	other := func(in *chela.Inbound) { in.Session = "agent:main:other" }
	h.send("m1", "blocked")
	<-entered
	for _, id := range []string{"o1", "o2"} {
		if r := h.wait(h.send(id, "hi", other)); r.Text != "here" {
			t.Errorf("another session's run is %s: %q", r.State, r.Error)
		}
	}
	if ids, err := h.con.Abort(t.Context(), key, "m1"); err != nil || !slices.Equal(ids, []chela.RunID{"m1"}) {
		t.Errorf("abort: %v, %v", ids, err)
	}
	h.send("m2", "next")
	close(release)
	if r := h.wait("m2"); r.Text != "here" {
		t.Errorf("the next run is %s: %q", r.State, r.Error)
	}
	if r := h.wait("m1"); r.State != run.Aborted {
		t.Errorf("the stopped run is %s", r.State)
	}
	if diff := cmp.Diff([]string{"user: next", "assistant: here"}, h.lines()); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}

// TestReadyTakesOneCommit compares a profile that is ready with one that is not.
func TestReadyTakesOneCommit(t *testing.T) {
	t.Parallel()
	for _, ready := range []bool{true, false} {
		c := new(counted)
		h := newHarness(t, says("here"))
		h.wrap = func(s store.Store) store.Store { c.Store = s; return c }
		h.open()
		h.ask("m1", "first")
		h.reserved(key).Release(false)
		if !ready {
			h.resolve = func(context.Context, session.Meta, run.Run) {}
		}
		before := c.updates.Load()
		h.ask("m2", "second")
		want := map[bool]int64{true: 2, false: 3}[ready]
		if got := c.updates.Load() - before; got != want {
			t.Errorf("ready %t: %d commits, want %d", ready, got, want)
		}
	}
}

// runBudgets are budgets of a run for about one and a half model calls.
var runBudgets = []struct {
	name   string
	budget usage.Budget
	limits usage.Limits
	want   string // in the error
	calls  int    // of the model, without an approval
}{
	{"tokens", usage.Budget{Tokens: 1500}, usage.Limits{}, "the budget of this run is spent", 2},
	{"money", usage.Budget{}, usage.Limits{Run: 1500}, "the budget of this run is used up", 1},
}

// TestResumeKeepsSpent has a run ask for an approval after it used most of its
// budget.
func TestResumeKeepsSpent(t *testing.T) {
	t.Parallel()
	for _, c := range runBudgets {
		for _, restart := range []bool{false, true} {
			act := mustAsk("act")
			model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				step := llmtest.Call("c"+string(rune('0'+n)), "act", `{"x":"`+string(rune('0'+n))+`"}`)
				step.Usage = &llm.Usage{Input: 1000}
				return step
			})
			h := newHarness(t, model)
			h.p.Tools, h.p.Budget, h.p.Limits = tool.NewSet(act), c.budget, c.limits
			h.p.Model.Price = &llm.Price{Input: 0.001}
			h.open()
			id := h.send("m1", "use it")
			q := h.pending()
			h.suspended()
			if restart {
				h.stop()
				h.open()
			}
			h.decide(q.ID, "allow-once")
			r := h.wait(id)
			if r.State != run.Failed || !strings.Contains(r.Error, c.want) || act.count() != 1 {
				t.Errorf("%s, restart %t: run is %s after %d calls: %s", c.name, restart, r.State, act.count(), r.Error)
			}
			h.stop()
		}
	}
}

// TestInterruptedKeepsSpent kills the process of a run that used most of its budget
// before its first tool call starts.
func TestInterruptedKeepsSpent(t *testing.T) {
	t.Parallel()
	for _, c := range runBudgets {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			model := llmtest.ScriptFunc(func(n int, _ *llm.Request) llmtest.Step {
				step := llmtest.Call(fmt.Sprint("c", n), "act", fmt.Sprintf(`{"x":"%d"}`, n))
				step.Usage = &llm.Usage{Input: 1000}
				return step
			})
			h := newHarness(t, model, newTool("act", tool.Acts, nil))
			h.p.Budget, h.p.Limits, h.p.Model.Price = c.budget, c.limits, &llm.Price{Input: 0.001}
			h.crashAt("tool.start", 1, func() { h.send("m1", "use it") })
			r := h.wait("m1")
			if n := len(model.Requests()); r.State != run.Failed || !strings.Contains(r.Error, c.want) ||
				r.Attempts != 2 || n != c.calls {
				t.Errorf("run is %s after %d attempts and %d model calls: %s", r.State, r.Attempts, n, r.Error)
			}
		})
	}
}

// TestResumeKeepsCounts has a run ask for an approval in each of its rounds, and
// restarts the process each time.
func TestResumeKeepsCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit func(*runner.Profile)
		want  string // in the answer or the error
		code  run.Failure
	}{
		"rounds": {func(p *runner.Profile) { p.MaxRounds = 2 }, "the end", ""},
		"calls":  {func(p *runner.Profile) { p.MaxCalls = 2 }, "the end", ""},
		"budget": {func(p *runner.Profile) { p.Budget.ToolCalls = 2 },
			"the budget of this run is spent: 2 tool calls", run.Limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			act := mustAsk("act")
			h := newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				if len(r.Tools) == 0 || n > 3 {
					return llmtest.Say("the end")
				}
				return llmtest.Call(fmt.Sprint("c", n), "act", fmt.Sprintf(`{"x":"%d"}`, n))
			}), act)
			c.limit(&h.p)
			h.open()
			h.send("m1", "use it")
			for range 2 {
				q := h.pending()
				h.suspended()
				h.stop()
				h.events = nil
				h.open()
				h.decide(q.ID, "allow-once")
			}
			if r := h.wait("m1"); act.count() != 2 || !strings.Contains(r.Text+r.Error, c.want) || r.Failure != c.code {
				t.Errorf("run is %s (%s) after %d calls: %q %s", r.State, r.Failure, act.count(), r.Text, r.Error)
			}
			h.stop() // now everything is published
			for _, e := range h.seen(chela.StreamLifecycle, chela.PhaseError) {
				if e.End.Stop != chela.StopLimit {
					t.Errorf("the end is %+v, want that of a limit", e.End)
				}
			}
		})
	}
}

// TestRightsOfSteering has a message of a device steer a run of another device.
func TestRightsOfSteering(t *testing.T) {
	t.Parallel()
	write, more := []chela.Scope{chela.ScopeWrite}, []chela.Scope{chela.ScopeWrite, chela.ScopeApprovals}
	for _, c := range []struct {
		name        string
		run, steers []chela.Scope
		joins       bool
	}{
		{"the same scopes", write, write, true},
		{"fewer scopes", more, write, false},
		{"more scopes", write, more, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var h *harness
			admit := func(id, text, dev string, scopes []chela.Scope) {
				who := chela.Principal{ID: "owner", Credential: device(dev).Credential, Scopes: scopes}
				_, err := h.gate.Admit(chela.WithPrincipal(t.Context(), who), chela.Inbound{
					ID: id, Session: key, Text: text, Mode: string(queue.Steer), Address: chela.Address{Channel: chela.LocalChannel},
				})
				if err != nil {
					t.Error(err)
				}
			}
			look := newTool("look", tool.Reads, func(context.Context, tool.Call) (tool.Result, error) {
				admit("m2", "and this", "second", c.steers)
				return tool.Text("seen"), nil
			})
			h = newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				if n == 0 {
					return llmtest.Call("c1", "look", `{}`)
				}
				return llmtest.Say("heard: " + r.Messages[len(r.Messages)-1].PlainText())
			}), look).open()
			h.pair("first", false, c.run...)
			h.pair("second", false, c.steers...)
			admit("m1", "look around", "first", c.run)
			r, other := h.wait("m1"), h.wait("m2")
			if joined := other.ID == "m1"; joined != c.joins || joined != (r.Text == "heard: and this") {
				t.Errorf("the message was answered by run %s with %q, joins: %t, want %t", other.ID, r.Text, joined, c.joins)
			}
		})
	}
}

// TestAgentRemoved removes the agent of a session with queued messages, a
// suspended run and a detached call. Each of them gets one answer.
func TestAgentRemoved(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{false, true} {
		h, act, id, q := asks(t)
		h.q.Mode = queue.Followup
		if detached {
			h.ask("m2", "hello")
		}
		gone := chela.Errorf(chela.CodeInvalid, "the agent was deleted")
		h.refuse = gone
		h.gen.Add(1)
		h.decide(q.ID, "allow-once")
		if !detached {
			if r := h.wait(id); r.State != run.Failed || r.Error != gone.Error() {
				t.Errorf("the suspended run is %s: %q", r.State, r.Error)
			}
		}
		for _, m := range []string{"q1", "q2"} {
			if r := h.ask(m, "anybody?"); r.State != run.Failed || r.Error != gone.Error() {
				t.Errorf("%s is %s: %q", m, r.State, r.Error)
			}
		}
		h.until("nothing waits", func() bool { return len(h.waiting()) == 0 && !h.con.Live(key) })
		if all := strings.Join(h.lines(), "\n"); detached && strings.Count(all, "was allowed, but could not be run") != 1 {
			t.Errorf("transcript:\n%s", all)
		}
		if act.count() != 0 {
			t.Errorf("the tool ran %d times", act.count())
		}
		h.stop()
	}
}
