package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// listFiles is a tool of a custom build: one type, and one line that registers
// it.
type listFiles struct{}

func (listFiles) Spec() tool.Spec {
	return tool.Spec{
		Name: "list_files", Description: "Names the files of a directory.",
		Schema: json.RawMessage(`{"type":"object","properties":{"directory":{"type":"string"}},"required":["directory"]}`),
	}
}

func (listFiles) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	var args struct{ Directory string }
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return tool.Result{}, err
	}
	list, err := os.ReadDir(filepath.Join(c.Dir, args.Directory))
	if err != nil {
		return tool.Result{}, err
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return tool.Text(strings.Join(names, " ")), nil
}

// done is a tool that does nothing, or calls a function.
type done struct {
	name string
	f    func(context.Context, tool.Call) (tool.Result, error)
}

func (d done) Spec() tool.Spec { return tool.Spec{Name: d.name} }

func (d done) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if d.f == nil {
		return tool.Text("did " + string(c.Args)), nil
	}
	return d.f(ctx, c)
}

// says returns a hook with a verdict on calls of one tool.
func says(name, of string, v hook.Verdict) hook.Before {
	return hook.Before{Name: name, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		if c.Tool != of {
			return hook.Verdict{}, nil
		}
		return v, nil
	}}
}

// audited returns the recorded calls, oldest first.
func (c *Client) audited() []wire.ToolCalled {
	c.t.Helper()
	var list wire.ToolsCalls
	c.must(wire.MethodToolsCalls, wire.ToolsCallsGet{}, &list)
	slices.Reverse(list.Calls)
	return list.Calls
}

