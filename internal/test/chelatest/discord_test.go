package chelatest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/channel/discord/discordtest"
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
			Config: section("channels", `{"discord": {"token": "`+discordtest.Token+`", "apiRoot": "`+platform.Root()+`", "allowFrom": ["`+ann+`"]}}`),
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
		if got := say(discordtest.Post{Channel: platform.DM(eve), Person: eve, Text: "hello"}); !strings.Contains(got, "Your code: ") || len(platform.Requests("POST", dm+"/messages")) != 1 {
			t.Errorf("the answer to a stranger: %q", got)
		}
		if got := say(discordtest.Post{Channel: room, Person: ann, Text: "hello all"}); got != "" {
			t.Errorf("the answer to a message without a mention: %q", got)
		}
		if got := say(discordtest.Post{Channel: room, Person: ann, Text: "<@" + discordtest.Self + "> hello you"}); got == "" {
			t.Error("no answer to a mention")
		}
		if n := len(model.Requests()); n != 2 {
			t.Errorf("the model was asked %d times", n)
		}
		synctest.Wait()
	})
}
