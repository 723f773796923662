package chelatest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestApprovalLife tests the possible outcomes of an approval request, as
// people see them.
func TestApprovalLife(t *testing.T) {
	t.Parallel()
	put := func(g *Gateway, name, text string) {
		t.Helper()
		name = filepath.Join(g.Dir, "workspace", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	there := func(g *Gateway, name string) bool {
		_, err := os.Stat(filepath.Join(g.Dir, "workspace", name))
		return err == nil
	}
	t.Run("AP-09 after allow-always by command, the same call is not asked about again, but one with other arguments is",
		func(t *testing.T) {
			g := Start(t, Options{Model: shell()})
			c := g.Client()
			run := c.Send("main", "touch one")
			c.Ask("main", "/approve "+c.question().ID[:8]+" allow-always")
			if w := c.waited(run); w.Status != wire.StatusOK || !there(g, "one") {
				t.Errorf("%+v", w)
			}
			for _, ev := range c.Ask("main", "touch one").Seen {
				if ev.Name == wire.EventApprovalRequested {
					t.Error("the same call was asked about again")
				}
			}
			run = c.Send("main", "touch two")
			c.decide(c.question().ID, wire.Deny)
			if c.Await(run); there(g, "two") {
				t.Error("other arguments were not asked about")
			}
		})
	t.Run("AP-11 E4 a script that was edited after the request is not run", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		put(g, "s.sh", "touch good\n")
		run := c.Send("main", "sh s.sh")
		q := c.question()
		if !strings.Contains(q.Request.Command, "s.sh (sha256 ") {
			t.Errorf("asked %q", q.Request.Command)
		}
		put(g, "s.sh", "touch evil\n")
		c.decide(q.ID, wire.AllowAlways)
		if end := c.Await(run); !strings.Contains(end.Text, "plan has changed") || there(g, "evil") || there(g, "good") {
			t.Errorf("%s %q", end.State, end.Text)
		}
		run = c.Send("main", "sh s.sh") // allow-always was for the old script
		c.decide(c.question().ID, wire.AllowOnce)
		if c.Await(run); !there(g, "evil") {
			t.Error("the new script was allowed but did not run")
		}
	})
	t.Run("AP-12 E4 a client with write scope only cannot decide", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		run := c.Send("main", "touch made")
		q := c.question()
		cl, err := client.Dial(t.Context(),
			client.Options{Dial: g.Dial, Once: true, Scopes: []string{"operator.read", "operator.write"}})
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for method, params := range map[string]any{
			wire.MethodApprovalResolve:    wire.ApprovalResolve{ID: q.ID, Decision: wire.AllowOnce},
			wire.MethodAnyApprovalResolve: wire.AnyApprovalResolve{ID: q.ID, Kind: wire.ApprovalExec, Decision: wire.AllowOnce},
			wire.MethodChatSend: wire.ChatSend{SessionKey: "main", Message: "/approve " + q.ID +
				" allow-once", IdempotencyKey: "a1"},
			wire.MethodApprovalList:    nil,
			wire.MethodApprovalGet:     wire.ApprovalID{ID: q.ID},
			wire.MethodApprovalHistory: nil,
		} {
			if err := cl.Call(t.Context(), method, params, nil); err == nil || !strings.Contains(err.Error(), "scope") {
				t.Errorf("%s: %v", method, err)
			}
		}
		// An unknown id is rejected, whoever sends it.
		for _, smuggled := range []string{"approved", "by", "decidedBy", "hash", "scopes", "force"} {
			err := c.Call(t.Context(), wire.MethodApprovalResolve,
				map[string]any{"id": q.ID, "decision": wire.AllowOnce, smuggled: true}, nil)
			if err == nil || !strings.Contains(err.Error(), smuggled) {
				t.Errorf("with %s: %v", smuggled, err)
			}
		}
		var list []wire.Approval
		c.must(wire.MethodApprovalList, nil, &list)
		if len(list) != 1 || there(g, "made") {
			t.Fatalf("waiting: %+v", list)
		}
		c.decide(q.ID, wire.AllowOnce)
		if c.Await(run); !there(g, "made") {
			t.Error("the command was allowed but did not run")
		}
	})
	t.Run("AP-13 if two clients answer at once, the second is told who decided and how", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		run := c.Send("main", "touch made")
		q := c.question()
		answers := []string{wire.AllowOnce, wire.Deny}
		errs := make([]error, len(answers))
		var wg sync.WaitGroup
		for i, d := range answers {
			other := g.Client()
			wg.Go(func() {
				errs[i] = other.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: q.ID, Decision: d}, nil)
			})
		}
		wg.Wait()
		c.Await(run)
		first := 0
		if errs[0] != nil {
			first = 1
		}
		if errs[first] != nil || errs[1-first] == nil ||
			!strings.Contains(errs[1-first].Error(), "owner decided "+answers[first]+" at ") {
			t.Errorf("told %v", errs)
		}
		if there(g, "made") != (first == 0) {
			t.Errorf("%s was first; command ran: %v", answers[first], there(g, "made"))
		}
	})
	t.Run("deleting the session withdraws the request", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		c.Send("work", "touch made")
		q := c.question()
		c.must(wire.MethodSessionsDelete, wire.SessionKey{Key: "work"}, nil)
		if err := c.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: q.ID, Decision: wire.AllowOnce},
			nil); err == nil {
			t.Error("a withdrawn request could be decided")
		}
		var list []wire.Approval
		c.must(wire.MethodApprovalList, nil, &list)
		if len(list) != 0 || there(g, "made") {
			t.Errorf("waiting: %+v", list)
		}
		// A client that requested the approval is notified, and so are the
		// clients that were asked.
		c.Ask("work", "echo hello")
		decided := make(chan wire.ApprovalDecided, 1)
		asker := g.Client()
		go func() {
			var d wire.ApprovalDecided
			_ = asker.Call(t.Context(), wire.MethodApprovalAsk,
				wire.ApprovalAsk{ID: "mine", Command: "make tea", SessionKey: "work"}, &d)
			decided <- d
		}()
		c.question()
		c.must(wire.MethodSessionsDelete, wire.SessionKey{Key: "work"}, nil)
		if d := <-decided; d.ID != "mine" || d.Decision != nil {
			t.Fatalf("the requesting client got %+v", d)
		}
		for ev := range c.Events() {
			var r wire.ApprovalResolved
			if ev.Name == wire.EventApprovalResolved && ev.Decode(&r) == nil && r.ID == "mine" {
				if r.Decision != wire.ApprovalWithdrawn {
					t.Errorf("the asked clients got %+v", r)
				}
				break
			}
		}
	})
	t.Run("stopping the run withdraws the request", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		c.Send("main", "touch made")
		q := c.question()
		c.must(wire.MethodChatAbort, wire.ChatAbort{SessionKey: "main"}, nil)
		err := c.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: q.ID, Decision: wire.AllowOnce}, nil)
		if err == nil || !strings.Contains(err.Error(), "withdrawn") || there(g, "made") {
			t.Errorf("%v; command ran: %v", err, there(g, "made"))
		}
	})
}

