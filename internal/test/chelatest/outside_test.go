//go:build unix

package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestOutside allows the file tools to leave the workspace: files outside are
// read, and changed after approval.
func TestOutside(t *testing.T) {
	g := Start(t, Options{Model: uses(), Config: Config{
		"tools": json.RawMessage(`{"fs": {"workspaceOnly": false}, "exec": {"applyPatch": {"workspaceOnly": false}}}`),
	}})
	c := g.Client()
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("the file is %q, %v; want %q", got, err, want)
		}
	}
	if got := c.Ask("main", `read {"path":"`+path+`"}`).Text; !strings.Contains(got, "1\tone") {
		t.Errorf("read: %q", got)
	}
	ask := func(call, decision string) string {
		t.Helper()
		run := c.Send("main", call)
		q := c.question()
		if !strings.Contains(q.Request.Command, path) || !strings.Contains(q.Request.Reason, "outside the workspace") {
			t.Errorf("%s: asked %q because %q", call, q.Request.Command, q.Request.Reason)
		}
		c.decide(q.ID, decision)
		return c.Await(run).Text
	}
	if got := ask(`edit {"path":"`+path+`","oldText":"one","newText":"two"}`,
		wire.Deny); !strings.Contains(got, "denied") {
		t.Errorf("denied: %q", got)
	}
	is("one\n")
	ask(`edit {"path":"`+path+`","oldText":"one","newText":"two"}`, wire.AllowOnce)
	is("two\n")
	ask(`apply_patch {"input":"*** Begin Patch\n*** Update File: `+path+`\n@@\n-two\n+three\n*** End Patch"}`,
		wire.AllowOnce)
	is("three\n")
	run := c.Send("main", `read {"path":"`+filepath.Join(g.Dir, "chela.db")+`"}`)
	q := c.question()
	if !strings.Contains(q.Request.Reason, "private") {
		t.Errorf("Chela's own file: %q", q.Request.Reason)
	}
	c.decide(q.ID, wire.Deny)
	c.Await(run)
}

// TestFileAccess has every tool that returns file contents access the same files,
// with the setting for all agents and for one agent.
func TestFileAccess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tools, agents string
		out           []string // the agents that may leave their workspaces
	}{
		"nothing is set": {`{}`, `{"list": [{"id": "ops"}]}`, nil},
		"set for all agents": {`{"fs": {"workspaceOnly": false}}`, `{"list": [{"id": "ops"}]}`,
			[]string{"main", "ops"}},
		"set for an agent in the list": {`{}`, `{"list": [{"id": "ops", "tools": {"fs": {"workspaceOnly": false}}}]}`,
			[]string{"ops"}},
		"set for an agent in the entries": {`{"fs": {"workspaceOnly": true}}`,
			`{"entries": {"ops": {"tools": {"fs": {"workspaceOnly": false}}}}}`, []string{"ops"}},
		"one agent is restricted": {`{"fs": {"workspaceOnly": false}}`,
			`{"list": [{"id": "ops", "tools": {"fs": {"workspaceOnly": true}}}]}`, []string{"main"}},
		"set for the agent that always exists": {`{}`,
			`{"list": [{"id": "ops"}, {"id": "main", "tools": {"fs": {"workspaceOnly": false}}}]}`, []string{"main"}},
		"an agent with other settings": {`{"fs": {"workspaceOnly": false}}`,
			`{"list": [{"id": "ops", "tools": {"deny": ["exec"]}}]}`, []string{"main", "ops"}},
		"an agent with an empty fs section": {`{"fs": {"workspaceOnly": false}}`,
			`{"entries": {"ops": {"tools": {"fs": {}}}}}`, []string{"main", "ops"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := Start(t, Options{Model: looks(), Config: Config{"tools": json.RawMessage(tt.tools),
				"agents": json.RawMessage(tt.agents)}})
			c := g.Client()
			outside := filepath.Join(t.TempDir(), "pic.png")
			for agent, dir := range map[string]string{"main": "workspace", "ops": "workspace-ops"} {
				files := reached(t, g.Dir, filepath.Join(g.Dir, dir), outside)
				for _, f := range files {
					want := f.inside
					if slices.Contains(tt.out, agent) {
						want = f.out
					}
					for _, call := range []string{`read {"path":"PATH"}`, `image {"path":"PATH"}`, `image {"paths":["PATH"]}`,
						`message {"message":"x","media":["PATH"]}`} {
						call = strings.ReplaceAll(call, "PATH", f.path)
						if got := c.outcome("agent:"+agent+":main", call); got != want {
							t.Errorf("%s, %s: %s: %s, want %s", agent, f.name, call, got, want)
						}
					}
				}
			}
		})
	}
}

