package chelatest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// calls returns the number of requests of sessions that are not subagents.
func (f *family) calls() (n int) {
	for _, r := range f.Requests() {
		if !strings.Contains(systemOf(r), "# Subagent Context") {
			n++
		}
	}
	return n
}

// heard reports whether a subagent got a message that contains the text.
func (f *family) heard(text string) bool {
	for _, r := range f.Requests() {
		if strings.Contains(systemOf(r), "# Subagent Context") &&
			strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), text) {
			return true
		}
	}
	return false
}

func TestSlashSubagents(t *testing.T) {
	start := func(t *testing.T, o Options) (*family, *Client, *Gateway) {
		t.Helper()
		f := newFamily()
		o.Model = f
		g := Start(t, o)
		return f, g.Client(), g
	}
	says := func(t *testing.T, c *Client, session, command string, want ...string) string {
		t.Helper()
		got := c.Ask(session, command).Text
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q, want %q in it", command, got, w)
			}
		}
		return got
	}
	t.Run("SUB-22 /subagents spawn starts a subagent without a model call of the parent", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, Options{})
		says(t, c, "main", "/subagents spawn hold a\nsay done", `Started the subagent "Task 1"; 1 running.`)
		f.waitHeld(t, "a")
		if n := f.calls(); n != 0 {
			t.Errorf("%d model calls of the parent", n)
		}
		says(t, c, "main", "/subagents", "- 1 Task 1: running for ", "hold a")
		says(t, c, "main", "/subagents info 1", "Task: hold a say done", "Session: agent:main:subagent:", "Cleanup: keep")
		says(t, c, "main", "/agents", "- main: mock/m, this session's", "- this session: idle",
			"\n  - Task 1 (agent main): running for ")
		f.release("a")
		if got := c.answer("told"); got != "told Task 1 ok" {
			t.Errorf("told %q", got)
		}
		says(t, c, "main", "/subagents log 1", "in: hold a say done", "out: done")
		says(t, c, "main", "/subagents log 1 1000", `"1000" is not a valid number of entries`)
		says(t, c, "main", "/subagents spawn", "Usage: ")
		says(t, c, "main", "/subagents steer 1", "Usage: ")
		if got := says(t, c, "agent:main:other", "/subagents"); !strings.HasPrefix(got, "This session has no subagents.") {
			t.Errorf("another session lists %q", got)
		}
	})
	t.Run("hooks decide about /subagents spawn", func(t *testing.T) {
		t.Parallel()
		var asked []hook.SubagentSpawning
		f, c, _ := start(t, Options{Hooks: func(p *hook.Points) {
			p.SubagentSpawning.Add(hook.Hook[hook.SubagentSpawning, hook.Spawning]{Name: "h",
				Func: func(_ context.Context, e hook.SubagentSpawning) (hook.Spawning, error) {
					asked = append(asked, e)
					if strings.Contains(e.Task, "evil") {
						return hook.Spawning{Status: "error", Error: "no room for it"}, nil
					}
					return hook.Spawning{}, nil
				}})
		}})
		says(t, c, "main", "/subagents spawn evil", "no subagent was started: no room for it")
		says(t, c, "main", "/subagents spawn hold a\nsay done", `Started the subagent "Task 1"; 1 running.`)
		says(t, c, "main", "/subagents spawn", "Usage: ")
		f.waitHeld(t, "a")
		if len(asked) != 2 || asked[1].Parent != "agent:main:main" ||
			!strings.HasPrefix(string(asked[1].Child), "agent:main:subagent:") {
			t.Fatalf("asked %+v", asked)
		}
		says(t, c, "main", "/subagents info 1", "Session: "+string(asked[1].Child))
		f.release("a")
		if got := c.answer("told"); got != "told Task 1 ok" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("SUB-22 with sessions_spawn denied nothing starts", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, Options{Config: Config{
			"tools": json.RawMessage(`{"deny": ["sessions_spawn"]}`), "agents.entries": json.RawMessage(`{"guest": {}}`),
		}})
		for _, session := range []string{"main", "agent:guest:main"} {
			says(t, c, session, "/subagents spawn say hi", "the tool sessions_spawn is not available")
			says(t, c, session, "/subagents", "This session has no subagents.")
		}
		if n := len(f.Requests()); n != 0 {
			t.Errorf("%d model calls", n)
		}
	})
	t.Run("SUB-22 limits apply, and another agent must be allowed", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, Options{Config: Config{
			"agents.defaults": json.RawMessage(`{"subagents": {"maxChildrenPerAgent": 1}}`),
			"agents.entries":  json.RawMessage(`{"guest": {}}`),
		}})
		says(t, c, "main", "/subagents spawn --agent guest say hi", `"guest" may not be used for subagents of "main"`)
		says(t, c, "main", "/subagents spawn hold a", "Started")
		says(t, c, "main", "/subagents spawn say 2", "at most 1 may")
		f.release("a")
		c.answer("told Task 1 ok")
	})
	t.Run("SUB-22 a sender without the permission to write starts nothing", func(t *testing.T) {
		t.Parallel()
		_, _, g := start(t, Options{})
		reader, err := client.Dial(t.Context(), client.Options{Dial: g.Dial, Scopes: []string{"operator.read"}, Once: true})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		err = reader.Call(t.Context(), wire.MethodChatSend,
			wire.ChatSend{SessionKey: "main", Message: "/subagents spawn say hi", IdempotencyKey: "r"}, nil)
		if err == nil {
			t.Error("a reader may start subagents")
		}
		synctest.Test(t, func(t *testing.T) {
			f := newFamily()
			s := newSenders(t, f.Script, nil)
			defer s.stop()
			direct := func(id string) chela.Peer { return chela.Peer{Kind: chela.Direct, ID: id} }
			for _, text := range []string{"/subagents spawn say hi", "/kill all", "/agents"} {
				if got := s.say("open", direct("stranger"), "stranger", text); len(got) != 0 {
					t.Errorf("%s: %q", text, got)
				}
			}
			if n := len(f.Requests()); n != 0 {
				t.Errorf("%d model calls", n)
			}
			got := s.say("open", direct("boss"), "boss", "/subagents spawn say hi")
			if len(got) != 2 || !strings.HasPrefix(got[0], "Started") || got[1] != "told Task 1 ok" {
				t.Errorf("the chat of the person shows %q", got)
			}
		})
	})
	t.Run("a subagent gets messages and is stopped by commands", func(t *testing.T) {
		t.Parallel()
		gate, started := make(chan struct{}), make(chan struct{})
		f := newFamily()
		var st store.Store
		g := Start(t, Options{Model: f, Tools: []tool.Tool{blocking("stall", started, gate)},
			Wrap: func(s store.Store) store.Store { st = s; return s }})
		c := g.Client()
		c.Ask("main", task("stall {}\nthen say finished", "label", "worker", "taskName", "work"))
		<-started
		says(t, c, "main", "/steer worker use metric units", `Sent to the subagent "worker".`)
		says(t, c, "main", "/subagents send work and then check it", `Sent to the subagent "worker".`)
		says(t, c, "agent:main:other", "/subagents steer worker x", `there is no child "worker"`)
		says(t, c, "agent:main:other", "/kill worker", `there is no child "worker"`)
		// "last" is a word of the message
		if end := c.Ask("main", "/steer last words count"); end.Text != "answer to last words count" {
			t.Errorf("an ordinary message: %q", end.Text)
		}
		close(gate)
		if got := c.answer("told "); got != "told worker ok" {
			t.Errorf("told %q", got)
		}
		for _, want := range []string{"Message from your requester: use metric units",
			"Message from your requester: and then check it"} {
			if !f.heard(want) {
				t.Errorf("the subagent did not get %q", want)
			}
		}
		says(t, c, "main", "/subagents steer worker more", "has ended (ok)")
		c.Ask("main", task("hang", "label", "a")+"\n"+task("hang", "label", "b"))
		says(t, c, "main", "/kill a", "Stopped 1 subagent: a.")
		says(t, c, "main", "/kill a", "No such subagent is running.")
		says(t, c, "main", "/kill all", "Stopped 1 subagent: b.")
		says(t, c, "main", "/subagents", "b: killed after ", "a: killed after ")
		m, err := store.Get(t.Context(), st,
			func(r store.Reader) (session.Meta, error) { return r.Sessions().Get("agent:main:main") })
		if err != nil || m.Children.Runs != 3 {
			t.Errorf("the session counts the usage of %d subagents, %v", m.Children.Runs, err)
		}
	})
	t.Run("CMD-15 /reset says what happens to subagents, and no result reaches the new conversation", func(t *testing.T) {
		t.Parallel()
		for command, want := range map[string]string{
			"/reset": "Stopped 1 subagent. New conversation", "/new undo": "Stopped 1 subagent. The previous",
			"/new go on": "Stopped 1 subagent.",
		} {
			f, c, _ := start(t, Options{})
			c.Ask("main", "hello")
			c.Ask("main", "/new")
			c.Ask("main", task("hold a\nsay result", "label", "old"))
			f.waitHeld(t, "a")
			c.Send("main", command)
			if got := c.answer("Stopped"); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q, want %q", command, got, want)
			}
			f.release("a")
			c.Ask("main", task("say later", "label", "new"))
			if got := c.answer("told "); got != "told new ok" {
				t.Errorf("%s: told %q", command, got)
			}
		}
	})
	t.Run("CMD-15 a result that waits is discarded with the old conversation", func(t *testing.T) {
		t.Parallel()
		gate, started := make(chan struct{}), make(chan struct{})
		f := newFamily()
		g := Start(t, Options{Model: f, Tools: []tool.Tool{blocking("stall", started, gate)}})
		c := g.Client()
		c.Send("main", "/queue followup")
		c.Send("main", task("say early", "label", "early")+"\nstall {}")
		<-started
		waittest.Until(t, "the end of the subagent",
			func() bool { return strings.Contains(c.Ask("main", "/subagents").Text, "early: done") })
		says(t, c, "main", "/reset", "Stopped the run in progress. Discarded 1 result of subagents. New conversation")
		close(gate)
		if got := c.Ask("main", "say fresh").Text; got != "fresh" {
			t.Errorf("the first answer: %q", got)
		}
		for _, line := range c.lines("main") {
			if strings.Contains(line, "early") {
				t.Errorf("the new conversation has %q", line)
			}
		}
	})
}
