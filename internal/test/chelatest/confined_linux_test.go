package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/wire"
)

// site starts a site that answers "hello", and returns a function that connects
// to it instead of any host "example.…".
func site(t *testing.T) func(ctx context.Context, network, addr string) (net.Conn, error) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(site.Close)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !strings.Contains(addr, "example.") {
			return nil, errors.New("no such host: " + addr)
		}
		return (&net.Dialer{}).DialContext(ctx, network, site.Listener.Addr().String())
	}
}

// confined starts a gateway whose commands are confined.
func confined(t *testing.T, conf Config) *Gateway {
	t.Helper()
	return Start(t, Options{Model: shell(), Config: conf, Dial: site(t)})
}

// prompts sends a command that must be asked about, and returns the question.
func (c *Client) prompts(session, command string) (run string, q wire.Approval) {
	c.t.Helper()
	run = c.Send(session, command)
	return run, c.question()
}

// runs sends a command that must not be asked about, and returns the answer.
func (c *Client) runs(session, command string) string {
	c.t.Helper()
	end := c.Ask(session, command)
	if slices.ContainsFunc(end.Seen, func(ev wire.Event) bool { return ev.Name == wire.EventApprovalRequested }) {
		c.t.Errorf("it asks about %s", command)
	}
	return end.Text
}

