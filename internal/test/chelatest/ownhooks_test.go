package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// installed writes a hook with a shell script into the folder of the installed ones.
func installed(t *testing.T, state, name, metadata, script string) {
	t.Helper()
	hookIn(t, filepath.Join(state, "hooks", name), name, metadata, script)
}

func hookIn(t *testing.T, dir, name, metadata, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("---\nname: %s\ndescription: \"a test\"\nmetadata: {\"openclaw\": %s}\n---\n", name, metadata)
	if err := os.WriteFile(filepath.Join(dir, "HOOK.md"), []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	if script == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, "handler.sh"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
}

// syncLog is a log that tests read.
type syncLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *syncLog) log() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// hookStatus returns the hooks by name.
func (c *Client) hookStatus() map[string]wire.Hook {
	c.t.Helper()
	var s wire.HooksStatus
	c.must(wire.MethodHooksStatus, wire.HooksGet{}, &s)
	out := map[string]wire.Hook{}
	for _, h := range s.Hooks {
		out[h.Name] = h
	}
	return out
}

// shown returns the text of the history of the main session.
func (c *Client) shown() string {
	c.t.Helper()
	var h wire.History
	c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
	b, err := json.Marshal(h.Messages)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// TestOwnHooks tests the hooks that the person installed.
func TestOwnHooks(t *testing.T) {
	t.Parallel()
	t.Run("HK-01 a handler runs on /new, and its text is shown in the chat", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		installed(t, dir, "hello", `{"events": ["command:new"]}`,
			`cat >"$CHELA_STATE_DIR/seen"; echo '{"messages": ["hello from a hook"]}'`)
		g := Start(t, Options{Dir: dir, Model: uses()})
		c := g.Client()
		c.Ask("main", "hi")
		c.Ask("main", "/new")
		settles(t, "the text of the hook", true, func() bool { return strings.Contains(c.shown(), "hello from a hook") })
		b, err := os.ReadFile(filepath.Join(dir, "seen"))
		if err != nil || !strings.Contains(string(b), `"previousSessionId"`) ||
			!strings.Contains(string(b), `"type":"command"`) {
			t.Errorf("event %s, %v", b, err)
		}
	})
	t.Run("HK-02 a handler that fails or hangs harms nobody", func(t *testing.T) {
		t.Parallel()
		dir, log := t.TempDir(), new(syncLog)
		installed(t, dir, "bad", `{"events": ["command:new"]}`, `echo oh no >&2; exit 3`)
		installed(t, dir, "hangs", `{"events": ["command:new"]}`, `sleep 600`)
		installed(t, dir, "good", `{"events": ["command:new"]}`, `echo '{"messages": ["still here"]}'`)
		g := Start(t, Options{Dir: dir, Model: uses(), Log: log.log(),
			Config: Config{"hooks": json.RawMessage(`{"internal": {"entries": {"hangs": {"timeoutMs": 300}}}}`)}})
		c := g.Client()
		if end := c.Ask("main", "/new"); !strings.Contains(end.Text, "New conversation") {
			t.Errorf("%q", end.Text)
		}
		settles(t, "the other hook", true, func() bool { return strings.Contains(c.shown(), "still here") })
		settles(t, "the log", true, func() bool {
			return strings.Contains(log.String(), "exit status 3: oh no") && strings.Contains(log.String(), "time limit")
		})
	})
	t.Run("HK-03 HK-06 HOOK-08 what is missing and what is misspelled is reported", func(t *testing.T) {
		t.Parallel()
		dir, log := t.TempDir(), new(syncLog)
		installed(t, dir, "needy", `{"events": ["command:new"], "requires": {"bins": ["no-such-program"], "env": ["NO_SUCH_VARIABLE"], "config": ["session.reset.mode"]}}`, `exit 0`)
		installed(t, dir, "typo", `{"events": ["comand:new", "command:stop"]}`, `exit 0`)
		installed(t, dir, "empty", `{"events": ["command"]}`, "")
		c := Start(t, Options{Dir: dir, Model: uses(), Log: log.log()}).Client()
		all := c.hookStatus()
		if h := all["needy"]; h.Loadable || h.Satisfied || !strings.Contains(h.Blocked, "no-such-program") ||
			!slices.Equal(h.Missing.Env, []string{"NO_SUCH_VARIABLE"}) || len(h.Missing.Config) != 1 {
			t.Errorf("needy: %+v", h)
		}
		if h := all["typo"]; !h.Loadable || len(h.Warnings) != 1 ||
			!strings.Contains(h.Warnings[0], "did you mean command:new") || !strings.Contains(log.String(), "comand:new") {
			t.Errorf("typo: %+v", h)
		}
		if h := all["empty"]; h.Loadable || !strings.Contains(h.Blocked, "handler") {
			t.Errorf("empty: %+v", h)
		}
		if h := all["session-memory"]; h.Loadable || h.Enabled || h.Source != "bundled" {
			t.Errorf("session-memory: %+v", h)
		}
	})
	t.Run("HK-04 HOOK-06 command-logger writes one line for each command", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		c := Start(t, Options{Dir: dir, Model: uses(),
			Config: Config{
				"hooks": json.RawMessage(`{"internal": {"entries": {"command-logger": {"enabled": true}}}}`)}}).Client()
		c.Ask("main", "/status")
		c.Ask("main", "/new")
		c.Ask("main", "no command")
		var lines []map[string]string
		settles(t, "lines", 2, func() int {
			b, _ := os.ReadFile(filepath.Join(dir, "logs", "commands.log"))
			lines = nil
			for line := range strings.Lines(string(b)) {
				var m map[string]string
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, m)
			}
			return len(lines)
		})
		l := lines[0]
		if l["timestamp"] == "" || l["action"] != "status" || l["sessionKey"] != "agent:main:main" ||
			l["senderId"] != "owner" || l["source"] != "local" || lines[1]["action"] != "new" {
			t.Errorf("%v", lines)
		}
	})
	t.Run("HK-05 HOOK-04 agent:bootstrap adds and replaces files of the prompt", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		installed(t, dir, "pirate", `{"events": ["agent:bootstrap"]}`, `echo '{"context": {"bootstrapFiles": [{"name": "SOUL.md", "content": "You are a pirate."}, {"name": "RULES.md", "content": "Never sink."}]}}'`)
		var system string
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			for _, b := range r.System {
				system += b.Text
			}
			return llmtest.Say("arr")
		})
		Start(t, Options{Dir: dir, Model: model}).Client().Ask("main", "hi")
		if !strings.Contains(system, "You are a pirate.") || !strings.Contains(system, "Never sink.") ||
			strings.Contains(system, "AGENTS.md\n") {
			t.Errorf("%s", system)
		}
	})
	t.Run("HK-07 HOOK-09 the four points of subagents, and another place for the result", subagentPoints)
	t.Run("a program blocks a tool call, asks, and changes arguments", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		installed(t, dir, "guard", `{"events": ["before_tool_call"]}`, `
event=$(cat)
case $event in
*remove*) echo '{"block": true, "blockReason": "nothing is removed here"}' ;;
*rename*) echo '{"params": {"x": "changed"}}' ;;
*other*) exit 1 ;;
esac`)
		c := Start(t, Options{Dir: dir, Model: uses(), Tools: []tool.Tool{done{name: "act"}}}).Client()
		for args, want := range map[string]string{
			`{"x":"remove"}`: "nothing is removed here", `{"x":"rename"}`: `did {"x": "changed"}`,
			`{"x":"other"}`: `did {"x":"other"}`, `{"x":"plain"}`: `did {"x":"plain"}`,
		} {
			if end := c.Ask("main", "act "+args); !strings.Contains(end.Text, want) {
				t.Errorf("%s: %q %s", args, end.Text, end.Error)
			}
		}
		blocked := slices.DeleteFunc(c.audited(), func(k wire.ToolCalled) bool { return k.Decision != "blocked" })
		if len(blocked) != 1 || blocked[0].Rule != "hook:guard" {
			t.Errorf("recorded: %+v", blocked)
		}
	})
	t.Run("an endpoint and a program of the configuration", func(t *testing.T) {
		t.Parallel()
		var seen []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			seen = append(seen, string(b))
			fmt.Fprint(w, `{"block": true, "blockReason": "the endpoint says no"}`)
		}))
		defer srv.Close()
		c := Start(t, Options{Model: uses(), Tools: []tool.Tool{done{name: "act"}, done{name: "look"}},
			Config: Config{"hooks": json.RawMessage(fmt.Sprintf(
				`{"points": [{"point": "before_tool_call", "url": %q, "tools": ["act"]}, {"point": "tool_result_persist", "command": "echo '{\"text\": \"short\"}'", "tools": ["look"]}]}`, srv.URL,
			))}}).Client()
		if end := c.Ask("main", `act {}`); !strings.Contains(end.Text, "the endpoint says no") || len(seen) != 1 ||
			!strings.Contains(seen[0], `"hook":"before_tool_call"`) {
			t.Errorf("%q, seen %q", end.Text, seen)
		}
		if end := c.Ask("main", `look {}`); end.Text != "short" {
			t.Errorf("%q", end.Text)
		}
	})
	t.Run("a hook of a workspace adds only names, is off, and is bound to its content", workspaceHook)
	t.Run("a hook that is installed is used at once, nothing of it is run before, and before_install can forbid it",
		func(t *testing.T) {
			t.Parallel()
			dir, from := t.TempDir(), filepath.Join(t.TempDir(), "mine")
			hookIn(t, from, "mine", `{"events": ["command:new"]}`, `echo '{"messages": ["installed and used"]}'`)
			installed(t, dir, "no-evil", `{"events": ["before_install"]}`,
				`grep -q evil && echo '{"block": true, "blockReason": "evil"}'; exit 0`)
			c := Start(t, Options{Dir: dir, Model: uses()}).Client()
			c.must(wire.MethodHooksInstall, wire.HooksInstall{Path: from}, nil)
			if h := c.hookStatus()["mine"]; !h.Loadable || h.Source != "managed" {
				t.Errorf("%+v", h)
			}
			c.Ask("main", "/new")
			settles(t, "the text", true, func() bool { return strings.Contains(c.shown(), "installed and used") })
			if err := c.Call(t.Context(), wire.MethodHooksInstall, wire.HooksInstall{Path: from}, nil); err == nil {
				t.Error("installed twice")
			}
			c.must(wire.MethodHooksInstall, wire.HooksInstall{Path: from, Replace: true}, nil)
			evil := filepath.Join(t.TempDir(), "evil")
			hookIn(t, evil, "evil", `{"events": ["command"]}`, `exit 0`)
			if err := c.Call(t.Context(), wire.MethodHooksInstall, wire.HooksInstall{Path: evil}, nil); err == nil ||
				!strings.Contains(err.Error(), "evil") {
				t.Errorf("%v", err)
			}
		})
	t.Run("compaction-notifier says in the chat that the history is shortened", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(n int, _ *llm.Request) llmtest.Step {
			if n == 3 {
				return llmtest.Status(400, "prompt is too long: 300000 tokens > 200000 maximum")
			}
			return llmtest.Say("ok")
		})
		c := Start(t,
			Options{Model: model,
				Config: Config{
					"hooks": json.RawMessage(`{"internal": {"entries": {"compaction-notifier": {"enabled": true}}}}`)}}).Client()
		for range 4 {
			c.Ask("main", "hi")
		}
		settles(t, "both notices", true, func() bool {
			text := c.shown()
			return strings.Contains(text, "is being shortened") &&
				strings.Contains(text, "are no longer sent to the model. They stay")
		})
	})
	t.Run("MEM-09 session-memory saves the end of a conversation, and /new does not wait for it", func(t *testing.T) {
		t.Parallel()
		dir, release := t.TempDir(), make(chan struct{})
		chat := new(channeltest.Fake)
		c := Start(t, Options{
			Dir: dir, Channels: map[string]channel.Channel{"chat": chat},
			Config: Config{"channels": json.RawMessage(`{"chat": {"allowFrom": ["ann"]}}`),
				"hooks": json.RawMessage(`{"internal": {"entries": {"session-memory": {"enabled": true}}}}`)},
			Hooks: func(p *hook.Points) { // an answer waits for no hook
				p.Command.Add(hook.Hook[hook.Command, hook.Reply]{Name: "first", Priority: 1000,
					Func: func(context.Context, hook.Command) (hook.Reply, error) {
						<-release
						return hook.Reply{}, nil
					}})
			},
		}).Client()
		saved := func(folder string) (texts []string) {
			names, _ := filepath.Glob(filepath.Join(dir, "workspace", folder, "20*.md"))
			for _, name := range names {
				if b, err := os.ReadFile(name); err == nil {
					texts = append(texts, string(b))
				}
			}
			return texts
		}
		for i := range 10 {
			c.Ask("main", fmt.Sprintf("hello %d.", i))
		}
		c.Ask("main", "/new")
		group := chela.Address{Channel: "chat", Account: "bot", Peer: chela.Peer{Kind: chela.Group, ID: "g1"}}
		for i, text := range []string{"hello group", "/new"} {
			if err := chat.Say(t.Context(), chela.Inbound{
				ID:        fmt.Sprint(i),
				Address:   group,
				Sender:    chela.Sender{ID: "ann"},
				Text:      text,
				Mentioned: true,
			}); err != nil {
				t.Fatal(err)
			}
			settles(t, "the answer", true, func() bool { return len(chat.Texts(group)) > i })
		}
		close(release)
		settles(t, "the files", true,
			func() bool { return len(saved("memory")) == 1 && len(saved("memory/imports/groups")) == 1 })
		text := saved("memory")[0]
		if n := strings.Count(text, "user: hello ") + strings.Count(text, "assistant: "); n != 15 ||
			!strings.Contains(text, "user: hello 9.") || strings.Contains(text, "user: hello 2.") {
			t.Errorf("%d messages:\n%s", n, text)
		}
		if text := saved("memory/imports/groups")[0]; !strings.Contains(text, "user: hello group") {
			t.Errorf("of the group:\n%s", text)
		}
	})
	t.Run("session-memory saves as many messages as configured", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		c := Start(t,
			Options{Dir: dir,
				Config: Config{
					"hooks": json.RawMessage(
						`{"internal": {"entries": {"session-memory": {"enabled": true, "messages": 2}}}}`)}}).Client()
		c.Ask("main", "hello one")
		c.Ask("main", "hello two")
		c.Ask("main", "/new")
		var text string
		settles(t, "the file", true, func() bool {
			names, _ := filepath.Glob(filepath.Join(dir, "workspace", "memory", "20*.md"))
			if len(names) != 1 {
				return false
			}
			b, err := os.ReadFile(names[0])
			text = string(b)
			return err == nil
		})
		if !strings.Contains(text, "user: hello two") || strings.Contains(text, "hello one") ||
			!strings.Contains(text, "assistant: ") || !strings.Contains(text, "agent:main:main") {
			t.Errorf("%s", text)
		}
	})
}

