package chelatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
	"github.com/chela-ai/chela/wire"
)

// TestAdmission lets people in over a channel.
func TestAdmission(t *testing.T) {
	var model *llmtest.Script
	var gateway *Gateway
	begin := func(t *testing.T, section string) (*telegramtest.Server, *Client, func()) {
		srv := telegramtest.New()
		root, hc := srv.Pipe()
		srv.Chat(8, "private")
		srv.Chat(9, "private")
		srv.Chat(-100, "supergroup")
		model = echoing()
		conf := Config{"channels": json.RawMessage(fmt.Sprintf(`{"telegram": {"botToken": %q, "apiRoot": %q, %s}}`,
			telegramtest.Token, root, section))}
		g := Start(t, Options{HTTP: hc, Model: model, Config: conf})
		gateway = g
		c := g.Client()
		return srv, c, func() { c.Close(); g.Stop(); hc.CloseIdleConnections(); srv.Close() }
	}
	wait := func() { time.Sleep(30 * time.Second) }
	eve, bob := telegramtest.Person(8, "Eve"), telegramtest.Person(9, "Bob")
	mention := telegramtest.Object{
		"entities": []telegramtest.Object{{"type": "mention", "offset": 0, "length": len("@" + telegramtest.BotName)}}}
	last := func() string {
		all := model.Requests()
		var b strings.Builder
		for _, m := range all[len(all)-1].Messages {
			b.WriteString(string(m.Role) + ": " + m.PlainText() + "\n")
		}
		return b.String()
	}

	t.Run("SE-01 SE-04 a stranger gets one code, and is answered when it is approved", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, c, stop := begin(t, `"allowFrom": []`)
			defer stop()
			for range 3 {
				srv.Say(8, eve, "let me in", nil)
				wait()
			}
			got := srv.Texts(8)
			if len(got) != 1 || len(model.Requests()) != 0 {
				t.Fatalf("the stranger sees %q, %d requests to the model", got, len(model.Requests()))
			}
			var list wire.Guests
			c.must(wire.MethodGuestList, wire.GuestsGet{}, &list)
			if len(list.Requests) != 1 || list.Requests[0].Name != "Eve" || !strings.Contains(got[0], list.Requests[0].Request) {
				t.Fatalf("requests %+v for %q", list.Requests, got)
			}
			var done wire.GuestDecided
			c.must(wire.MethodGuestApprove, wire.GuestRequest{Channel: "telegram", Request: list.Requests[0].Request,
				Notify: true, Owner: true}, &done)
			if done.ID != "8" || done.Notice != wire.GuestNotified {
				t.Errorf("approved: %+v", done)
			}
			var twice wire.GuestDecided
			if c.must(wire.MethodGuestApprove, wire.GuestRequest{Channel: "telegram", Request: list.Requests[0].Request},
				&twice); twice.ID != "" {
				t.Error("a code is approved twice")
			}
			wait()
			srv.Say(8, eve, "hello", nil)
			srv.Say(-100, eve, "@"+telegramtest.BotName+" in a group", mention) // SE-07
			wait()
			if got := srv.Texts(8); len(got) != 3 || got[2] != "re: hello" {
				t.Errorf("the guest sees %q", got)
			}
			if got := srv.Texts(-100); len(got) != 0 {
				t.Errorf("SE-07 the group sees %q", got)
			}
			c.must(wire.MethodGuestRemove, wire.GuestRemove{Channel: "telegram", ID: "8"}, nil)
			srv.Say(8, eve, "still here?", nil)
			wait()
			if got := srv.Texts(8); len(got) != 4 || !strings.Contains(got[3], "Your code") {
				t.Errorf("after the removal: %q", got)
			}
		})
	})
	t.Run("SE-06 nobody is answered when direct chats are disabled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _, stop := begin(t, `"dmPolicy": "disabled", "allowFrom": ["8"]`)
			defer stop()
			srv.Say(8, eve, "hello", nil)
			wait()
			if got := srv.Texts(8); len(got)+len(model.Requests()) != 0 {
				t.Errorf("%q, %d requests", got, len(model.Requests()))
			}
		})
	})
	t.Run("CH-04 SE-08 E2E-09 what was said in a group is context of the next mention, once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _, stop := begin(t, `"allowFrom": ["8"], "groupPolicy": "open", "historyLimit": 5`)
			defer stop()
			for i := range 30 {
				srv.Say(-100, bob, fmt.Sprint("chatter ", i), nil)
			}
			wait()
			if n := len(model.Requests()); n != 0 {
				t.Fatalf("%d requests", n)
			}
			srv.Say(-100, eve, "@"+telegramtest.BotName+" what do you think?", mention)
			wait()
			got := last()
			if n := strings.Count(got, "chatter"); n != 5 || !strings.Contains(got, "[Bob] chatter 29") ||
				strings.Contains(got, "chatter 24") || !strings.Contains(got, "[Eve] what do you think?") {
				t.Errorf("the model sees %s", got)
			}
			if texts := srv.Texts(-100); len(texts) != 1 {
				t.Errorf("the group sees %q", texts)
			}
			srv.Say(-100, eve, "@"+telegramtest.BotName+" and now?", mention)
			wait()
			if n := strings.Count(last(), "chatter"); n != 5 {
				t.Errorf("%d lines of context after the second mention: %s", n, last())
			}
		})
	})
	t.Run("CH-05 without a history nothing is kept", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _, stop := begin(t, `"groupPolicy": "open", "historyLimit": 0`)
			defer stop()
			srv.Say(-100, bob, "chatter", nil)
			srv.Say(-100, eve, "@"+telegramtest.BotName+" hello", mention)
			wait()
			if got := last(); strings.Contains(got, "chatter") {
				t.Errorf("the model sees %s", got)
			}
		})
	})
	t.Run("TG-13 SE-09 a group that is not listed, and a reply of somebody who may not write", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _, stop := begin(t, `"groupAllowFrom": ["8"], "groups": {"-100": {}, "-300": {"enabled": false}}`)
			defer stop()
			srv.Chat(-200, "supergroup")
			srv.Say(-200, eve, "@"+telegramtest.BotName+" hello", mention)
			srv.Say(-100, bob, "@"+telegramtest.BotName+" hello", mention)
			wait()
			if n := len(model.Requests()); n != 0 {
				t.Errorf("%d requests", n)
			}
			srv.Say(-100, eve, "@"+telegramtest.BotName+" hello", mention)
			wait()
			if got := srv.Texts(-100); len(got) != 1 || got[0] != "re: [Eve] hello" {
				t.Errorf("the group sees %q", got)
			}
		})
	})
	t.Run("CH-17 two programs that answer each other stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _, stop := begin(t, `"allowFrom": ["*"], "dmPolicy": "open", "groupPolicy": "open", "allowBots": true`)
			defer stop()
			bot := telegramtest.Person(77, "Robot")
			bot["is_bot"] = true
			for i := range 40 {
				srv.Say(-100, bot, fmt.Sprintf("@%s round %d", telegramtest.BotName, i), mention)
				time.Sleep(1500 * time.Millisecond)
			}
			wait()
			if n := len(srv.Texts(-100)); n != 20 {
				t.Errorf("%d answers to the program", n)
			}
			srv.Say(-100, eve, "@"+telegramtest.BotName+" and me?", mention)
			time.Sleep(time.Minute)
			srv.Say(-100, bot, "@"+telegramtest.BotName+" again", mention)
			wait()
			if got := srv.Texts(-100); len(got) != 22 || got[20] != "re: [Eve] and me?" || got[21] != "re: [Robot] again" {
				t.Errorf("after a minute: %q", got[20:])
			}
		})
	})
	t.Run("a group has its own tools, skills and instructions", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _, stop := begin(t, `"allowFrom": ["8", "9"], "groups": {
				"-100": {"systemPrompt": "Speak like a pirate.", "skills": ["tea"], "tools": {"deny": ["ls"]}, "toolsBySender": {"id:9": {"allow": ["read"]}}, "topics": {"5": {"systemPrompt": "Only about boats."}}},
				"*": {"systemPrompt": "Speak plainly."}}, "direct": {"8": {"tools": {"deny": ["edit"]}}}`)
			defer stop()
			for _, name := range []string{"tea", "coffee"} {
				gateway.writeIn("workspace/skills/"+name+"/SKILL.md", "---\nname: "+name+"\ndescription: makes it\n---\n")
			}
			sent := func(chat int64, who telegramtest.Object, more telegramtest.Object) (prompt string, tools []string) {
				srv.Say(chat, who, "@"+telegramtest.BotName+" hello", more)
				wait()
				all := model.Requests()
				r := all[len(all)-1]
				for _, b := range r.System {
					prompt += b.Text
				}
				for _, s := range r.Tools {
					tools = append(tools, s.Name)
				}
				return prompt, tools
			}
			prompt, tools := sent(-100, eve, mention)
			if !strings.Contains(prompt, "Speak like a pirate.") || strings.Contains(prompt, "Speak plainly.") ||
				slices.Contains(tools, "ls") || !slices.Contains(tools, "edit") {
				t.Errorf("in the group: tools %q, prompt %s", tools, prompt)
			}
			if !strings.Contains(prompt, `The group is called "`) || !strings.Contains(prompt, "<name>tea") ||
				strings.Contains(prompt, "<name>coffee") {
				t.Errorf("in the group: prompt %s", prompt)
			}
			if _, tools := sent(-100, bob, mention); !slices.Equal(tools, []string{"read"}) {
				t.Errorf("tools of the other person: %q", tools)
			}
			topic := telegramtest.Object{"entities": mention["entities"], "message_thread_id": 5, "is_topic_message": true}
			if prompt, tools := sent(-100, eve, topic); !strings.Contains(prompt, "Only about boats.") ||
				slices.Contains(tools, "ls") {
				t.Errorf("in the topic: tools %q, prompt %s", tools, prompt)
			}
			if prompt, tools := sent(8, eve, nil); strings.Contains(prompt, "pirate") ||
				!strings.Contains(prompt, "<name>coffee") || slices.Contains(tools, "edit") || !slices.Contains(tools, "ls") {
				t.Errorf("in private: tools %q", tools)
			}
		})
	})
	t.Run("TG-12 the next run learns of a reaction to a message of the assistant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _, stop := begin(t, `"allowFrom": ["8"]`)
			defer stop()
			srv.Say(8, eve, "hello", nil)
			wait()
			own := srv.Messages(8)[0].ID
			react := func(id int64, who telegramtest.Object) {
				srv.Push(telegramtest.Object{"message_reaction": telegramtest.Object{"chat": telegramtest.Object{"id": 8,
					"type": "private"}, "message_id": id, "user": who, "date": 5, "old_reaction": []any{},
					"new_reaction": []telegramtest.Object{{"type": "emoji", "emoji": "👍"}}}})
			}
			react(own, eve)
			react(own, eve)      // told once
			react(own+1000, eve) // not a message of the assistant
			react(own, bob)      // may not write
			wait()
			if n := len(model.Requests()); n != 1 {
				t.Errorf("%d requests", n)
			}
			srv.Say(8, eve, "and now?", nil)
			wait()
			if got := last(); strings.Count(got, "reacted with 👍") != 1 ||
				!strings.Contains(got, `Eve reacted with 👍 to your message "re: hello".`) {
				t.Errorf("the model sees\n%s", got)
			}
		})
	})
	t.Run("TG-07 the section of a group moves with it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := telegramtest.New()
			root, hc := srv.Pipe()
			srv.Chat(-200, "supergroup")
			dir := t.TempDir()
			writeUnder(t, dir, "chela.json", fmt.Sprintf(`{channels: {telegram: {botToken: %q, apiRoot: %q, allowFrom: ["8"],
				groups: {
					// the family
					"-100": {requireMention: false},
				}}}}`, telegramtest.Token, root))
			g := Start(t, Options{HTTP: hc, Model: echoing(), Dir: dir})
			defer func() { g.Stop(); hc.CloseIdleConnections(); srv.Close() }()
			srv.Push(telegramtest.Object{"message": telegramtest.Object{"message_id": 90, "date": 1,
				"chat": telegramtest.Object{"id": -100, "type": "group"}, "from": eve, "migrate_to_chat_id": -200}})
			wait()
			srv.Say(-200, eve, "hello", nil)
			wait()
			if got := srv.Texts(-200); len(got) != 1 || got[0] != "re: [Eve] hello" {
				t.Errorf("the new group sees %q", got)
			}
			text, err := os.ReadFile(filepath.Join(dir, "chela.json"))
			if err != nil || strings.Contains(string(text), "-100") || !strings.Contains(string(text), "the family") {
				t.Errorf("the configuration is %s, %v", text, err)
			}
		})
	})
	t.Run("TG-10 a picture is downloaded after its sender was admitted, and not before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, c, stop := begin(t, `"allowFrom": ["8"]`)
			defer stop()
			id := srv.AddFile("photos/1.jpg", photo(t, 1000))
			pic := telegramtest.Object{"caption": "look", "photo": []telegramtest.Object{{"file_id": id, "file_unique_id": "u",
				"width": 200, "height": 200, "file_size": 1000}}}
			srv.Say(9, bob, "", pic)
			wait()
			if n := len(srv.Calls("getFile")); n != 0 {
				t.Errorf("%d downloads for a stranger", n)
			}
			srv.Say(8, eve, "", pic)
			srv.Say(8, eve, "", telegramtest.Object{"caption": "gone",
				"photo": []telegramtest.Object{{"file_id": "none", "file_unique_id": "v", "width": 2, "height": 2}}})
			wait()
			msgs := c.history("main")
			text, _ := json.Marshal(msgs)
			if len(srv.Calls("getFile")) < 2 || !strings.Contains(string(text), `"type":"image"`) ||
				!strings.Contains(string(text), "it could not be downloaded") {
				t.Errorf("%d downloads, history %.600s", len(srv.Calls("getFile")), text)
			}
		})
	})
}