func TestConfined(t *testing.T) {
	t.Run("working in the workspace asks nothing, leaving it asks", func(t *testing.T) {
		g := confined(t, nil)
		c := g.Client()
		file := filepath.Join(g.Dir, "workspace", "a.txt")
		if got := c.runs("main", "echo one > a.txt; cat a.txt | tr a-z A-Z; cd /tmp && touch b"); !strings.Contains(got,
			"ONE") {
			t.Errorf("answered %q", got)
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "one\n" {
			t.Errorf("%q, %v", b, err)
		}
		for command, reason := range map[string]string{
			"cat ~/letter": "outside the workspace", "echo x > ~/x": "outside the workspace", "cat .env": "private",
			"sudo ls": "outside of the sandbox",
		} {
			run, q := c.prompts("main", command)
			if !strings.Contains(q.Request.Reason, reason) {
				t.Errorf("%s: asked because %q", command, q.Request.Reason)
			}
			c.decide(q.ID, wire.Deny)
			c.Await(run)
		}
	})
	t.Run("a hostile repository that is looked at changes nothing", func(t *testing.T) {
		g := confined(t, nil)
		c := g.Client()
		ws := filepath.Join(g.Dir, "workspace")
		for _, args := range [][]string{
			{"init", "-q", "."}, {"config", "user.name", "a"}, {"config", "user.email", "a@b"}, {"add", "AGENTS.md"},
			{"commit", "-qm", "first"},
			{"config", "core.fsmonitor", "touch hit; echo x >> AGENTS.md; echo fsmonitor >&2"},
			{"config", "diff.external", "touch hit; echo external >&2"}, {"config", "core.pager", "touch hit; cat"},
			{"config", "diff.x.textconv", "touch hit; cat"}, {"config", "alias.status", "!touch hit"},
		} {
			cmd := exec.Command("git", args...)
			cmd.Dir = ws
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
		}
		file := filepath.Join(ws, "AGENTS.md")
		if err := errors.Join(os.WriteFile(file, []byte("changed\n"), 0o600),
			os.WriteFile(filepath.Join(ws, ".gitattributes"), []byte("* diff=x\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		for command, want := range map[string]string{
			"git status": "modified:   AGENTS.md",
			"git diff":   "external",
			"git log":    "first",
			"git show HEAD | head -3; git blame AGENTS.md":                    "Author: a",
			"cd . && git --no-pager diff --no-ext-diff && git status --short": "changed",

			"git -C . status": "modified:   AGENTS.md",
		} {
			if got := c.runs("main", command); !strings.Contains(got, want) {
				t.Errorf("%s: answered %q", command, got)
			}
			if _, err := os.Stat(filepath.Join(ws, "hit")); err == nil {
				t.Fatalf("%s ran a program of the repository that changed the workspace", command)
			}
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "changed\n" {
			t.Errorf("%q, %v", b, err)
		}
		c.runs("main", "git diff --output=out.diff; git stash list")
		if _, err := os.Stat(filepath.Join(ws, "out.diff")); err != nil {
			t.Errorf("a command that writes has no right to: %v", err)
		}
	})
	t.Run("what a command makes and other programs would run is renamed, and the model is told", func(t *testing.T) {
		g := confined(t, nil)
		got := g.Client().runs("main",
			"mkdir -p .idea lib/.git/hooks && echo x > .idea/a && echo x > lib/.git/hooks/pre-push")
		if !strings.Contains(got,
			"renamed to NAME.blocked, because other programs run what has such a name: .idea, lib/.git/hooks/pre-push;") {
			t.Errorf("answered %q", got)
		}
		if b, err := os.ReadFile(filepath.Join(g.Dir, "workspace", ".idea.blocked", "a")); err != nil || string(b) != "x\n" {
			t.Errorf("%q, %v", b, err)
		}
	})
	t.Run("mode ask asks about all but reading", func(t *testing.T) {
		c := confined(t, Config{"tools.exec": json.RawMessage(`{"mode": "ask"}`)}).Client()
		c.runs("main", "ls -la; cat a.txt")
		run, q := c.prompts("main", "touch a.txt")
		c.decide(q.ID, wire.Deny)
		c.Await(run)
	})
	t.Run("a host that is refused becomes a question about this host", func(t *testing.T) {
		needtest.Program(t, "curl")
		g := confined(t, nil)
		c := g.Client()
		run, q := c.prompts("main", "curl -sS http://example.org/a") // it succeeds with any page
		if want := "connect to example.org"; !strings.Contains(q.Request.Reason, want) ||
			!strings.Contains(q.Request.Command, want) {
			t.Errorf("asked %+v", q.Request)
		}
		c.decide(q.ID, wire.AllowSession)
		if end := c.Await(run); !strings.Contains(end.Text, "got: hello") {
			t.Errorf("answered %q", end.Text)
		}
		if got := c.runs("main", "curl -sSf http://example.org/b"); !strings.Contains(got, "got: hello") {
			t.Errorf("another command of the session: %q", got)
		}
		for session, url := range map[string]string{
			"main":             "http://example.com/",
			"agent:main:other": "http://example.org/a",
		} {
			run, q := c.prompts(session, "curl -sSf "+url)
			c.decide(q.ID, wire.AllowOnce)
			if end := c.Await(run); !strings.Contains(end.Text, "got: hello") {
				t.Errorf("%s: %q", url, end.Text)
			}
			run, q = c.prompts(session, "curl -sSf "+url) // it was allowed once
			c.decide(q.ID, wire.Deny)
			c.Await(run)
		}
	})
	t.Run("a file that is refused becomes a question about this file", func(t *testing.T) {
		g := confined(t, nil)
		c := g.Client()
		dir, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "letter"), []byte("dear"), 0o600); err != nil {
			t.Fatal(err)
		}
		command := "D=" + filepath.Dir(dir) + "; cat $D/" + filepath.Base(dir) + "/letter"
		run, q := c.prompts("main", command)
		if want := "read " + dir + "/letter"; !strings.HasSuffix(q.Request.Reason, want) {
			t.Errorf("asked %+v", q.Request)
		}
		c.decide(q.ID, wire.AllowAlways)
		if end := c.Await(run); !strings.Contains(end.Text, "dear") {
			t.Errorf("answered %q", end.Text)
		}
		if got := c.runs("agent:main:other", command+"; echo again"); !strings.Contains(got, "dearagain") {
			t.Errorf("another session of the agent: %q", got)
		}
	})
}