// TestApprovalShown requests approval of a command with invisible characters,
// and of one that is too long to be shown.
func TestApprovalShown(t *testing.T) {
	t.Parallel()
	args := map[string]string{
		"hidden": `{"command":"touch \u202emade \u001b[8m"}`,
		"long":   `{"command":"cat > x <<'E'\n` + strings.Repeat(`a line of text\n`, 5000) + `E\n"}`,
		"whole":  `{"command":"cat > x <<'E'\n` + strings.Repeat(`a line of text\n`, 400) + `the end\nE\n"}`,
	}
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			return llmtest.Say("got: " + last.PlainText())
		}
		return llmtest.Call("call_"+string(rune('a'+n)), "exec", args[last.PlainText()])
	})
	g := Start(t, Options{Model: model})
	c := g.Client()
	run := c.Send("main", "hidden")
	q := c.question()
	if want := `touch \u202emade \x1b[8m`; !strings.Contains(q.Request.Command, want) ||
		strings.ContainsAny(q.Request.Command, "\u202e\x1b") {
		t.Errorf("request %q, want %q in it", q.Request.Command, want)
	}
	c.decide(q.ID, wire.Deny)
	c.Await(run)
	run = c.Send("main", "whole")
	q = c.question()
	if n := strings.Count(q.Request.Command, "a line of text\n"); n != 400 ||
		!strings.Contains(q.Request.Command, "the end") {
		t.Errorf("%d of 400 lines are shown", n)
	}
	c.decide(q.ID, wire.Deny)
	c.Await(run)
	if end := c.Ask("main", "long"); !strings.Contains(end.Text, "too long to be shown whole") {
		t.Errorf("%s %.300q", end.State, end.Text)
	}
}
