package repl_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/wire"
)

// parent is a model that starts a subagent for the message "spawn". The subagent, and
// the answer to "slow", wait until they are released.
type parent struct {
	*llmtest.Script
	child, slow chan struct{}
	asked       chan struct{} // closed when the model is asked for the answer to "slow"
}

func newParent(work llmtest.Step) *parent {
	p := &parent{child: make(chan struct{}), slow: make(chan struct{}), asked: make(chan struct{})}
	once := sync.OnceFunc(func() { close(p.asked) })
	p.Script = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch text := last.PlainText(); {
		case strings.Contains(r.System[1].Text, "# Subagent Context") && last.Role == llm.RoleUser:
			<-p.child
			return work
		case strings.Contains(r.System[1].Text, "# Subagent Context"):
			return llmtest.Say("the result is " + text)
		case last.Role == llm.RoleTool:
			return llmtest.Say("started")
		case text == "spawn":
			return llmtest.Call("c", "sessions_spawn", `{"task":"work","label":"w"}`)
		case text == "slow":
			once()
			<-p.slow
			return llmtest.Say("a slow answer of several words")
		case strings.Contains(text, `The subagent "w"`):
			return llmtest.Say("told w")
		default:
			return llmtest.Say("answer to " + text)
		}
	})
	return p
}

// taskIs waits until the task of the subagent has the delivery.
func taskIs(t *testing.T, g *chelatest.Gateway, delivery string) {
	t.Helper()
	c := g.Client()
	waittest.Until(t, "the end of the task with the delivery "+delivery, func() bool {
		var page wire.TasksPage
		if err := c.Call(t.Context(), wire.MethodTasksList, wire.TasksList{}, &page); err != nil {
			t.Fatal(err)
		}
		return len(page.Tasks) == 1 && page.Tasks[0].EndedAt > 0 && page.Tasks[0].Delivery == delivery
	})
}