// subagentPoints has hooks at the points of subagents.
func subagentPoints(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	note := func(what string, s hook.Subagent) {
		mu.Lock()
		defer mu.Unlock()
		if s.Child == "" || s.Parent != "agent:main:main" || s.Requester == nil {
			t.Errorf("%s: %+v", what, s)
		}
		seen = append(seen, what+" "+s.Label)
	}
	refuse := false
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		switch text := last.PlainText(); {
		case last.Role == llm.RoleTool:
			return llmtest.Say("told: " + text)
		case strings.HasPrefix(text, "spawn"):
			return llmtest.Call(fmt.Sprint("c", n), "sessions_spawn", `{"task":"count to three","label":"counter"}`)
		case strings.Contains(text, "count to three"):
			return llmtest.Say("one two three")
		}
		return llmtest.Say("noted")
	})
	var st store.Store
	g := Start(t, Options{Model: model, Wrap: func(s store.Store) store.Store { st = s; return s },
		Hooks: func(p *hook.Points) {
			p.SubagentSpawning.Add(hook.Hook[hook.SubagentSpawning, hook.Spawning]{Name: "h",
				Func: func(_ context.Context, e hook.SubagentSpawning) (hook.Spawning, error) {
					note("spawning", e.Subagent)
					if refuse {
						return hook.Spawning{Status: "error", Error: "no room"}, nil
					}
					return hook.Spawning{Status: "ok"}, nil
				}})
			p.SubagentSpawned.Add(hook.Hook[hook.SubagentSpawned, hook.None]{Name: "h", Quick: true,
				Func: func(_ context.Context, e hook.SubagentSpawned) (hook.None, error) {
					note("spawned", e.Subagent)
					return hook.None{}, nil
				}})
			p.SubagentDeliveryTarget.Add(hook.Hook[hook.SubagentDeliveryTarget, hook.DeliveryTarget]{Name: "h",
				Func: func(_ context.Context, e hook.SubagentDeliveryTarget) (hook.DeliveryTarget, error) {
					note("target", e.Subagent)
					return hook.DeliveryTarget{Origin: &hook.Target{Channel: "elsewhere", Account: "a", Kind: chela.Direct, To: "7"}},
						nil
				}})
			p.SubagentEnded.Add(hook.Hook[hook.SubagentEnded, hook.None]{Name: "h",
				Func: func(_ context.Context, e hook.SubagentEnded) (hook.None, error) {
					note("ended "+e.Outcome, e.Subagent)
					return hook.None{}, nil
				}})
		}})
	c := g.Client()
	c.Ask("main", "spawn it")
	want := []string{"spawning counter", "spawned counter", "target counter", "ended ok counter"}
	settles(t, "the points", fmt.Sprint(want), func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(seen)
	})
	settles(t, "a run that answers elsewhere", true, func() bool {
		rows, err := store.Get(t.Context(), st, func(r store.Reader) ([]outbox.Row, error) { return r.Outbox().Open(0) })
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Address.Channel == "elsewhere" && row.Address.Peer.ID == "7" && strings.Contains(row.Text, "noted") {
				return true
			}
		}
		return false
	})
	t.Run("HOOK-05 an error leaves no child", func(t *testing.T) {
		refuse = true
		sessions := func() int {
			var l wire.SessionList
			c.must(wire.MethodSessionsList, wire.SessionsList{}, &l)
			return len(l.Sessions)
		}
		before := sessions()
		if end := c.Ask("main", "spawn another"); !strings.Contains(end.Text, "no room") {
			t.Errorf("%q %s", end.Text, end.Error)
		}
		if after := sessions(); after != before {
			t.Errorf("%d sessions, want %d", after, before)
		}
	})
}

