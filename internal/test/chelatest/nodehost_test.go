//go:build unix

package chelatest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/internal/surface/identity"
	"github.com/chela-ai/chela/internal/surface/nodehost"
	"github.com/chela-ai/chela/wire"
)

// ownNode is this program as the node of a gateway, with a state directory of its own.
type ownNode struct {
	state string
	stop  func() error
	lines chan string
}

// startNode starts a node with a configuration.
func startNode(t *testing.T, dir, url, config string) *ownNode {
	t.Helper()
	n := &ownNode{state: dir, lines: make(chan string, 100)}
	file := filepath.Join(dir, "chela.json")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	start := cli.Start{State: dir, Config: file, LastGood: file + ".good", Log: slog.New(slog.DiscardHandler)}
	build := app.Build(standard.New())
	tools, release, err := build.NodeTools(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := build.NodeTools(t.Context(), start); err == nil ||
		!strings.Contains(err.Error(), "is a node with this state directory already") {
		t.Errorf("a second node with the state directory: %v", err)
	}
	if runs, err := build.NodeRuns(start); !runs || err != nil {
		t.Errorf("the node runs: %t %v", runs, err)
	}
	state, err := identity.Open(nodehost.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- nodehost.Run(ctx, nodehost.Options{
			Log:     start.Log,
			Version: "1",
			Name:    "own",
			Tools:   tools,
			Gateway: url,
			URL:     url,
			Auth:    wire.Auth{Token: nodeToken},
			State:   state,
			Tell:    func(l string) { n.lines <- l },
			Delay:   func(int, error) time.Duration { return 20 * time.Millisecond },
		})
	}()
	stopped := false
	n.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		defer func() {
			release()
			if runs, err := build.NodeRuns(start); runs || err != nil {
				t.Errorf("after the end, the node runs: %t %v", runs, err)
			}
		}()
		return waittest.For(t, "the end of the node", done)
	}
	t.Cleanup(func() { _ = n.stop() })
	return n
}

// until waits for a line that begins with a text.
func (n *ownNode) until(t *testing.T, begin string) {
	t.Helper()
	for {
		if strings.HasPrefix(waittest.For(t, "the line "+begin, n.lines), begin) {
			return
		}
	}
}

func TestNodeHost(t *testing.T) {
	t.Parallel()
	dir, nodeDir := t.TempDir(), t.TempDir()
	s := llmtest.NewScript(
		called("exec", `{"command":"echo here","host":"node"}`), llmtest.Say("one"),
		called("exec", `{"command":"echo here >&2; exit 4","host":"node"}`), llmtest.Say("two"),
		called("exec", `{"command":"echo again","host":"node"}`), llmtest.Say("three"),
		called("exec", `{"command":"echo $$ > pid; sleep 1000","host":"node","workdir":"`+nodeDir+`","timeoutSeconds":1500}`),
		llmtest.Say("four"),
		called("exec", `{"command":"echo gone","host":"node"}`), llmtest.Say("five"),
	)
	g := nodesGateway(t, Options{Model: s, Dir: dir})
	url := g.URL()
	c := g.Client()
	n := startNode(t, nodeDir, url, `{}`)
	n.until(t, "connected to")
	approveNodes(c)
	do := func(want string) string {
		t.Helper()
		run := c.Send("main", "go")
		c.decide(c.question().ID, wire.AllowOnce)
		if end := c.Await(run); end.Text != want {
			t.Fatalf("the answer is %q, want %q", end.Text, want)
		}
		return lastResult(s).PlainText()
	}
	if got := do("one"); !strings.Contains(got, "the node own refuses it by its own rules") ||
		!strings.Contains(got, "chela approvals allowlist add") {
		t.Errorf("without rules, the node says %q", got)
	}
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	n = startNode(t, nodeDir, url, `{"tools":{"exec":{"mode":"ask"}}}`)
	n.until(t, "connected to")
	if got := do("two"); got != "here\n\n[exit code 4]" {
		t.Errorf("after approval, the node says %q", got)
	}

	// The gateway is started again: the node is there by itself.
	g.Stop()
	n.until(t, "not connected")
	port, err := strconv.Atoi(url[strings.LastIndexByte(url, ':')+1:])
	if err != nil {
		t.Fatal(err)
	}
	g = Start(t, Options{Model: s, Dir: dir, Listen: &endpoint.Listen{Port: port},
		Config: Config{"gateway.auth": []byte(`{"mode": "token", "token": "` + nodeToken + `"}`)}})
	c = g.Client()
	n.until(t, "connected to")
	if got := do("three"); got != "again" {
		t.Errorf("after a restart, the node says %q", got)
	}

	// The end of the node ends its commands, and the call.
	run := c.Send("main", "go")
	c.decide(c.question().ID, wire.AllowOnce)
	pidFile := filepath.Join(nodeDir, "pid")
	var pid string
	waittest.Until(t, "the command", func() bool {
		b, _ := os.ReadFile(pidFile)
		pid = strings.TrimSpace(string(b))
		return pid != ""
	})
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/proc/" + pid); err == nil {
		t.Errorf("process %s is still there", pid)
	}
	if c.Await(run); !strings.Contains(lastResult(s).PlainText(), "whether it was carried out is unknown") {
		t.Errorf("the call of a node that was stopped: %q", lastResult(s).PlainText())
	}
	if c.Ask("main", "go"); !strings.Contains(lastResult(s).PlainText(), "no node that is connected runs commands") {
		t.Errorf("without a node: %q", lastResult(s).PlainText())
	}
}
