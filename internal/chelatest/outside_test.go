//go:build unix

package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// TestOutside lets the file tools out of the workspace: what is there is read,
// and changed when a person allows it.
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
			t.Fatalf("it is %q, %v; want %q", got, err, want)
		}
	}
	if got := c.Ask("main", `read {"path":"`+path+`"}`).Text; !strings.Contains(got, "1\tone") {
		t.Errorf("read: %q", got)
	}
	ask := func(call, decision string) string {
		t.Helper()
		run := c.Send("main", call)
		q := c.question()
		if !strings.Contains(q.Request.Command, path) || !strings.Contains(q.Request.Reason, "outside of the workspace") {
			t.Errorf("%s: asked %q because %q", call, q.Request.Command, q.Request.Reason)
		}
		c.decide(q.ID, decision)
		return c.Await(run).Text
	}
	if got := ask(`edit {"path":"`+path+`","oldText":"one","newText":"two"}`, wire.Deny); !strings.Contains(got, "denied") {
		t.Errorf("denied: %q", got)
	}
	is("one\n")
	ask(`edit {"path":"`+path+`","oldText":"one","newText":"two"}`, wire.AllowOnce)
	is("two\n")
	ask(`apply_patch {"input":"*** Begin Patch\n*** Update File: `+path+`\n@@\n-two\n+three\n*** End Patch"}`, wire.AllowOnce)
	is("three\n")
	run := c.Send("main", `read {"path":"`+filepath.Join(g.Dir, "chela.db")+`"}`)
	q := c.question()
	if !strings.Contains(q.Request.Reason, "private") {
		t.Errorf("Chela's own: %q", q.Request.Reason)
	}
	c.decide(q.ID, wire.Deny)
	c.Await(run)
}