func TestBackground(t *testing.T) {
	start := func(t *testing.T, o repl.Options) (*parent, *chelatest.Gateway, *terminal) {
		t.Helper()
		p := newParent(llmtest.Say("done"))
		g := chelatest.Start(t, chelatest.Options{Model: p})
		x := open(t, g, o).run()
		x.in <- "spawn"
		return p, g, x
	}
	hour := repl.Options{Wait: time.Hour}
	t.Run("SEED-05 a result is not told in the middle of another answer", func(t *testing.T) {
		t.Parallel()
		p, g, x := start(t, hour)
		x.in <- "slow"
		<-p.asked
		close(p.child)
		taskIs(t, g, wire.DeliveryQueued)
		close(p.slow)
		close(x.in)
		x.ends(nil)
		if out, _ := x.written(); out != "started\na slow answer of several words\ntold w\n" {
			t.Errorf("written: %q", out)
		}
	})
	t.Run("SEED-05 without a terminal, a result is told between two messages", func(t *testing.T) {
		t.Parallel()
		p, _, x := start(t, hour)
		close(p.child)
		x.sees("told w")
		x.in <- "next"
		close(x.in)
		x.ends(nil)
		if out, _ := x.written(); out != "started\ntold w\nanswer to next\n" {
			t.Errorf("written: %q", out)
		}
	})
	t.Run("SEED-05 at a prompt, a result is told when the line is complete", func(t *testing.T) {
		t.Parallel()
		p, _, x := start(t, repl.Options{Interactive: true, Prompt: true})
		x.sees("started")
		close(p.child)
		x.sees("\a")
		if out, _ := x.written(); out != "started\n" {
			t.Errorf("written while a line may be typed: %q", out)
		}
		x.in <- "a line"
		x.sees("answer to a line\n")
		if out, _ := x.written(); out != "started\ntold w\nanswer to a line\n" {
			t.Errorf("written: %q", out)
		}
		close(x.in)
		x.ends(nil)
	})
	t.Run("SEED-05 the end of the input waits for the results", func(t *testing.T) {
		t.Parallel()
		p, _, x := start(t, hour)
		close(x.in)
		close(p.child)
		x.ends(nil)
		if out, _ := x.written(); out != "started\ntold w\n" {
			t.Errorf("written: %q", out)
		}
	})
	t.Run("SEED-05 a run whose end was asked for is not waited for", func(t *testing.T) {
		t.Parallel()
		g := chelatest.Start(t, chelatest.Options{Model: newParent(llmtest.Say("done"))})
		run := g.Client().Ask("main", "hi").Run
		x := open(t, g, hour)
		if running, err := x.chat.Missed(t.Context(), run); running || err != nil {
			t.Errorf("in progress: %v, %v", running, err)
		}
		if out, _ := x.written(); out != "answer to hi\n" {
			t.Errorf("written: %q", out)
		}
	})
	t.Run("SEED-05 the wait at the end has a limit", func(t *testing.T) {
		t.Parallel()
		p, _, x := start(t, repl.Options{Wait: 10 * time.Millisecond})
		defer close(p.child)
		close(x.in)
		x.ends(repl.ErrReported)
		if _, err := x.written(); !strings.Contains(err,
			"still running after 10ms: 1 subagent; the session keeps the result\n") {
			t.Errorf("written: %q", err)
		}
	})
	t.Run("SEED-05 who quits does not wait", func(t *testing.T) {
		t.Parallel()
		for _, o := range []repl.Options{{Wait: time.Hour, Interactive: true}, {}} {
			p, _, x := start(t, o)
			x.sees("started")
			close(x.in)
			x.ends(nil)
			close(p.child)
		}
		p, _, x := start(t, hour)
		x.in <- "/quit"
		x.ends(nil)
		close(p.child)
	})
	t.Run("--yes allows what a subagent of the session waits for already", func(t *testing.T) {
		t.Parallel()
		p := newParent(touch("made"))
		g := chelatest.Start(t, chelatest.Options{Model: p})
		c := g.Client()
		c.Ask("main", "spawn")
		close(p.child)
		waittest.Until(t, "a pending approval", func() bool {
			var pending []wire.Approval
			if err := c.Call(t.Context(), wire.MethodApprovalList, wire.None{}, &pending); err != nil {
				t.Fatal(err)
			}
			return len(pending) > 0
		})
		o := hour
		o.Yes = true
		x := open(t, g, o)
		x.chat.AskPending(t.Context())
		close(x.in)
		x.run().ends(nil)
		if out, err := x.written(); out != "told w\n" || !strings.Contains(err, "allowed (--yes)") || !made(g, "made") {
			t.Errorf("written: %q\n%q", out, err)
		}
	})
	t.Run("approvals of a subagent are denied if there is no person", func(t *testing.T) {
		t.Parallel()
		p := newParent(touch("made"))
		g := chelatest.Start(t, chelatest.Options{Model: p})
		x := open(t, g, hour).run()
		x.in <- "spawn"
		close(p.child)
		close(x.in)
		x.ends(nil)
		if out, err := x.written(); !strings.Contains(err, "denied without asking") ||
			!strings.HasSuffix(out, "told w\n") || made(g, "made") {
			t.Errorf("written: %q\n%q", out, err)
		}
	})
}

func TestPlanLines(t *testing.T) {
	plan := func(id, a, b string) llmtest.Step {
		return llmtest.Call(id, "plan", `{"steps":[{"id":"read","title":"read it","state":"`+a+
			`"},{"id":"fix","title":"fix it","state":"`+b+`","after":["read"]}]}`)
	}
	g, _ := workspace(t, plan("1", "in_progress", "pending"), plan("2", "in_progress", "pending"),
		plan("3", "completed", "in_progress"),
		llmtest.Call("4", "plan", `{"steps":[{"title":"x","after":["y"]}]}`),
		plan("5", "completed", "failed"), llmtest.Say("done"))
	x := open(t, g, repl.Options{}).run()
	x.in <- "work"
	close(x.in)
	x.ends(nil)
	out, err := x.written()
	want := "plan 0/2\n  [>] read: read it\n  [ ] fix: fix it (after read)\n" +
		"plan 1/2\n  [x] read: read it\n  [>] fix: fix it (after read)\n" +
		"✗ plan 0/1: the step \"1\" depends on \"y\", but the plan has no step with that id\n" +
		"plan 2/2\n  [!] fix: fix it (after read)\n"
	if out != "done\n" || err != want {
		t.Errorf("written: %q\n%s\nwant\n%s", out, err, want)
	}
}
