package chelatest

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// actor is a tool whose calls need approval. Its plan depends on its arguments only.
type actor struct {
	name string
	once *atomic.Bool // what it does may not be allowed always
	ran  *atomic.Int64
}

func (a actor) Spec() tool.Spec {
	return tool.Spec{Name: a.name, Description: "acts", Effect: tool.Acts,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
}

func (a actor) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	return tool.Plan{
		Effect: tool.Acts,
		Text:   "act",
		Hash:   string(c.Args),
		Ask:    true,
		Reason: "it acts",
		Once:   a.once.Load(),
	}, nil
}

func (a actor) Run(context.Context, tool.Call) (tool.Result, error) {
	a.ran.Add(1)
	return tool.Text("acted"), nil
}

// actors returns two tools that share their state.
func actors() (once *atomic.Bool, ran *atomic.Int64, tools []tool.Tool) {
	once, ran = new(atomic.Bool), new(atomic.Int64)
	return once, ran, []tool.Tool{actor{"act", once, ran}, actor{"react", once, ran}}
}

// asks sends a message and reports whether an approval was requested, which it
// denies.
func (c *Client) asks(session, text string) bool {
	c.t.Helper()
	run := c.Send(session, text)
	for ev := range c.Events() {
		var chat wire.Chat
		var a wire.Approval
		switch ev.Name {
		case wire.EventApprovalRequested:
			if err := ev.Decode(&a); err != nil {
				c.t.Fatal(err)
			}
			c.decide(a.ID, wire.Deny)
			c.Await(run)
			return true
		case wire.EventChat:
			if err := ev.Decode(&chat); err != nil {
				c.t.Fatal(err)
			}
			if chat.RunID == run && chat.State != wire.StateDelta {
				return false
			}
		}
	}
	c.t.Fatalf("the connection was closed during run %s: %v", run, c.Err())
	return false
}

// allow sends a message whose call is allowed.
func (c *Client) allow(session, text, decision string) {
	c.t.Helper()
	run := c.Send(session, text)
	id := c.question().ID
	c.Ask(session, "/approve "+id+" "+decision)
	if w := c.waited(run); w.Status != wire.StatusOK {
		c.t.Fatalf("%s: %+v", text, w)
	}
}

