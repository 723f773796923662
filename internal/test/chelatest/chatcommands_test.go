package chelatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

func TestSideQuestion(t *testing.T) {
	t.Run("CMD-09 a question during a run is answered, and neither the run nor the transcript is changed",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
					last := r.Messages[len(r.Messages)-1].PlainText()
					if strings.Contains(last, "capital of France") {
						return llmtest.Say("Paris, after " + r.Messages[0].PlainText())
					}
					slow := llmtest.Say("re: " + last)
					slow.Delay = time.Minute
					return slow
				})
				fake := &channeltest.Fake{}
				g := Start(t, Options{Model: model, Channels: map[string]channel.Channel{"fake": fake},
					Config: section("channels", `{"fake": {"allowFrom": ["boss"]}}`)})
				say := func(id, text string) {
					if err := fake.Say(t.Context(), chela.Inbound{ID: id, Address: directVoice, Sender: chela.Sender{ID: "boss"},
						Text: text}); err != nil {
						t.Fatal(err)
					}
				}
				say("1", "work")
				time.Sleep(10 * time.Second)
				say("2", "/btw what is the capital of France?")
				say("2", "/btw what is the capital of France?") // delivered twice
				time.Sleep(10 * time.Second)
				if got := fake.Texts(directVoice); len(got) != 1 || got[0] != "Paris, after work" {
					t.Errorf("during the run: %q", got)
				}
				time.Sleep(2 * time.Minute)
				say("3", "next")
				time.Sleep(2 * time.Minute)
				if got := fmt.Sprint(fake.Texts(directVoice)); got != "[Paris, after work re: work re: next]" {
					t.Errorf("the chat shows %s", got)
				}
				rs := model.Requests()
				if got := fmt.Sprint(said(rs[len(rs)-1])); len(rs) != 3 || got != "[user: work assistant: re: work user: next]" {
					t.Errorf("%d requests, the last with %s", len(rs), got)
				}
				c := g.Client()
				if got := c.history("main"); len(got) != 4 {
					t.Errorf("%d messages in the history", len(got))
				}
				if end := c.Ask("main", "/btw the capital of France"); end.Text != "Paris, after work" {
					t.Errorf("in a terminal: %q", end.Text)
				}
				var once wire.AgentResult
				run := wire.AgentRun{Message: "/btw the capital of France, once more", SessionKey: "main", IdempotencyKey: "aside"}
				if err := c.Client.Await(t.Context(), wire.MethodAgent, run, nil, &once); err != nil || once.Result == nil ||
					len(once.Result.Payloads) != 1 || once.Result.Payloads[0].Text != "Paris, after work" {
					t.Errorf("for a program that waits for the answer: %+v, %v", once, err)
				}
				c.Close()
				g.Stop()
			})
		})
}

func TestActivation(t *testing.T) {
	t.Run("CMD-16 a group is answered without mentions from /activation always until /activation mention, also after a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model, dir := echoing(), t.TempDir()
			s := newSenders(t, model, nil)
			s.Gateway.Stop()
			s.Client.Close()
			fake := &channeltest.Fake{}
			o := Options{Dir: dir, Model: model, Channels: map[string]channel.Channel{"open": fake},
				Config: section("channels", `{"open": {"allowFrom": ["boss", "*"]}}`)}
			g := Start(t, o)
			s.Gateway, s.fakes = g, map[string]*channeltest.Fake{"open": fake}
			say := func(sender, text, want string) {
				t.Helper()
				if got := strings.Join(s.say("open", groupChat, sender, text), "|"); got != want {
					t.Errorf("%s: %q is answered with %q, want %q", sender, text, got, want)
				}
			}
			say("ada", "hello", "")
			say("ada", "/activation always", "")
			say("ada", "hello again", "")
			say("boss", "/activation always", "Activation: always.")
			say("ada", "hi", "re: hi")
			g.Stop()
			fake = &channeltest.Fake{}
			o.Channels = map[string]channel.Channel{"open": fake}
			g = Start(t, o)
			s.Gateway, s.fakes = g, map[string]*channeltest.Fake{"open": fake}
			say("ada", "still?", "re: still?")
			say("boss", "/activation mention", "Activation: mention.")
			say("ada", "and now?", "")
			say("ada", "@and now?", "re: and now?")
			g.Stop()
		})
	})
}

func TestReasoning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			return llmtest.Think("let me see", "s", llmtest.Say("re: "+r.Messages[len(r.Messages)-1].PlainText()))
		})
		fake := &channeltest.Fake{}
		g := Start(t, Options{Model: model, Channels: map[string]channel.Channel{"fake": fake},
			Config: section("channels", `{"fake": {"allowFrom": ["boss"]}}`)})
		n := 0
		say := func(a chela.Address, text string) string {
			n++
			before := len(fake.Texts(a))
			if err := fake.Say(t.Context(), chela.Inbound{
				ID:        fmt.Sprint(n),
				Address:   a,
				Sender:    chela.Sender{ID: "boss"},
				Text:      text,
				Mentioned: true,
			}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			return strings.Join(fake.Texts(a)[before:], "|")
		}
		for _, c := range [][2]string{
			{"hi", "re: hi"},
			{"hi /reasoning on", "🧠 let me see|re: hi"},
			{"hi", "re: hi"},
			{"/reasoning on", "Reasoning: on."},
			{"hi", "🧠 let me see|re: hi"},
			{"/reasoning off please", "re: please"},
			{"/reasoning maybe", `Reasoning has no value "maybe". Options: off, on, stream, default.`},
			{"/reasoning default", "Reasoning: off (default)."},
			{"/send off", "Sending: off."},
			{"hi", ""},
			{"/send on", "Sending: on."},
			{"/send inherit", "Sending: on (default)."},
			{"hi", "re: hi"},
		} {
			if got := say(directVoice, c[0]); got != c[1] {
				t.Errorf("%q is answered with %q, want %q", c[0], got, c[1])
			}
		}
		if got := say(groupVoice, "/reasoning on"); got != "Reasoning: on. Everybody in this group sees it." {
			t.Errorf("in a group: %q", got)
		}
		g.Stop()
	})
}

