package chelatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// shell returns a model that runs the command in the message and answers with
// its output.
func shell() *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			return llmtest.Say("got: " + last.PlainText())
		}
		return llmtest.Call("call_"+string(rune('a'+n)), "exec", `{"command":"`+last.PlainText()+`"}`)
	})
}

// question waits until the client gets an approval request.
func (c *Client) question() wire.Approval {
	c.t.Helper()
	limit := time.After(waittest.Limit)
	for {
		select {
		case ev := <-c.Events():
			var a wire.Approval
			if ev.Name != wire.EventApprovalRequested {
				continue
			}
			if err := ev.Decode(&a); err != nil {
				c.t.Fatal(err)
			}
			return a
		case <-limit:
			c.t.Fatal("no approval request")
		}
	}
}

func (c *Client) decide(id, decision string) {
	c.t.Helper()
	c.must(wire.MethodApprovalResolve, wire.ApprovalResolve{ID: id, Decision: decision}, nil)
}

func TestApprovals(t *testing.T) {
	const append1 = "echo 1 >> count.txt"
	// count returns how often the command ran.
	count := func(g *Gateway) int {
		b, _ := os.ReadFile(filepath.Join(g.Dir, "workspace", "count.txt"))
		return strings.Count(string(b), "1")
	}
	t.Run("E4 an action that is allowed once runs once, as it was shown, within 30 minutes", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		run := c.Send("main", append1)
		q := c.question()
		if !strings.Contains(q.Request.Command, append1) || q.Request.Tool != "exec" || q.Request.RunID != run ||
			q.Request.Reason == "" {
			t.Errorf("asked %+v", q.Request)
		}
		if life := time.Duration(q.Expires-q.Created) * time.Millisecond; life <= 0 || life > 30*time.Minute {
			t.Errorf("it can be allowed for %v", life)
		}
		if count(g) != 0 {
			t.Fatal("the command ran before it was allowed")
		}
		c.decide(q.ID, wire.AllowOnce)
		if end := c.Await(run); end.State != wire.StateFinal || !strings.HasPrefix(end.Text, "got: ") || count(g) != 1 {
			t.Errorf("%s %q, ran %d times", end.State, end.Text, count(g))
		}
		if err := c.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: q.ID, Decision: wire.AllowOnce},
			nil); err == nil || !strings.Contains(err.Error(), "decided") {
			t.Errorf("second decision: %v", err)
		}
		run = c.Send("main", append1) // it was allowed only once
		c.decide(c.question().ID, wire.Deny)
		c.Await(run)
		if count(g) != 1 {
			t.Errorf("ran %d times", count(g))
		}
	})
	t.Run("a denied action does not run, and the model is told", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		run := c.Send("main", append1)
		c.decide(c.question().ID, wire.Deny)
		if end := c.Await(run); end.State != wire.StateFinal || !strings.Contains(strings.ToLower(end.Text), "den") ||
			count(g) != 0 {
			t.Errorf("%s %q, ran %d times", end.State, end.Text, count(g))
		}
	})
	t.Run("E4 after allow-always, the same plan is not asked about again, but another one is", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		run := c.Send("main", append1)
		c.decide(c.question().ID, wire.AllowAlways)
		c.Await(run)
		end := c.Ask("main", append1)
		for _, ev := range end.Seen {
			if ev.Name == wire.EventApprovalRequested {
				t.Error("the same plan was asked about again")
			}
		}
		if count(g) != 2 {
			t.Errorf("ran %d times", count(g))
		}
		run = c.Send("main", "echo 11 >> count.txt")
		q := c.question()
		c.decide(q.ID, wire.Deny)
		c.Await(run)
		c.Ask("other", append1) // another conversation of the same agent
		if count(g) != 3 {
			t.Errorf("the command ran %d times in total", count(g))
		}
	})
	t.Run("a read-only command needs no approval", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		end := c.Ask("main", "echo hello")
		if !strings.Contains(end.Text, "hello") {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		for _, ev := range end.Seen {
			if ev.Name == wire.EventApprovalRequested {
				t.Error("an approval was requested")
			}
		}
	})
	t.Run("a restart while the approval is pending: asked once, answered after the restart, run once", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		run := c.Send("main", append1)
		q := c.question()
		c.Close()
		g.Stop()
		g = Start(t, Options{Model: shell(), Dir: g.Dir})
		c = g.Client()
		var list []wire.Approval
		c.must(wire.MethodApprovalList, nil, &list)
		if len(list) != 1 || list[0].ID != q.ID {
			t.Fatalf("waiting: %+v", list)
		}
		c.decide(q.ID, wire.AllowOnce)
		if end := c.Await(run); end.State != wire.StateFinal || count(g) != 1 {
			t.Errorf("%s %q, ran %d times", end.State, end.Text, count(g))
		}
	})
	t.Run("decided by a command", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		run := c.Send("main", append1)
		q := c.question()
		if end := c.Ask("main", "/approve "+q.ID+" allow-once"); !isCommand(final(t, end)) {
			t.Errorf("answer %q", end.Text)
		}
		if w := c.waited(run); w.Status != wire.StatusOK || count(g) != 1 {
			t.Errorf("%+v, ran %d times", w, count(g))
		}
	})
}
