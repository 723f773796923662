package chelatest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// section returns a configuration with one section.
func section(name, text string) Config { return Config{name: json.RawMessage(text)} }

// full allows all commands without approval.
func full() Config { return section("tools", `{"exec": {"mode": "full"}}`) }

// trace is the decoded agent events of a run.
type trace struct {
	all       []wire.Agent
	lifecycle []wire.Lifecycle
	tools     []wire.ToolStep
}

// traceOf decodes the agent events of a run.
func traceOf(t *testing.T, seen []wire.Event, run string) trace {
	t.Helper()
	var out trace
	for _, ev := range seen {
		var a wire.Agent
		if ev.Name != wire.EventAgent || ev.Decode(&a) != nil || a.RunID != run {
			continue
		}
		out.all = append(out.all, a)
		var err error
		switch a.Stream {
		case wire.StreamLifecycle:
			var l wire.Lifecycle
			err = json.Unmarshal(a.Data, &l)
			out.lifecycle = append(out.lifecycle, l)
		case wire.StreamTool:
			var s wire.ToolStep
			err = json.Unmarshal(a.Data, &s)
			out.tools = append(out.tools, s)
		}
		if err != nil {
			t.Fatalf("%s: %v", a.Stream, err)
		}
	}
	return out
}

// ends counts the events that end a run.
func (s trace) ends() int {
	n := 0
	for _, l := range s.lifecycle {
		if l.Phase == wire.PhaseEnd || l.Phase == wire.PhaseError {
			n++
		}
	}
	return n
}

// final returns the chat event that ended a run.
func final(t *testing.T, end Ended) wire.Chat {
	t.Helper()
	var chat wire.Chat
	if len(end.Seen) == 0 || end.Seen[len(end.Seen)-1].Decode(&chat) != nil || chat.RunID != end.Run {
		t.Fatalf("run %s did not end with a chat event", end.Run)
	}
	return chat
}

// awaitAll reads events until all runs have ended, in any order.
func (c *Client) awaitAll(runs ...string) []wire.Event {
	c.t.Helper()
	left := map[string]bool{}
	for _, run := range runs {
		left[run] = true
	}
	var seen []wire.Event
	limit := time.After(patience)
	for len(left) > 0 {
		select {
		case ev, ok := <-c.Events():
			if !ok {
				c.t.Fatalf("the connection was closed during runs: %v", c.Err())
			}
			seen = append(seen, ev)
			var chat wire.Chat
			if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.State != wire.StateDelta {
				delete(left, chat.RunID)
			}
		case <-limit:
			c.t.Fatalf("runs did not end: %v", left)
		}
	}
	return seen
}

// waited waits until a run has ended, and returns how.
func (c *Client) waited(run string) wire.AgentWaited {
	c.t.Helper()
	var w wire.AgentWaited
	c.must(wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: waittest.Limit.Milliseconds()}, &w)
	return w
}

// messages returns the transcript of a session.
func (c *Client) messages(session string) []wire.Message {
	c.t.Helper()
	h, err := c.History(c.t.Context(), session, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	return h.Messages
}

// lines returns a transcript in short form: "user: hi".
func (c *Client) lines(session string) []string {
	c.t.Helper()
	var out []string
	for _, m := range c.messages(session) {
		line := m.Role + ": " + m.Text()
		for _, p := range m.Content {
			if p.Type == wire.ContentCall {
				line += "<" + p.Name + ">"
			}
		}
		out = append(out, line)
	}
	return out
}

// nextEvent returns the next event of a name.
func (c *Client) nextEvent(name string) wire.Event {
	c.t.Helper()
	limit := time.After(waittest.Limit)
	for {
		select {
		case ev, ok := <-c.Events():
			if !ok || ev.Name == name {
				return ev
			}
		case <-limit:
			c.t.Fatal("no event ", name)
		}
	}
}

// must calls a method and fails the test on an error.
func (c *Client) must(method string, params, result any) {
	c.t.Helper()
	if err := c.Call(c.t.Context(), method, params, result); err != nil {
		c.t.Fatal(err)
	}
}

// describe returns a session in the form of session lists.
func (c *Client) describe(key string) wire.Session {
	c.t.Helper()
	var d wire.SessionDescribed
	c.must(wire.MethodSessionsDescribe, wire.SessionKey{Key: key}, &d)
	if d.Session == nil {
		c.t.Fatalf("session %s does not exist", key)
	}
	return *d.Session
}

// writeFile writes a file to the workspace.
func writeFile(t *testing.T, g *Gateway, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.Dir, "workspace", name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plant writes a file and makes its folder.
func plant(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// isCommand reports whether a chat event is the answer to a slash command.
func isCommand(c wire.Chat) bool { return c.Message != nil && c.Message.Meta.Kind == wire.KindCommand }

// footer returns the usage line below an answer.
func footer(c wire.Chat) string {
	if c.Message == nil {
		return ""
	}
	return c.Message.Meta.Footer
}
