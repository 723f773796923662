package chelatest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/channel/discord/discordtest"
	"github.com/chela-ai/chela/wire"
)

// TestDiscord talks with the assistant on Discord.
func TestDiscord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ann, eve, room = "7001", "7002", "7101"
		platform := discordtest.New()
		platform.AddUser(discordtest.User{ID: ann, Username: "ann"})
		platform.AddUser(discordtest.User{ID: eve, Username: "eve"})
		platform.AddGuild("7100", discordtest.Channel{ID: room, Name: "general"})
		client := platform.Client()
		defer client.CloseIdleConnections()
		defer platform.Close()

		model := llmtest.ScriptFunc(func(_ int, q *llm.Request) llmtest.Step {
			s := llmtest.Say("You wrote: " + q.Messages[len(q.Messages)-1].PlainText())
			s.Delay = 2 * time.Second
			return s
		})
		g := Start(t, Options{
			Model: model, HTTP: client,
			Config: section("channels", `{"discord": {"token": "`+discordtest.Token+`", "apiRoot": "`+platform.Root()+
				`", "allowFrom": ["`+ann+`"]}}`),
		})
		defer g.Stop()
		if err := platform.Connected(t.Context()); err != nil {
			t.Fatal(err)
		}
		say := func(p discordtest.Post) string {
			t.Helper()
			if err := platform.Say(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			shown := platform.Shown(p.Channel)
			last := shown[len(shown)-1]
			if last.Author.ID != discordtest.Self {
				return ""
			}
			return last.Text
		}

		dm := platform.DM(ann)
		if got := say(discordtest.Post{Channel: dm, Person: ann, Text: "hello"}); got != "You wrote: hello" {
			t.Errorf("the answer to a direct message: %q", got)
		}
		typed, sent := platform.Requests("POST", dm+"/typing"), platform.Requests("POST", dm+"/messages")
		if len(typed) == 0 || len(sent) != 1 || !typed[0].Time.Before(sent[0].Time) {
			t.Errorf("%d times typing, %d messages", len(typed), len(sent))
		}
		if got := say(discordtest.Post{Channel: platform.DM(eve), Person: eve, Text: "hello"}); !strings.Contains(got,
			"Your code: ") || len(platform.Requests("POST", dm+"/messages")) != 1 {
			t.Errorf("the answer to a stranger: %q", got)
		}
		if got := say(discordtest.Post{Channel: room, Person: ann, Text: "hello all"}); got != "" {
			t.Errorf("the answer to a message without a mention: %q", got)
		}
		if got := say(discordtest.Post{Channel: room, Person: ann, Text: "<@" + discordtest.Self + "> hello you"}); got ==
			"" {
			t.Error("no answer to a mention")
		}
		if n := len(model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times", n)
		}
		synctest.Wait()
	})
}

// TestDiscordThread starts a subagent in a thread of its own.
func TestDiscordThread(t *testing.T) {
	const ann, room = "7001", "7101"
	start := func(t *testing.T, platform *discordtest.Server,
		spawned *string) (g *Gateway, say func(channel, text string) []string) {
		platform.AddUser(discordtest.User{ID: ann, Username: "ann"})
		platform.AddGuild("7100", discordtest.Channel{ID: room, Name: "general"})
		model := llmtest.ScriptFunc(func(_ int, q *llm.Request) llmtest.Step {
			last := q.Messages[len(q.Messages)-1]
			switch child := strings.Contains(q.Messages[0].PlainText(), "count the ships"); {
			case last.Role == llm.RoleTool:
				*spawned = last.PlainText()
				return llmtest.Say("main: started")
			case child && len(q.Messages) == 1:
				return llmtest.Say("child: there are 7")
			case child:
				return llmtest.Say("child: as I said, 7")
			case strings.Contains(last.PlainText(), "there are 7"):
				return llmtest.Say("main: it counted 7")
			case strings.Contains(last.PlainText(), "please"):
				return llmtest.Call("c1", "sessions_spawn",
					`{"task": "count the ships", "label": "ships", "thread": true, "mode": "session"}`)
			}
			return llmtest.Say("main: hello")
		})
		g = Start(t, Options{
			Model: model, HTTP: platform.Client(),
			Config: section("channels", `{"discord": {"token": "`+discordtest.Token+`", "apiRoot": "`+platform.Root()+
				`", "allowFrom": ["`+ann+`"], "groupPolicy": "open", "groups": {"*": {"requireMention": false}}}}`),
		})
		if err := platform.Connected(t.Context()); err != nil {
			t.Fatal(err)
		}
		return g, func(channel, text string) (shown []string) {
			before := len(platform.Shown(channel))
			if err := platform.Say(t.Context(), discordtest.Post{Channel: channel, Person: ann, Text: text}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			for _, m := range platform.Shown(channel)[before+1:] {
				shown = append(shown, m.Text)
			}
			return shown
		}
	}
	t.Run("DC-08 E2E-06 it gets a thread with its name, in which it answers until /unfocus", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			platform := discordtest.New()
			defer platform.Close()
			var result string
			g, say := start(t, platform, &result)
			defer g.Stop()
			if got := say(room, "please"); len(got) != 1 || got[0] != "main: started" {
				t.Errorf("the channel shows %q after %s", got, result)
			}
			made := platform.Threads(room)
			if len(made) != 1 || made[0].Name != "Subagent: ships" {
				t.Fatalf("threads %+v", made)
			}
			thread := made[0].ID
			if shown := platform.Shown(thread); len(shown) != 1 || shown[0].Text != "main: it counted 7" {
				t.Errorf("the result in the thread: %+v", shown)
			}
			if got := say(thread, "sure?"); len(got) != 1 || got[0] != "child: as I said, 7" {
				t.Errorf("the thread shows %q", got)
			}
			if got := say(room, "and you?"); len(got) != 1 || got[0] != "main: hello" {
				t.Errorf("the channel shows %q", got)
			}
			if got := say(thread, "/unfocus"); len(got) != 1 || !strings.Contains(got[0], "own session again") {
				t.Errorf("after /unfocus: %q", got)
			}
			if got := say(thread, "sure?"); len(got) != 1 || got[0] != "main: hello" {
				t.Errorf("the thread shows %q", got)
			}
		})
	})
	t.Run("DC-08 where no thread can be made, no subagent is started", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			platform := discordtest.New()
			defer platform.Close()
			var result string
			g, say := start(t, platform, &result)
			defer g.Stop()
			platform.Fail(discordtest.Fault{Method: "POST", Path: "/threads", Status: 403})
			say(room, "please")
			if !strings.Contains(result, "no thread could be created") {
				t.Errorf("the model got %q", result)
			}
			c := g.Client()
			defer c.Close()
			var list wire.SessionList
			if c.must(wire.MethodSessionsList, struct{}{}, &list); len(list.Sessions) != 1 {
				t.Errorf("sessions %+v", list.Sessions)
			}
		})
	})
}