func TestHooks(t *testing.T) {
	t.Run("TC-15 a custom tool is offered, called, and its result is used", func(t *testing.T) {
		var offered []string
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			if last.Role == llm.RoleTool {
				return llmtest.Say("There are " + last.PlainText())
			}
			for _, s := range r.Tools {
				offered = append(offered, s.Name)
			}
			return llmtest.Call("c", "list_files", `{"directory":"notes"}`)
		})
		g := Start(t, Options{Model: model, Tools: []tool.Tool{listFiles{}}})
		dir := filepath.Join(g.Dir, "workspace", "notes")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600),
			os.WriteFile(filepath.Join(dir, "b.txt"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if end := g.Client().Ask("main", "which notes are there?"); end.Text != "There are a.txt b.txt" ||
			!slices.Contains(offered, "list_files") {
			t.Errorf("%q %s, offered %v", end.Text, end.Error, offered)
		}
	})
	t.Run("TH-01 TOOL-03 HOOK-01 the model gets the reason of a block, and nothing is run", func(t *testing.T) {
		g := Start(t,
			Options{Model: uses(),
				Before: []hook.Before{says("sundays", "write", hook.Verdict{Block: true, Reason: "not on Sundays"})}})
		c := g.Client()
		if end := c.Ask("main", `write {"path":"made.txt","content":"x"}`); !strings.Contains(end.Text, "not on Sundays") {
			t.Errorf("%q %s", end.Text, end.Error)
		}
		if _, err := os.Stat(filepath.Join(g.Dir, "workspace", "made.txt")); err == nil {
			t.Error("the tool was run")
		}
		if got := c.audited()[0]; got.Decision != "blocked" || got.Rule != "hook:sundays" || got.Outcome != "error" {
			t.Errorf("recorded: %+v", got)
		}
	})
	t.Run("TH-02 TOOL-04 two hooks change the arguments, and everything after them sees the arguments that were run",
		rewritten)
	t.Run("TH-12 SEED-10 hooks after a call are called, and hooks after a failure if they request it",
		func(t *testing.T) { synctest.Test(t, afterHooks) })
	t.Run("a hook can require approval: the call is asked about, allowed and run", func(t *testing.T) {
		g := Start(t,
			Options{Model: uses(),
				Before: []hook.Before{says("careful", "write", hook.Verdict{Ask: true, Reason: "it is Sunday"})}})
		c := g.Client()
		run := c.Send("main", `write {"path":"made.txt","content":"x"}`)
		q := c.question()
		if q.Request.Tool != "write" || !strings.Contains(q.Request.Reason, "it is Sunday") ||
			!strings.Contains(q.Request.Command, "made.txt") {
			t.Errorf("asked %+v", q.Request)
		}
		c.decide(q.ID, wire.AllowOnce)
		end := c.Await(run)
		if _, err := os.Stat(filepath.Join(g.Dir, "workspace", "made.txt")); err != nil {
			t.Errorf("%q %s: %v", end.Text, end.Error, err)
		}
		if got := c.audited()[0]; got.Decision != "allowed" || got.Rule != "approval" || got.Outcome != "ok" ||
			got.ApprovalID != q.ID {
			t.Errorf("recorded: %+v", got)
		}
	})
	t.Run("an approval that a hook requires is denied if nobody answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ran := 0
			g := Start(t, Options{
				Model: uses(), Before: []hook.Before{says("careful", "act", hook.Verdict{Ask: true})},
				Tools: []tool.Tool{done{"act", func(context.Context, tool.Call) (tool.Result, error) {
					ran++
					return tool.Text("done"), nil
				}}},
			})
			c := g.Client()
			run := c.Send("main", `act {}`)
			time.Sleep(approval.Lifetime + time.Minute)
			if end := c.Await(run); !strings.Contains(end.Text, "expired without an answer") || ran != 0 {
				t.Errorf("%q %s, ran %d times", end.Text, end.Error, ran)
			}
			if got := c.audited()[0]; got.Decision != "denied" || got.Rule != "approval" {
				t.Errorf("recorded: %+v", got)
			}
			c.Close()
			g.Stop()
		})
	})
	t.Run("an approval that a hook requires is denied after the shortest time that hooks give", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := Start(t, Options{Model: uses(), Tools: []tool.Tool{done{name: "act"}}, Before: []hook.Before{
				says("patient", "act", hook.Verdict{Ask: true, Wait: time.Hour}),
				says("hasty", "act", hook.Verdict{Ask: true, Wait: 90 * time.Second}),
				says("usual", "act", hook.Verdict{Ask: true}),
			}})
			c := g.Client()
			begun := time.Now()
			run := c.Send("main", `act {}`)
			if q := c.question(); q.Expires.Time().Sub(begun).Round(time.Second) != 90*time.Second {
				t.Errorf("it expires after %s", q.Expires.Time().Sub(begun))
			}
			if end := c.Await(run); !strings.Contains(end.Text, "expired without an answer") ||
				time.Since(begun) > 3*time.Minute {
				t.Errorf("after %s: %q %s", time.Since(begun), end.Text, end.Error)
			}
			c.Close()
			g.Stop()
		})
	})
	t.Run("a stored secret is only passed to a tool after approval", secretKept)
}

// rewritten has two hooks change the arguments of a call, one after the other.
func rewritten(t *testing.T) {
	add := func(name string, priority int) hook.Before {
		return hook.Before{Name: name, Priority: priority, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
			var a struct{ X string }
			if c.Tool != "act" || json.Unmarshal(c.Args, &a) != nil {
				return hook.Verdict{}, nil
			}
			return hook.Verdict{Args: json.RawMessage(fmt.Sprintf(`{"x":"%s%s"}`, a.X, name))}, nil
		}}
	}
	g := Start(t, Options{Model: uses(), Tools: []tool.Tool{done{name: "act"}},
		Before: []hook.Before{add("2", 1), add("1", 9)}})
	c := g.Client()
	end := c.Ask("main", `act {"x":"0"}`)
	const ran = `{"x":"012"}`
	if !strings.Contains(end.Text, "did "+ran) ||
		!strings.Contains(end.Text, "[The hook 1, 2 changed the arguments: "+ran) {
		t.Errorf("the model got %q %s", end.Text, end.Error)
	}
	steps := traceOf(t, end.Seen, end.Run).tools
	if first, last := steps[0], steps[len(steps)-1]; string(first.Args) != `{"x":"0"}` || string(last.Args) != ran {
		t.Errorf("events: requested %s, run %s", first.Args, last.Args)
	}
	var h wire.History
	c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
	b, err := json.Marshal(h.Messages)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `{"x":"0"}`) || !strings.Contains(string(b), `{\"x\":\"012\"}`) {
		t.Errorf("the transcript lacks one of them: %s", b)
	}
	if got := c.audited()[0]; got.Args != ran || got.Rule != "hook:1,2" || got.Decision != "allowed" {
		t.Errorf("recorded: %+v", got)
	}
}