// TestStandingDecisions checks how far a decision holds that covers later calls:
// for which agents, sessions, tools and arguments.
func TestStandingDecisions(t *testing.T) {
	t.Parallel()
	agents := Config{
		"agents.list": json.RawMessage(`[{"id": "main", "default": true}, {"id": "ops"}, {"id": "mainframe"}]`)}
	const call = `act {"n":1}`
	// check makes calls without the person and compares which of them asked.
	check := func(t *testing.T, c *Client, ran *atomic.Int64, want map[[2]string]bool) {
		t.Helper()
		for k, asks := range want {
			before := ran.Load()
			if got := c.asks(k[0], k[1]); got != asks || ran.Load() != before+map[bool]int64{false: 1}[asks] {
				t.Errorf("%s in %s: asked %v, ran %d times; want it to ask: %v", k[1], k[0], got, ran.Load()-before, asks)
			}
			// The same call outside of a run, where nobody can be asked.
			name, args, _ := strings.Cut(k[1], " ")
			before = ran.Load()
			var out wire.ToolsInvoked
			c.must(wire.MethodToolsInvoke, wire.ToolsInvoke{Name: name, Args: json.RawMessage(args), SessionKey: k[0]}, &out)
			if out.NeedsApproval != asks || ran.Load() != before+map[bool]int64{false: 1}[asks] {
				t.Errorf("%s in %s, called directly: %+v, ran %d times; want it refused: %v", k[1], k[0], out,
					ran.Load()-before, asks)
			}
		}
	}
	t.Run("always: in all sessions of the agent, for the tool and the plan", func(t *testing.T) {
		_, ran, tools := actors()
		c := Start(t, Options{Model: uses(), Tools: tools, Config: agents}).Client()
		c.allow("agent:main:main", call, wire.AllowAlways)
		c.allow("agent:mainframe:main", `act {"n":3}`, wire.AllowAlways)
		check(t, c, ran, map[[2]string]bool{
			{"agent:mainframe:other", `act {"n":3}`}: false, {"agent:main:main", `act {"n":3}`}: true,
			{"agent:main:main", call}: false, {"agent:main:other", call}: false,
			{"agent:ops:main", call}: true, {"agent:mainframe:main", call}: true, {"agent:ops:agent:main:main", call}: true,
			{"agent:main:main", `act {"n":2}`}: true, {"agent:main:main", `react {"n":1}`}: true,
		})
	})
	t.Run("for the session: in no other one", func(t *testing.T) {
		_, ran, tools := actors()
		c := Start(t, Options{Model: uses(), Tools: tools, Config: agents}).Client()
		c.allow("agent:main:main", call, "session")
		check(t, c, ran, map[[2]string]bool{
			{"agent:main:main", call}: false, {"agent:main:other", call}: true, {"agent:ops:main", call}: true,
			{"agent:main:main", `act {"n":2}`}: true, {"agent:main:main", `react {"n":1}`}: true,
		})
	})
	t.Run("a plan that must be allowed each time ignores earlier decisions, until it no longer must", func(t *testing.T) {
		once, ran, tools := actors()
		c := Start(t, Options{Model: uses(), Tools: tools, Config: agents}).Client()
		c.allow("agent:main:main", call, wire.AllowAlways)
		c.allow("agent:main:main", `act {"n":2}`, "session")
		for _, must := range []bool{true, false} {
			once.Store(must)
			check(t, c, ran, map[[2]string]bool{{"agent:main:main", call}: must, {"agent:main:main", `act {"n":2}`}: must})
		}
	})
}

// TestOlderDecisions changes the configuration after a decision, or between the
// request and the decision.
func TestOlderDecisions(t *testing.T) {
	t.Parallel()
	t.Run("a command that was allowed always is asked about when all commands are", func(t *testing.T) {
		g := Start(t, Options{Model: shell()})
		c := g.Client()
		c.allow("main", "touch one", wire.AllowAlways)
		for tools, want := range map[string]bool{`{"exec": {"ask": "always"}}`: true, `{}`: false} {
			g.Stop()
			g = Start(t, Options{Model: shell(), Dir: g.Dir, Config: Config{"tools": json.RawMessage(tools)}})
			if got := g.Client().asks("main", "touch one"); got != want {
				t.Errorf("with tools %s: asked %v", tools, got)
			}
		}
	})
	for name, after := range map[string]string{
		"a tool that is denied to all agents": `{"tools": {"deny": ["act"]}}`,
		"a tool that is denied to the agent":  `{"agents.entries": {"main": {"tools": {"deny": ["act"]}}}}`,
	} {
		t.Run(name+" does not run, whatever was decided", func(t *testing.T) {
			_, ran, tools := actors()
			var config Config
			if err := json.Unmarshal([]byte(after), &config); err != nil {
				t.Fatal(err)
			}
			g := Start(t, Options{Model: uses(), Tools: tools})
			c := g.Client()
			c.allow("main", `act {"n":1}`, wire.AllowAlways)
			run := c.Send("main", `act {"n":2}`)
			q := c.question()
			g.Stop()
			g = Start(t, Options{Model: uses(), Tools: tools, Dir: g.Dir, Config: config})
			c = g.Client()
			c.decide(q.ID, wire.AllowAlways)
			if w := c.waited(run); w.Status != wire.StatusOK || ran.Load() != 1 {
				t.Errorf("%+v, ran %d times", w, ran.Load())
			}
			if end := c.Ask("main", `act {"n":1}`); !strings.Contains(end.Text, "does not allow this tool") || ran.Load() != 1 {
				t.Errorf("%q, ran %d times", end.Text, ran.Load())
			}
		})
	}
}
