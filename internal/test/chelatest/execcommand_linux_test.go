package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// execConfig is a configuration with a mode of tools.exec and a second agent.
func execConfig(mode string) Config {
	return Config{"tools": json.RawMessage(`{"exec": {"mode": "` + mode + `"}}`),
		"agents": json.RawMessage(`{"list": [{"id": "main"}, {"id": "ops"}]}`)}
}

func TestExecCommand(t *testing.T) {
	t.Parallel()
	const disabled = "Running commands is disabled"
	command := execCall("echo ran", "")
	t.Run("TP /exec narrows the commands of one session, also after a restart, and of one message", func(t *testing.T) {
		t.Parallel()
		o := Options{Dir: t.TempDir(), Model: caller(), Config: execConfig("full")}
		g := Start(t, o)
		c := g.Client()
		says := func(session, text, want string) {
			t.Helper()
			if end := c.Ask(session, text); !strings.Contains(end.Text, want) {
				t.Errorf("%s in %s: %q %s, want %q", text, session, end.Text, end.Error, want)
			}
		}
		says("main", "/exec", "Commands: host auto (default), security full (default), ask off (default). Options: host=sandbox|gateway security=deny|allowlist|full ask=off|on-miss|always, default.")
		says("main", command, "ran")
		says("main", "/exec security=deny", "Commands: host auto (default), security deny, ask off (default).")
		says("main", command, disabled)
		says("work", command, "ran")
		says("agent:ops:main", command, "ran")
		c.Close()
		g.Stop()
		g = Start(t, o)
		c = g.Client()
		says("main", command, disabled)
		says("main", "/status", "Commands: host default · security deny · ask default")
		if s := c.describe("main"); s.ExecSecurity != "deny" || s.ExecAsk != "" {
			t.Errorf("after a restart: %+v", s.SessionExec)
		}
		for text, want := range map[string]string{
			"/exec host=node": `no setting "host=node"`, "/exec security": `no setting "security"`,
			"/exec color=red": `no setting "color=red"`,
		} {
			says("main", text, want)
		}
		says("main", "/new", "New conversation")
		says("main", command, disabled) // it belongs to the session, not to the transcript
		says("main", "/exec security=default", "security full (default)")
		says("main", command, "ran")
		says("main", "/exec security=deny "+command, disabled)
		says("main", command, "ran")
		says("main", "/exec security=deny ask=always", "security deny, ask always.")
		says("main", "/exec default", "security full (default), ask off (default).")
		says("main", command, "ran")
	})
	t.Run("TP /exec never widens what tools.exec allows, however it is stored", func(t *testing.T) {
		t.Parallel()
		c := Start(t, Options{Model: caller(), Config: execConfig("ask")}).Client()
		changes := execCall("echo ran > made.txt", "")
		for text, want := range map[string]string{
			"/exec security=full":      "security=full would allow more than tools.exec and the approvals do: allowlist.",
			"/exec ask=off":            "ask=off would ask less than tools.exec and the approvals do: on-miss.",
			"/exec host=sandbox":       "Commands cannot be kept in the sandbox: commands are not sandboxed here.",
			"/exec ask=always ask=off": "ask=off would ask less",
		} {
			if got := c.Ask("main", text).Text; !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q", text, got, want)
			}
		}
		if got := c.Ask("main", "/exec").Text; !strings.HasPrefix(got,
			"Commands: host auto (default), security allowlist (default), ask on-miss (default).") {
			t.Errorf("/exec: %q", got)
		}
		c.must(wire.MethodSessionsPatch, map[string]any{"key": "main", "execSecurity": "full", "execAsk": "off"}, nil)
		for _, text := range []string{changes, "/exec security=full ask=off " + changes} {
			run := c.Send("main", text)
			c.decide(c.question().ID, wire.Deny)
			if end := c.Await(run); strings.Contains(end.Text, "ran") {
				t.Errorf("%s: %q", text, end.Text)
			}
		}
		c.must(wire.MethodSessionsPatch, map[string]any{
			"key":          "main",
			"execHost":     "sandbox",
			"execSecurity": nil,
			"execAsk":      nil,
		}, nil)
		if got := c.Ask("main", command).Text; !strings.Contains(got, "not sandboxed here") {
			t.Errorf("in a sandbox that there is not: %q", got)
		}
		if err := c.Call(t.Context(), wire.MethodSessionsPatch, map[string]any{"key": "main", "execAsk": "never"},
			nil); err == nil || !strings.Contains(err.Error(), "must be one of off, on-miss, always") {
			t.Errorf("an invalid value: %v", err)
		}
	})
	t.Run("TP a call that waits for its approval is refused if /exec was narrowed meanwhile, after a restart",
		func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: t.TempDir(), Model: caller(), Config: execConfig("ask")}
			g := Start(t, o)
			c := g.Client()
			c.Send("main", execCall("echo ran > made.txt", ""))
			q := c.question()
			c.Ask("main", "/exec security=deny")
			c.Close()
			g.Stop()
			g = Start(t, o)
			c = g.Client()
			c.decide(q.ID, wire.AllowOnce)
			if end := c.Ask("main", "are you there?"); end.State != wire.StateFinal {
				t.Errorf("%s %s", end.State, end.Error)
			}
			if _, err := os.Stat(filepath.Join(g.Dir, "workspace", "made.txt")); err == nil {
				t.Error("the command ran")
			}
		})
	t.Run("TP a subagent gets at most what /exec left to its parent", func(t *testing.T) {
		t.Parallel()
		results := make(chan string, 4)
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			switch child := strings.Contains(systemOf(r), "# Subagent Context"); {
			case child && last.Role == llm.RoleTool:
				results <- last.PlainText()
				return llmtest.Say("done")
			case child:
				return llmtest.Call("c1", "exec", `{"command": "echo ran"}`)
			case strings.Contains(last.PlainText(), "spawn it"):
				return llmtest.Call("p1", "sessions_spawn", `{"task": "run it"}`)
			}
			return llmtest.Say("ok")
		})
		c := Start(t, Options{Model: model, Config: execConfig("full")}).Client()
		for _, tt := range []struct{ command, message, want string }{
			{"/exec default", "spawn it", "ran"},
			{"/exec default", "/exec security=deny spawn it", disabled},
			{"/exec security=deny", "spawn it", disabled},
			{"/exec security=deny", "/exec security=full spawn it", disabled},
		} {
			c.Ask("main", tt.command)
			c.Ask("main", tt.message)
			if got := <-results; !strings.Contains(got, tt.want) {
				t.Errorf("%s, then %s: the child got %q, want %q", tt.command, tt.message, got, tt.want)
			}
		}
	})
}
