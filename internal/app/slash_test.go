package app

import (
	"os"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/wire"
)

// command sends a slash command to a session and returns its answer.
func (e *tuned) command(session, text string) string {
	e.t.Helper()
	e.n++
	e.must(wire.MethodChatSend,
		wire.ChatSend{SessionKey: session, Message: text, IdempotencyKey: text + string(rune('a'+e.n))}, nil)
	var h wire.History
	e.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: session, Limit: 1}, &h)
	if len(h.Messages) == 0 {
		e.t.Fatalf("%s: no answer", text)
	}
	return h.Messages[len(h.Messages)-1].Text()
}

func TestConfigCommand(t *testing.T) {
	t.Parallel()
	e := tune(t, tuning, nil)
	file := func() string { b, _ := os.ReadFile(e.path); return string(b) }
	says := func(text string, want ...string) {
		t.Helper()
		got := e.command("main", text)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q, want %q", text, got, w)
			}
		}
	}
	for _, text := range []string{"/config show", "/config set session.dmScope main"} {
		says(text, "disabled", "chela config set commands.config true")
	}
	if file() != tuning {
		t.Fatalf("it is off, and the file is\n%s", file())
	}
	e.must(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{commands: {config: true}}`, BaseHash: e.snapshot().Hash}, nil)
	on := file()

	t.Run("CMD-05 an invalid change has no effect", func(t *testing.T) {
		for text, want := range map[string]string{
			"/config set session.reset.atHour noon":   "refused",
			"/config set gatway.port 1":               "gatway",
			"/config set session.reset {mode:":        "value",
			"/config set agents.defaults.model one/":  "refused",
			"/config set agents.defaults.model no/m":  `refused: agents.defaults.model: unknown provider "no"`,
			"/config set gateway.port 70000":          "gateway.port: 70000 is not a valid port number",
			"/config set session.reset.atHour 99":     "session.reset.atHour: 99, want an hour from 0 to 23",
			"/config set gateway.controlUi.root /no":  "gateway.controlUi.root: open /no",
			"/config unset session.dmScope":           "is not set",
			"/config set session.dmScope":             "set <path> <value>",
			"/config set a=":                          "set <path> <value>",
			"/config drop everything":                 "set <path> <value>",
			"/config get nothing.there":               "is not set",
			"/config set env.vars.OPENAI_API_KEY abc": "must not be sent in a chat",
			"/config set gateway.auth.token abcdefgh": "must not be sent in a chat",
		} {
			says(text, want)
		}
		if file() != on {
			t.Errorf("the file is\n%s", file())
		}
	})
	t.Run("a value is set and unset with immediate effect, and comments are preserved", func(t *testing.T) {
		says(`/config set agents.defaults.model "two/m"`, "agents.defaults.model is set; this takes effect immediately.")
		if got := e.ask("main"); got != "two" {
			t.Errorf("%q answers", got)
		}
		says("/config get agents.defaults.model", `"two/m"`)
		says("/config set agents.defaults.model = one/m", "is set")
		if file() != on {
			t.Errorf("the file is\n%s", file())
		}
		says("/config set agents.defaults.userTimezone=Asia/Tokyo", "is set")
		says("/config unset agents.defaults.userTimezone", "agents.defaults.userTimezone is unset")
		says("/config get agents.defaults.thinkingDefault", `"off"`)
	})
	t.Run("secrets are not shown", func(t *testing.T) {
		got := e.command("main", "/config show")
		if strings.Contains(got, "canary") || !strings.Contains(got, `"one/m"`) || !strings.Contains(got, "[redacted]") {
			t.Errorf("shown: %s", got)
		}
	})
	t.Run("only principals with all scopes may change the configuration", func(t *testing.T) {
		writer, err := client.Dial(t.Context(), client.Options{Dial: e.Dial, Scopes: []string{"operator.write"}})
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		err = writer.Call(t.Context(), wire.MethodChatSend,
			wire.ChatSend{SessionKey: "main", Message: "/config show", IdempotencyKey: "w"}, nil)
		if err == nil || !strings.Contains(err.Error(), "config") {
			t.Errorf("a client without the scope: %v", err)
		}
	})
}

func TestModelCommand(t *testing.T) {
	t.Parallel()
	e := tune(t, tuning, nil)
	t.Run("a model without a key is chosen, and the answer says what is missing", func(t *testing.T) {
		const missing = "It cannot answer yet: there is no key for openai. In a terminal: chela models auth openai"
		for _, text := range []string{"/model openai/gpt-5", "/model"} {
			if got := e.command("main", text); !strings.Contains(got, "Model: openai/gpt-5") ||
				!strings.HasSuffix(got, missing) {
				t.Errorf("%s: %q", text, got)
			}
		}
		if got, want := e.command("main", "/model two/m"), "Model: two/m."; got != want {
			t.Errorf("with a key: %q, want %q", got, want)
		}
	})
}

func TestToolsCommand(t *testing.T) {
	t.Parallel()
	e := tune(t, strings.Replace(tuning, "agents: {",
		"agents: { entries: { guest: { tools: { deny: ['exec', 'group:fs'], alsoAllow: ['ls'] } } }, ", 1), nil)
	t.Run("each agent lists its allowed tools", func(t *testing.T) {
		for _, session := range []string{"agent:main:main", "agent:guest:chat:group:7"} {
			var can wire.ToolsEffective
			e.must(wire.MethodToolsEffective, wire.ToolsEffectiveGet{SessionKey: session}, &can)
			var names []string
			for _, g := range can.Groups {
				for _, x := range g.Tools {
					names = append(names, x.ID)
				}
			}
			got := e.command(session, "/tools")
			if want := "Tools available here: " + strings.Join(names, ", ") + "\n"; !strings.HasPrefix(got, want) ||
				len(names) == 0 {
				t.Errorf("%s: %q, want %q", session, got, want)
			}
			if has := strings.Contains(got, "exec") &&
				strings.Contains(got, "write"); has != strings.Contains(session, ":main:") {
				t.Errorf("%s sees %q", session, got)
			}
		}
	})
	t.Run("verbose shows descriptions, and another argument is refused", func(t *testing.T) {
		if got := e.command("agent:guest:main", "/tools verbose"); !strings.Contains(got, "\n- web_fetch: ") ||
			strings.Contains(got, "\n- exec") {
			t.Errorf("%q", got)
		}
		if got := e.command("agent:guest:main", "/tools all"); got != "Usage: /tools [verbose]" {
			t.Errorf("%q", got)
		}
	})
}
