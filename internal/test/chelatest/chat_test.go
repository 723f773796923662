package chelatest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
	"github.com/chela-ai/chela/wire"
)

// chat is a gateway with a bot of Telegram, on which Ann may write, in a synctest bubble.
type chat struct {
	t     *testing.T
	srv   *telegramtest.Server
	o     Options
	model *llmtest.Script
	g     *Gateway
}

var writer = telegramtest.Person(7, "Ann")

// inChat runs f with a gateway of a configuration: more are further members of
// channels.telegram, and sections those beside it. reply is the answer to the last
// message of a request; nil: an echo.
func inChat(t *testing.T, name, more string, sections Config, reply func(r *llm.Request) llmtest.Step,
	f func(t *testing.T, c *chat)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := telegramtest.New()
			root, hc := srv.Pipe()
			srv.Chat(7, "private")
			srv.Chat(-100, "supergroup")
			c := &chat{t: t, srv: srv, model: echoing()}
			if reply != nil {
				c.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step { return reply(r) })
			}
			conf := section("channels", fmt.Sprintf(`{"telegram": {"botToken": %q, "apiRoot": %q, "allowFrom": ["7"]%s}}`,
				telegramtest.Token, root, more))
			for k, v := range sections {
				conf[k] = v
			}
			c.o = Options{Dir: t.TempDir(), HTTP: hc, Model: c.model, Config: conf}
			c.g = Start(t, c.o)
			defer func() { c.g.Stop(); hc.CloseIdleConnections(); srv.Close() }()
			f(t, c)
		})
	})
}

// say is a message of Ann, and rest the time until everything has been answered.
func (c *chat) say(text string) int64 { return c.srv.Say(7, writer, text, nil) }

func (c *chat) rest() { time.Sleep(time.Minute) }

// shows compares what the direct chat shows.
func (c *chat) shows(want ...string) {
	c.t.Helper()
	if got := c.srv.Texts(7); !slices.Equal(got, want) {
		c.t.Errorf("the chat shows %q, want %q", got, want)
	}
}

// asked returns the messages of people that are at the end of each request to the model.
func (c *chat) asked() []string {
	var list []string
	for _, r := range c.model.Requests() {
		text := ""
		for _, m := range slices.Backward(r.Messages) {
			if m.Role != llm.RoleUser {
				break
			}
			text = m.PlainText() + "\n" + text
		}
		list = append(list, text)
	}
	return list
}