// workspaceHook has a hook in a workspace, which the agent can write.
func workspaceHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "workspace", "hooks", "local")
	hookIn(t, folder, "local", `{"events": ["command:new", "before_prompt_build"]}`,
		`echo '{"messages": ["from the workspace"]}'`)
	hookIn(t, filepath.Join(dir, "workspace", "hooks", "command-logger"), "command-logger",
		`{"events": ["command"]}`, `exit 0`)
	g := Start(t, Options{Dir: dir, Model: uses()})
	c := g.Client()
	h := c.hookStatus()["local"]
	if h.Loadable || h.Enabled || h.Hash == "" || h.Source != "workspace" {
		t.Fatalf("%+v", h)
	}
	if l := c.hookStatus()["command-logger"]; l.Source != "bundled" || len(l.Warnings) != 1 {
		t.Errorf("replaced: %+v", l)
	}
	g.Stop()
	config := func(hash string) Config {
		return Config{
			"hooks": json.RawMessage(fmt.Sprintf(`{"internal": {"entries": {"local": {"enabled": true, "sha256": %q}}}}`, hash))}
	}
	g = Start(t, Options{Dir: dir, Model: uses(), Config: config("")})
	if h := g.Client().hookStatus()["local"]; h.Loadable || !strings.Contains(h.Blocked, "changed since") {
		t.Errorf("without a hash: %+v", h)
	}
	g.Stop()
	g = Start(t, Options{Dir: dir, Model: uses(), Config: config(h.Hash)})
	// it may not change prompts
	if h := g.Client().hookStatus()["local"]; !h.Loadable || len(h.Warnings) != 1 ||
		!strings.Contains(h.Warnings[0], "allow") {
		t.Errorf("with a hash: %+v", h)
	}
}