func TestOwnerCommands(t *testing.T) {
	run := func(t *testing.T, commands string, f func(say func(sender, text string) string)) {
		synctest.Test(t, func(t *testing.T) {
			fake := &channeltest.Fake{}
			g := Start(t, Options{Model: echoing(), Channels: map[string]channel.Channel{"fake": fake}, Config: Config{
				"channels": json.RawMessage(`{"fake": {"allowFrom": ["boss", "ada", "*"]}}`), "commands": json.RawMessage(commands),
				"tools": json.RawMessage(`{"exec": {"mode": "full"}}`),
			}})
			n := 0
			f(func(sender, text string) string {
				n++
				before := len(fake.Texts(directVoice))
				if err := fake.Say(t.Context(), chela.Inbound{ID: fmt.Sprint(n), Address: directVoice,
					Sender: chela.Sender{ID: sender}, Text: text}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				return strings.Join(fake.Texts(directVoice)[before:], "|")
			})
			g.Stop()
		})
	}
	check := func(t *testing.T, say func(sender, text string) string, cases ...[3]string) {
		t.Helper()
		for _, c := range cases {
			if got := say(c[0], c[1]); got != c[2] && (c[2] == "" || !strings.HasPrefix(got, c[2])) {
				t.Errorf("%s: %q is answered with %q, want %q", c[0], c[1], got, c[2])
			}
		}
	}
	t.Run("commands of the owner are ignored for others, and disabled by default", func(t *testing.T) {
		run(t, `{"ownerAllowFrom": ["fake:boss"]}`, func(say func(sender, text string) string) {
			check(t, say,
				[3]string{"ada", "/mcp", ""}, [3]string{"ada", "/bash id", ""}, [3]string{"ada", "/diagnostics", ""},
				[3]string{"ada", "/restart", ""},
				[3]string{"boss", "/mcp", "/mcp is disabled."}, [3]string{"boss", "/plugins", "/plugins is disabled."},
				[3]string{"boss", "/bash id", "/bash is disabled."},
				[3]string{"boss", "!id", "re: !id"}, [3]string{"boss", "/diagnostics", "Chela "},
				[3]string{"boss", "/restart", "This process cannot restart itself."},
				[3]string{"boss", "/tasks", "This session has no tasks."}, [3]string{"ada", "/tasks", "This session has no tasks."},
			)
		})
	})
	t.Run("commands that are enabled", func(t *testing.T) {
		run(t, `{"ownerAllowFrom": ["boss"], "mcp": true, "plugins": true}`, func(say func(sender, text string) string) {
			check(t, say,
				[3]string{"boss", "/mcp", "No MCP servers are configured."},
				[3]string{"boss", "/plugins", "No plug-ins are installed."},
				[3]string{"boss", "/plugins enable nothing", `there is no plug-in "nothing"`},
				[3]string{"boss", "/plugins what", "Usage: /plugins"}, [3]string{"ada", "/mcp", ""},
			)
		})
	})
	t.Run("who may use commands is configured apart from who may write", func(t *testing.T) {
		run(t, `{"allowFrom": {"fake": ["boss"]}}`, func(say func(sender, text string) string) {
			check(t, say,
				[3]string{"ada", "/send off", ""}, [3]string{"ada", "hello", "re: hello"},
				[3]string{"ada", "hi /verbose on", "re: hi /verbose on"},
				[3]string{"boss", "hi /verbose on", "re: hi"}, [3]string{"boss", "/send off", "Sending: off."},
			)
		})
	})
	t.Run("without commands.text, a chat has no commands", func(t *testing.T) {
		run(t, `{"text": false}`, func(say func(sender, text string) string) {
			check(t, say, [3]string{"boss", "/send off", "re: /send off"})
		})
	})
}

func TestBash(t *testing.T) {
	t.Parallel()
	fake := &channeltest.Fake{}
	Start(t, Options{Model: echoing(), Channels: map[string]channel.Channel{"fake": fake}, Config: Config{
		"channels": json.RawMessage(`{"fake": {"allowFrom": ["boss"]}}`),
		"tools":    json.RawMessage(`{"exec": {"mode": "full"}}`),
		"commands": json.RawMessage(`{"bash": true, "bashForegroundMs": 50, "ownerAllowFrom": ["boss"]}`),
	}})
	say := func(id, text string) string {
		t.Helper()
		before := len(fake.Texts(directVoice))
		if err := fake.Say(t.Context(), chela.Inbound{ID: id, Address: directVoice, Sender: chela.Sender{ID: "boss"},
			Text: text}); err != nil {
			t.Fatal(err)
		}
		var got []string
		waittest.Until(t, "an answer to "+text, func() bool { got = fake.Texts(directVoice); return len(got) > before })
		return got[before]
	}
	if got := say("1", "!poll"); !strings.Contains(got, "No command is in the background.") {
		t.Errorf("poll: %q", got)
	}
	if got := say("2", "! echo begun; sleep 300"); !strings.Contains(got, "sessionId") {
		t.Errorf("a command that goes on: %q", got)
	}
	if got := say("3", "!stop"); !strings.Contains(got, "Ended") {
		t.Errorf("stop: %q", got)
	}
	if got := say("4", "/bash poll"); !strings.Contains(got, "ended by SIGTERM") {
		t.Errorf("poll: %q", got)
	}
}