// afterHooks has hooks observe a call that succeeds and one that fails.
func afterHooks(t *testing.T) {
	var mu sync.Mutex
	var all, failures []string
	note := func(to *[]string) func(context.Context, hook.Done) (hook.None, error) {
		return func(_ context.Context, d hook.Done) (hook.None, error) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, fmt.Sprint(d.Tool, " ", string(d.Args), " ", d.Err, " ", d.Took))
			return hook.None{}, nil
		}
	}
	act := done{"act", func(_ context.Context, c tool.Call) (tool.Result, error) {
		time.Sleep(200 * time.Millisecond)
		if strings.Contains(string(c.Args), "bad") {
			return tool.Result{}, errors.New("boom")
		}
		return tool.Text("good"), nil
	}}
	g := Start(t, Options{Model: uses(), Tools: []tool.Tool{act}, After: []hook.After{
		{Name: "all", Func: note(&all)},
		{Name: "broken", Func: func(context.Context, hook.Done) (hook.None, error) { panic("oh") }},
	}, Failed: []hook.After{{Name: "failures", Func: note(&failures)}}})
	c := g.Client()
	if end := c.Ask("main", `act {"x":"good"}`); end.Text != "good" {
		t.Errorf("%q %s", end.Text, end.Error)
	}
	if end := c.Ask("main", `act {"x":"bad"}`); end.State != wire.StateFinal || !strings.Contains(end.Text, "boom") {
		t.Errorf("the run did not continue: %s %q %s", end.State, end.Text, end.Error)
	}
	c.Close()
	g.Stop()
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{`act {"x":"good"} <nil> 200ms`, `act {"x":"bad"} boom 200ms`}, all); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`act {"x":"bad"} boom 200ms`}, failures); diff != "" {
		t.Error(diff)
	}
}

// secretKept has a model try to pass an API key to a tool.
func secretKept(t *testing.T) {
	const key = "sk-canary-0123456789abcdef"
	var got []string
	// What the person writes reaches the model without the key, so the model has it
	// from elsewhere.
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		if text := r.Messages[len(r.Messages)-1].PlainText(); strings.Contains(text, "the key") {
			return llmtest.Call(fmt.Sprint("c", n), "send", `{"text":"`+key+`"}`)
		}
		return use(n, r)
	})
	g := Start(t, Options{
		Model: model, Tools: []tool.Tool{done{"send", func(_ context.Context, c tool.Call) (tool.Result, error) {
			got = append(got, string(c.Args))
			return tool.Text("sent"), nil
		}}},
		Config: Config{
			"models": json.RawMessage(
				`{"providers": {"far": {"baseUrl": "http://127.0.0.1:1", "api": "openai-completions", "apiKey": "` + key +
					`", "models": [{"id": "x"}]}}}`)},
	})
	c := g.Client()
	if end := c.Ask("main", `send {"text":"hello"}`); end.Text != "sent" {
		t.Errorf("%q %s", end.Text, end.Error)
	}
	run := c.Send("main", "send the key")
	q := c.question()
	if strings.Contains(q.Request.Command, key) || !strings.Contains(q.Request.Reason, "a secret that Chela stores") {
		t.Errorf("asked %+v", q.Request)
	}
	c.decide(q.ID, wire.Deny)
	if end := c.Await(run); len(got) != 1 {
		t.Errorf("%q: sent %q", end.Text, got)
	}
	if b, err := json.Marshal(c.audited()); err != nil || strings.Contains(string(b), key) {
		t.Errorf("recorded: %s %v", b, err)
	}
}