// TestPoints tests points of runs with hooks in this process.
func TestPoints(t *testing.T) {
	t.Parallel()
	t.Run("HOOK-07 toolsAllow leaves only read", func(t *testing.T) {
		t.Parallel()
		var offered []string
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				for _, s := range r.Tools {
					offered = append(offered, s.Name)
				}
				return llmtest.Call("c", "exec", `{"command":"ls"}`)
			}
			return llmtest.Say(r.Messages[len(r.Messages)-1].PlainText())
		})
		c := Start(t, Options{Model: model, Hooks: func(p *hook.Points) {
			p.BeforePromptBuild.Add(hook.Hook[hook.BeforePromptBuild, hook.PromptChange]{Name: "h",
				Func: func(context.Context, hook.BeforePromptBuild) (hook.PromptChange, error) {
					return hook.PromptChange{ToolsAllow: []string{"read"}}, nil
				}})
		}}).Client()
		if end := c.Ask("main", "hi"); !slices.Equal(offered, []string{"read"}) ||
			!strings.Contains(end.Text, "there is no tool") {
			t.Errorf("offered %v; %q %s", offered, end.Text, end.Error)
		}
	})
	t.Run("before_agent_run blocks, before_agent_reply answers, inbound_claim is silent, and no model is called",
		func(t *testing.T) {
			t.Parallel()
			called := 0
			model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { called++; return llmtest.Say("model") })
			c := Start(t, Options{Model: model, Hooks: func(p *hook.Points) {
				p.BeforeAgentRun.Add(hook.Hook[hook.RunStart, hook.Block]{Name: "h",
					Func: func(_ context.Context, e hook.RunStart) (hook.Block, error) {
						return hook.Block{Block: strings.Contains(e.Prompt, "forbidden"), Reason: "not today"}, nil
					}})
				p.BeforeAgentReply.Add(hook.Hook[hook.RunStart, hook.Claim]{Name: "h",
					Func: func(_ context.Context, e hook.RunStart) (hook.Claim, error) {
						return hook.Claim{Handled: strings.Contains(e.Prompt, "ping"), Text: "pong"}, nil
					}})
				p.InboundClaim.Add(hook.Hook[hook.InboundClaim, hook.Claim]{Name: "h",
					Func: func(_ context.Context, e hook.InboundClaim) (hook.Claim, error) {
						return hook.Claim{Handled: strings.Contains(e.Content, "quiet")}, nil
					}})
			}}).Client()
			if end := c.Ask("main", "forbidden"); !strings.Contains(end.Error, "not today") {
				t.Errorf("blocked: %q %q", end.Text, end.Error)
			}
			if end := c.Ask("main", "ping"); end.Text != "pong" {
				t.Errorf("answered: %q %q", end.Text, end.Error)
			}
			if end := c.Ask("main", "quiet"); end.Text != "" || end.Error != "" {
				t.Errorf("silent: %q %q", end.Text, end.Error)
			}
			if end := c.Ask("main", "hello"); end.Text != "model" || called != 1 || !strings.Contains(c.shown(), "pong") {
				t.Errorf("%q, %d calls", end.Text, called)
			}
		})
	t.Run("before_agent_finalize asks for one more pass, and the observers of a run are called", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		var seen []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, s)
		}
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			return llmtest.Say(fmt.Sprintf("answer %d to %s", n+1, r.Messages[len(r.Messages)-1].PlainText()))
		})
		c := Start(t, Options{Model: model, Hooks: func(p *hook.Points) {
			p.BeforeAgentFinalize.Add(hook.Hook[hook.BeforeAgentFinalize, hook.Revision]{Name: "h",
				Func: func(context.Context, hook.BeforeAgentFinalize) (hook.Revision, error) {
					return hook.Revision{Action: "revise", Reason: "be shorter"}, nil
				}})
			p.LLMInput.Add(hook.Hook[hook.LLMInput, hook.None]{Name: "h",
				Func: func(context.Context, hook.LLMInput) (hook.None, error) { note("in"); return hook.None{}, nil }})
			p.AgentEnd.Add(hook.Hook[hook.AgentEnd, hook.None]{Name: "h",
				Func: func(_ context.Context, e hook.AgentEnd) (hook.None, error) {
					note(fmt.Sprintf("end %v %d", e.Success, len(e.Messages)))
					return hook.None{}, nil
				}})
			p.BeforeMessageWrite.Add(hook.Hook[hook.BeforeMessageWrite, hook.TextChange]{Name: "h",
				Func: func(_ context.Context, e hook.BeforeMessageWrite) (hook.TextChange, error) {
					text := strings.ReplaceAll(e.Text, "answer", "reply")
					return hook.TextChange{Text: &text}, nil
				}})
		}}).Client()
		if end := c.Ask("main", "hi"); !strings.HasPrefix(end.Text, "reply 2 to ") ||
			!strings.Contains(end.Text, "be shorter") {
			t.Errorf("%q %q", end.Text, end.Error)
		}
		settles(t, "the observers", "[in in end true 4]", func() string {
			mu.Lock()
			defer mu.Unlock()
			s := slices.Clone(seen)
			slices.SortFunc(s, func(a, b string) int { return len(a) - len(b) })
			return fmt.Sprint(s)
		})
	})
	t.Run("before_message_write changes the text of a message with calls, which are carried out", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				s := llmtest.Call("c", "act", `{"x":1}`)
				s.Parts = append([]llm.Part{llm.Text("the secret word")}, s.Parts...)
				return s
			}
			var calls []string
			for _, m := range r.Messages {
				for _, c := range m.Calls() {
					calls = append(calls, c.ID+" "+c.Name+" "+string(c.Args))
				}
			}
			if got, want := strings.Join(calls, "; "), `c act {"x":1}`; got != want {
				t.Errorf("request %d has the calls %q, want %q", n+1, got, want)
			}
			return llmtest.Say("told: " + r.Messages[len(r.Messages)-1].PlainText())
		})
		c := Start(t, Options{Model: model, Tools: []tool.Tool{done{name: "act"}}, Hooks: func(p *hook.Points) {
			p.BeforeMessageWrite.Add(hook.Hook[hook.BeforeMessageWrite, hook.TextChange]{Name: "h",
				Func: func(_ context.Context, e hook.BeforeMessageWrite) (hook.TextChange, error) {
					text := strings.ReplaceAll(e.Text, "secret", "[removed]")
					return hook.TextChange{Text: &text}, nil
				}})
		}}).Client()
		if end := c.Ask("main", "hi"); !strings.Contains(end.Text, `told: did {"x":1}`) {
			t.Errorf("%q %s", end.Text, end.Error)
		}
		c.Ask("main", "hi again") // its request has what was stored
		if text := c.shown(); strings.Contains(text, "secret word") || !strings.Contains(text, "[removed] word") {
			t.Errorf("%s", text)
		}
	})
	t.Run("session_end is told of a session that is deleted", func(t *testing.T) {
		t.Parallel()
		ended := make(chan hook.SessionEnd, 1)
		c := Start(t, Options{Model: uses(), Hooks: func(p *hook.Points) {
			p.SessionEnd.Add(hook.Hook[hook.SessionEnd, hook.None]{Name: "h",
				Func: func(_ context.Context, e hook.SessionEnd) (hook.None, error) {
					ended <- e
					return hook.None{}, nil
				}})
		}}).Client()
		c.Ask("agent:main:other", `act {}`)
		c.must(wire.MethodSessionsDelete, wire.SessionsDelete{Key: "agent:main:other"}, nil)
		if e := waittest.For(t, "the hook", ended); e.Session != "agent:main:other" || e.Reason != hook.EndDeleted {
			t.Errorf("%+v", e)
		}
	})
	t.Run("before_model_resolve chooses the model", func(t *testing.T) {
		t.Parallel()
		c := Start(t, Options{Hooks: func(p *hook.Points) {
			p.BeforeModelResolve.Add(hook.Hook[hook.BeforeModelResolve, hook.ModelChoice]{Name: "h",
				Func: func(_ context.Context, e hook.BeforeModelResolve) (hook.ModelChoice, error) {
					if strings.Contains(e.Prompt, "other") {
						return hook.ModelChoice{Model: "nobody/none"}, nil
					}
					return hook.ModelChoice{}, nil
				}})
		}}).Client()
		if end := c.Ask("main", "the other one"); !strings.Contains(end.Error, "nobody") {
			t.Errorf("%q %q", end.Text, end.Error)
		}
		if end := c.Ask("main", "hello"); end.Error != "" {
			t.Errorf("%q %q", end.Text, end.Error)
		}
	})
}

// settles waits until get returns what is wanted.
func settles[T comparable](t *testing.T, what string, want T, get func() T) {
	t.Helper()
	waittest.Until(t, fmt.Sprint(what, " becomes ", want), func() bool { return get() == want })
}