func TestChat(t *testing.T) {
	inChat(t, "CH-01 a message that is delivered twice is answered once", "", nil, nil, func(t *testing.T, c *chat) {
		m := telegramtest.Object{"message": c.srv.Said(7, writer, "hello", nil)}
		id := c.srv.Push(m)
		c.srv.PushID(id, m)
		c.rest()
		c.srv.PushID(id, m)
		c.say("again")
		c.rest()
		c.shows("re: hello", "re: again")
		if got := c.asked(); len(got) != 2 {
			t.Errorf("the model was asked %q", got)
		}
	})
	burst := section("messages", `{"inbound": {"debounceMs": 2000}}`)
	inChat(t, "CH-02 what is written within the pause is one message, and the answer is to the last",
		`, "replyToMode": "first"`, burst, nil, func(t *testing.T, c *chat) {
			for _, text := range []string{"a", "b", "c"} {
				c.say(text)
				time.Sleep(400 * time.Millisecond)
			}
			c.rest()
			if got := c.asked(); len(got) != 1 || !strings.Contains(got[0], "a\nb\nc\n") {
				t.Fatalf("the model was asked %q", got)
			}
			shown := c.srv.Messages(7)
			if len(shown) != 1 || shown[0].ReplyTo == 0 || shown[0].ReplyTo != shown[0].ID-1 {
				t.Errorf("the chat shows %+v", shown)
			}
		})
	inChat(t, "CH-03 a picture ends the pause, and a command does not wait for it", "",
		section("messages", `{"inbound": {"debounceMs": 20000}}`), nil, func(t *testing.T, c *chat) {
			c.say("look")
			time.Sleep(time.Second)
			photo := c.srv.AddFile("photos/a.jpg", photo(t, 1000))
			c.srv.Say(7, writer, "",
				telegramtest.Object{"photo": []telegramtest.Object{{"file_id": photo, "file_unique_id": "u1", "width": 40,
					"height": 30}}})
			time.Sleep(5 * time.Second)
			if got := c.asked(); len(got) != 1 || !strings.Contains(got[0], "look") {
				t.Errorf("5 s later the model was asked %q", got)
			}
			c.say("and this")
			c.say("/stop")
			time.Sleep(2 * time.Second)
			if got := c.srv.Texts(7); len(got) != 2 {
				t.Errorf("the chat shows %q, without an answer to /stop", got)
			}
		})
	long := "Before.\n\n```go\n" + strings.Repeat("fmt.Println(\"a line of code that is long\")\n", 220) + "```\n\nAfter."
	inChat(t, "CH-06 STREAM-01 a long answer comes in pieces, each with whole blocks of code", `, "textChunkLimit": 4000`,
		nil, func(*llm.Request) llmtest.Step { return llmtest.Say(long) }, func(t *testing.T, c *chat) {
			c.say("go")
			c.rest()
			shown := c.srv.Messages(7)
			lines := 0
			for i, m := range shown {
				if n := len([]rune(m.Text)); n > 4096 || n == 0 {
					t.Errorf("piece %d has %d characters", i, n)
				}
				if strings.Count(m.HTML, "<pre>") != strings.Count(m.HTML, "</pre>") {
					t.Errorf("piece %d has code that is not closed: %s", i, m.HTML)
				}
				lines += strings.Count(m.Text, "fmt.Println")
			}
			if len(shown) < 3 || lines != 220 || !strings.HasPrefix(shown[0].Text, "Before.") ||
				!strings.HasSuffix(shown[len(shown)-1].Text, "After.") {
				t.Errorf("%d pieces, %d lines", len(shown), lines)
			}
		})
	inChat(t, "CH-07 a limit of the platform is waited for, twice", "", nil, nil, func(t *testing.T, c *chat) {
		c.srv.Fail("sendMessage", telegramtest.Fault{Status: 429, RetryAfter: 2},
			telegramtest.Fault{Status: 429, RetryAfter: 2})
		c.say("hello")
		c.rest()
		c.shows("re: hello")
		calls := c.srv.Calls("sendMessage")
		if len(calls) != 3 {
			t.Fatalf("%d calls", len(calls))
		}
		for i := range 2 {
			if d := calls[i+1].Time.Sub(calls[i].Time); d < 2*time.Second {
				t.Errorf("call %d came after %v", i+2, d)
			}
		}
	})
	inChat(t, "CH-08 CH-09 an answer that cannot be sent is kept, said, and sent once after a restart", "", nil, nil,
		func(t *testing.T, c *chat) {
			c.srv.Fail("sendMessage", slices.Repeat([]telegramtest.Fault{{Status: 502}}, 3)...)
			c.say("hello")
			time.Sleep(5 * time.Second)
			if n := len(c.srv.Calls("sendMessage")); n == 0 || len(c.srv.Texts(7)) != 0 {
				t.Errorf("%d calls, the chat shows %q", n, c.srv.Texts(7))
			}
			c.g.Stop()
			c.g = Start(t, c.o)
			time.Sleep(10 * time.Minute)
			c.shows("re: hello")
			if got := c.asked(); len(got) != 1 {
				t.Errorf("the model was asked %q", got)
			}
		})
	inChat(t, "CH-10 the silent answer is not sent", "", nil,
		func(*llm.Request) llmtest.Step { return llmtest.Say("no_reply") }, func(t *testing.T, c *chat) {
			c.say("just so you know")
			c.rest()
			c.shows()
		})
	inChat(t, "CH-12 the typing indicator is there from the beginning to the end", "", nil,
		func(*llm.Request) llmtest.Step {
			s := llmtest.Say("done")
			s.Delay = 15 * time.Second
			return s
		}, func(t *testing.T, c *chat) {
			begin := time.Now()
			c.say("work")
			c.rest()
			var at []time.Duration
			for _, call := range c.srv.Calls("sendChatAction") {
				at = append(at, call.Time.Sub(begin))
			}
			if len(at) < 3 || at[0] > 2*time.Second || at[len(at)-1] > 17*time.Second {
				t.Fatalf("typing at %v", at)
			}
			for i := range len(at) - 1 {
				if d := at[i+1] - at[i]; d > 7*time.Second {
					t.Errorf("a pause of %v", d)
				}
			}
		})
	inChat(t, "CH-18 a group and a direct chat have conversations of their own, answered where they are",
		`, "groupPolicy": "open"`, nil, nil, func(t *testing.T, c *chat) {
			mention := telegramtest.Object{
				"entities": []telegramtest.Object{{"type": "mention", "offset": 0, "length": len("@" + telegramtest.BotName)}}}
			c.say("mine")
			c.rest()
			c.srv.Say(-100, writer, "@"+telegramtest.BotName+" ours", mention)
			c.rest()
			c.shows("re: mine")
			if got := c.srv.Texts(-100); !slices.Equal(got, []string{"re: [Ann] ours"}) {
				t.Errorf("the group shows %q", got)
			}
			for _, m := range c.model.Requests()[1].Messages {
				if strings.Contains(m.PlainText(), "mine") {
					t.Errorf("the group's conversation has %q", m.PlainText())
				}
			}
		})
	bold := "**" + strings.Repeat("word ", 1500) + "end**"
	inChat(t, "STREAM-08 bold text over the limit is bold in each piece", "", nil,
		func(*llm.Request) llmtest.Step { return llmtest.Say(bold) }, func(t *testing.T, c *chat) {
			c.say("go")
			c.rest()
			shown := c.srv.Messages(7)
			words := 0
			for i, m := range shown {
				words += strings.Count(m.Text, "word")
				if !strings.HasPrefix(m.HTML, "<b>") || !strings.HasSuffix(m.HTML, "</b>") {
					t.Errorf("piece %d: %.40q … %q", i, m.HTML, m.HTML[max(0, len(m.HTML)-20):])
				}
			}
			if len(shown) < 2 || words != 1500 {
				t.Errorf("%d pieces, %d words", len(shown), words)
			}
		})
	inChat(t, "STREAM-09 what Telegram does not take as HTML arrives plain, once", "", nil,
		func(*llm.Request) llmtest.Step { return llmtest.Say("some **bold** text") }, func(t *testing.T, c *chat) {
			c.srv.Fail("sendMessage",
				telegramtest.Fault{Status: 400, Description: "Bad Request: can't parse entities: Unsupported start tag"})
			c.say("go")
			c.rest()
			shown := c.srv.Messages(7)
			if len(shown) != 1 || shown[0].HTML != "" || !strings.Contains(shown[0].Text, "bold") {
				t.Errorf("the chat shows %+v", shown)
			}
		})
	inChat(t, "PROMPT-10 an answer with the tag for a reply is one, and the tag is not seen", "", nil,
		func(*llm.Request) llmtest.Step { return llmtest.Say("[[reply_to_current]] yes") }, func(t *testing.T, c *chat) {
			c.say("really?")
			c.rest()
			shown := c.srv.Messages(7)
			if len(shown) != 1 || shown[0].Text != "yes" || shown[0].ReplyTo != shown[0].ID-1 {
				t.Errorf("the chat shows %+v", shown)
			}
		})
	chinese := strings.Repeat("这是一个没有空格的句子。", 400)
	for name, text := range map[string]string{"Chinese": chinese, "emphasised": bold} {
		inChat(t, "an answer that is sent while it is written comes once: "+name, `, "streaming": "block"`, nil,
			func(*llm.Request) llmtest.Step {
				s := llmtest.Say(text)
				s.Gap, s.Chunk = 50*time.Millisecond, 48
				return s
			}, func(t *testing.T, c *chat) {
				c.say("go")
				c.rest()
				c.rest()
				if got, want := strings.Join(strings.Fields(strings.Join(c.srv.Texts(7), " ")), ""),
					strings.Join(strings.Fields(strings.ReplaceAll(text, "**", "")), ""); got != want {
					t.Errorf("%d messages with %d characters, want %d", len(c.srv.Texts(7)), len(got), len(want))
				}
				if n := len(c.srv.Texts(7)); n < 2 {
					t.Errorf("%d messages", n)
				}
			})
	}
	beats := section("agents.defaults.heartbeat", `{"every": "10m", "target": "last"}`)
	beats["agents.defaults.skipBootstrap"] = json.RawMessage("true")
	alert := func(r *llm.Request) llmtest.Step {
		if strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), "HEARTBEAT") {
			return llmtest.Say("the disk is full")
		}
		return llmtest.Say("fine")
	}
	inChat(t, "CH-25 an alert for a channel that does not run is not sent, and told with the next message", "", beats,
		alert, func(t *testing.T, c *chat) {
			c.say("hi")
			c.rest()
			c.shows("fine")
			c.srv.Revoke()
			time.Sleep(15 * time.Minute)
			c.shows("fine")
			local := c.g.Client()
			defer local.Close()
			var last wire.Heartbeat
			local.must(wire.MethodLastHeartbeat, struct{}{}, &last)
			if last.Status != "skipped" || !strings.Contains(last.Reason, "not-ready") {
				t.Errorf("the last heartbeat: %+v", last)
			}
			local.Ask("main", "what is new?")
			all := c.model.Requests()
			if text := fmt.Sprint(messageTexts(all[len(all)-1])); !strings.Contains(text,
				"could not be delivered to telegram (the channel is not running). Tell the person now: the disk is full") {
				t.Errorf("the model got %q", text)
			}
		})
	named := Config{
		"messages": json.RawMessage(`{"ackReactionScope": "all", "responsePrefix": "auto"}`),
	}
	inChat(t, "WS-09 the name and the emoji in IDENTITY.md are those of the assistant", `, "groupPolicy": "open"`, named,
		nil, func(t *testing.T, c *chat) {
			c.g.writeIn("workspace/IDENTITY.md", "# Who I am\n\n- **Name:** Rook\n- **Emoji:** 🔥\n")
			at := func(text string) (reaction, answer string) {
				before := len(c.srv.Texts(-100))
				c.srv.Say(-100, writer, text, nil)
				c.rest()
				for _, call := range c.srv.Calls("setMessageReaction") {
					reaction = fmt.Sprint(call.Params["reaction"], call.Code)
				}
				return reaction, strings.Join(c.srv.Texts(-100)[before:], "|")
			}
			if reaction, answer := at("what does rook think?"); !strings.Contains(reaction, "🔥") ||
				!strings.HasPrefix(answer, "[Rook] re: ") {
				t.Errorf("reaction %s, answer %q", reaction, answer)
			}
			if _, answer := at("nothing for a rookie"); answer != "" {
				t.Errorf("answer %q to a message with another name", answer)
			}
			c.g.writeIn("workspace/IDENTITY.md", "- **Name:** Nova\n- **Emoji:** 🪼\n") // which Telegram does not have
			if reaction, answer := at("Nova?"); !strings.Contains(reaction, "👀") || !strings.HasPrefix(answer, "[Nova] re: ") {
				t.Errorf("reaction %s, answer %q", reaction, answer)
			}
		})
}