// TestAudit tests the record of tool calls.
func TestAudit(t *testing.T) {
	t.Run("TH-11 allowed, forbidden, denied and failed calls: four rows, without a secret or the content of a file",
		func(t *testing.T) {
			content := strings.Repeat("private words ", 500)
			g := Start(t,
				Options{Model: uses(), Config: Config{"tools": json.RawMessage(`{"deny": ["edit"], "exec": {"mode": "ask"}}`)}})
			c := g.Client()
			c.Ask("main", `write {"path":"made.txt","content":"`+content+`"}`)
			c.Ask("main", `edit {"path":"made.txt","oldText":"a","newText":"b","apiKey":"sesame-open"}`)
			run := c.Send("main", `exec {"command":"echo x > y.txt"}`)
			c.decide(c.question().ID, wire.Deny)
			c.Await(run)
			c.Ask("main", `read {"path":"none.txt"}`)
			var rows []string
			all := c.audited()
			for _, r := range all {
				rows = append(rows, strings.Join([]string{r.Principal, r.AgentID, r.SessionKey, r.Tool, r.Decision, r.Rule,
					r.Outcome}, " "))
				if r.RunID == "" || len(r.Args) > 420 {
					t.Errorf("run %q, %d bytes of arguments", r.RunID, len(r.Args))
				}
			}
			if diff := cmp.Diff([]string{
				"owner main agent:main:main write allowed default ok",
				"owner main agent:main:main edit refused policy global tools error",
				"owner main agent:main:main exec denied approval error", "owner main agent:main:main read allowed default error",
			}, rows); diff != "" {
				t.Error(diff)
			}
			b, err := json.Marshal(all)
			if err != nil || strings.Contains(string(b), content[:200]) || strings.Contains(string(b), "sesame") {
				t.Errorf("%s %v", b, err)
			}
		})
	t.Run("TH-11 the record has the duration of allowed and failed calls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			act := done{"act", func(_ context.Context, c tool.Call) (tool.Result, error) {
				if strings.Contains(string(c.Args), "bad") {
					time.Sleep(3 * time.Second)
					return tool.Result{}, errors.New("boom")
				}
				time.Sleep(2 * time.Second)
				return tool.Text("good"), nil
			}}
			g := Start(t, Options{Model: uses(), Tools: []tool.Tool{act}})
			c := g.Client()
			c.Ask("main", `act {}`)
			c.Ask("main", `act {"x":"bad"}`)
			var rows []string
			for _, r := range c.audited() {
				rows = append(rows, fmt.Sprint(r.Tool, " ", r.Decision, " ", r.Outcome, " ", r.DurationMs))
			}
			if diff := cmp.Diff([]string{"act allowed ok 2000", "act allowed error 3000"}, rows); diff != "" {
				t.Error(diff)
			}
			c.Close()
			g.Stop()
		})
	})
	t.Run("the record outlives its session, without the messages", func(t *testing.T) {
		g := Start(t, Options{Model: uses()})
		c := g.Client()
		c.Ask("work", `ls {"path":"."}`)
		c.must(wire.MethodSessionsDelete, map[string]any{"key": "agent:main:work"}, nil)
		got := c.audited()
		if len(got) != 1 || got[0].Tool != "ls" || got[0].Outcome != "ok" ||
			got[0].Principal != "owner" || got[0].Args != "" {
			t.Errorf("recorded: %+v", got)
		}
	})
}
