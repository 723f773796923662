package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/wire"
)

// TestCommandRules tests rules of the configuration and of a document, and a
// document that changes while it is used.
func TestCommandRules(t *testing.T) {
	rule := func(g *Gateway, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(g.Dir, allowlist.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tools := func(exec string) Config { return Config{"tools": json.RawMessage(`{"exec": ` + exec + `}`)} }
	t.Run("AP-01 the document requires approval although the configuration allows everything", func(t *testing.T) {
		g := Start(t, Options{Model: shell(), Config: tools(`{"mode": "full"}`)})
		c := g.Client()
		if end := c.Ask("main", "touch a"); !strings.HasPrefix(end.Text, "got: ") {
			t.Fatalf("without a document: %q", end.Text)
		}
		rule(g, `{"version": 1, "defaults": {"ask": "always"}}`)
		run := c.Send("main", "touch b")
		q := c.question()
		c.decide(q.ID, wire.Deny)
		c.Await(run)
		if _, err := os.Stat(filepath.Join(g.Dir, "workspace", "b")); err == nil {
			t.Error("the command ran")
		}
	})
	t.Run("AP-15 inline code needs approval each time", func(t *testing.T) {
		g := Start(t, Options{Model: shell(), Config: tools(`{"mode": "full", "strictInlineEval": true}`)})
		c := g.Client()
		for range 2 {
			run := c.Send("main", "perl -e 1")
			c.decide(c.question().ID, wire.AllowAlways)
			if end := c.Await(run); !strings.HasPrefix(end.Text, "got: ") {
				t.Errorf("%q", end.Text)
			}
		}
		var s wire.ExecPolicySnapshot
		c.must(wire.MethodExecPolicy, wire.None{}, &s)
		if len(s.File.Agents) != 0 {
			t.Errorf("the decision was remembered: %+v", s.File.Agents)
		}
	})
	t.Run("AP-16 invalid rules prevent all commands", func(t *testing.T) {
		g := Start(t, Options{Model: shell(), Config: tools(`{"mode": "full"}`)})
		c := g.Client()
		rule(g, `{"version": 1, `)
		if end := c.Ask("main", "touch a"); !strings.Contains(end.Text, "no command is run") {
			t.Errorf("%q", end.Text)
		}
		if b, err := os.ReadFile(filepath.Join(g.Dir, allowlist.FileName)); err != nil || string(b) != `{"version": 1, ` {
			t.Errorf("the document is %q, %v", b, err)
		}
		rule(g, `{"version": 1}`)
		if end := c.Ask("main", "touch a"); !strings.HasPrefix(end.Text, "got: ") {
			t.Errorf("after the correction: %q", end.Text)
		}
	})
	t.Run("AP-02 a program on the allowlist runs without approval", func(t *testing.T) {
		g := Start(t, Options{Model: shell(), Config: tools(`{"security": "allowlist", "ask": "off"}`)})
		c := g.Client()
		rule(g, `{"version": 1, "agents": {"*": {"allowlist": ["touch"]}}}`)
		if end := c.Ask("main", "touch a"); !strings.HasPrefix(end.Text, "got: ") {
			t.Errorf("%q", end.Text)
		}
		if end := c.Ask("main", "touch b | rev"); !strings.Contains(end.Text, "rev is not on the allowlist") {
			t.Errorf("%q", end.Text)
		}
		for name, want := range map[string]bool{"a": true, "b": false} {
			if _, err := os.Stat(filepath.Join(g.Dir, "workspace", name)); (err == nil) != want {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