// TestPosts receives messages that a platform posts to the gateway's port.
func TestPosts(t *testing.T) {
	t.Parallel()
	srv := telegramtest.New()
	t.Cleanup(srv.Close)
	root, hc := srv.Listen()
	srv.Chat(8, "private")
	conf := Config{"channels": json.RawMessage(fmt.Sprintf(`{"telegram": {"botToken": %q, "apiRoot": %q, "allowFrom": ["8"], "webhookUrl": "https://example.com/telegram-webhook", "webhookSecret": "a-secret-of-the-hook"}}`, telegramtest.Token, root))}
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		return llmtest.Say("re: " + r.Messages[len(r.Messages)-1].PlainText())
	})
	g := Start(t, Options{HTTP: hc, Model: model, Config: conf, Listen: &endpoint.Listen{Port: -1}})
	if err := srv.Await(t.Context(), func() bool { url, _ := srv.Webhook(); return url != "" }); err != nil {
		t.Fatal(err)
	}
	post := func(path, secret string) int {
		t.Helper()
		body, err := json.Marshal(telegramtest.Object{"update_id": 5, "message": srv.Said(8, telegramtest.Person(8, "Eve"),
			"posted", nil)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(g.URL(), "ws")+path,
			strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := post("/telegram-webhook", "wrong"); got != http.StatusUnauthorized {
		t.Errorf("TG-11 a wrong secret: %d", got)
	}
	if got := post("/other", "a-secret-of-the-hook"); got != http.StatusNotFound {
		t.Errorf("another path: %d", got)
	}
	if got := post("/telegram-webhook", "a-secret-of-the-hook"); got != http.StatusOK {
		t.Errorf("the right secret: %d", got)
	}
	if err := srv.Await(t.Context(),
		func() bool { return strings.Contains(strings.Join(srv.Texts(8), "|"), "re: posted") }); err != nil {
		t.Errorf("%v: the chat shows %q", err, srv.Texts(8))
	}
}