// looks returns a model that makes the requested calls and accepts all
// pictures.
func looks() *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleUser && last.Parts[len(last.Parts)-1].Kind == llm.PartImage {
			return llmtest.Say("it is seen")
		}
		return use(n, r)
	})
}

// The outcomes of calls that name a file.
const (
	isGiven   = "given"
	isRefused = "refused"
	isAsked   = "asked"
)

// target is a file that is accessed, with the outcomes for an agent that is
// restricted to its workspace and for one that is not.
type target struct{ name, path, inside, out string }

// reached creates the files for the agent of a workspace.
func reached(t *testing.T, state, dir, outside string) []target {
	t.Helper()
	link := func(make func(old, new string) error, old, name string) string {
		if err := make(old, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, path := range []string{filepath.Join(dir, "in.png"), filepath.Join(dir, "two.png"), outside,
		filepath.Join(state, "own.png")} {
		if err := os.WriteFile(path, dot(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []target{
		{"inside", "in.png", isGiven, isGiven},
		{"inside, by its absolute path", filepath.Join(dir, "in.png"), isGiven, isGiven},
		{"inside, by a link", link(os.Symlink, "in.png", "link.png"), isGiven, isGiven},
		{"a hard link", link(os.Link, filepath.Join(dir, "two.png"), "hard.png"), isRefused, isRefused},
		{"outside", outside, isRefused, isGiven},
		{"a link to the outside", link(os.Symlink, outside, "out.png"), isRefused, isGiven},
		{"in the state directory", filepath.Join(state, "own.png"), isRefused, isAsked},
		{"by a link to the state directory", link(os.Symlink, filepath.Join(state, "own.png"), "state.png"),
			isRefused, isAsked},
		{"a system path", "/proc/self/environ", isRefused, isRefused},
	}
}

// outcome makes a call that names a file, denies it if approval is requested,
// and returns its outcome.
func (c *Client) outcome(session, call string) string {
	c.t.Helper()
	run, asked := c.Send(session, call), false
	for ev := range c.Events() {
		var q wire.Approval
		var chat wire.Chat
		switch ev.Name {
		case wire.EventApprovalRequested:
			if err := ev.Decode(&q); err != nil || !strings.Contains(q.Request.Reason, "private files") {
				c.t.Fatalf("%s: asked because %q, %v", call, q.Request.Reason, err)
			}
			c.decide(q.ID, wire.Deny)
			asked = true
		case wire.EventChat:
			if err := ev.Decode(&chat); err != nil {
				c.t.Fatal(err)
			}
			if chat.RunID == run && chat.State != wire.StateDelta && chat.Message != nil {
				return judge(chat.Message.Text(), asked)
			}
		}
	}
	c.t.Fatalf("%s: the connection was closed: %v", call, c.Err())
	return ""
}

// judge returns the outcome that the answer of a tool shows.
func judge(text string, asked bool) string {
	says := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case asked && says("denied"):
		return isAsked
	case asked:
	case says("outside the workspace"), says("more than one name"), says("is a system path"):
		return isRefused
	case says("it is seen"), says("(image/png"), says("Shown in"):
		return isGiven
	}
	return text
}
