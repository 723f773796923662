package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/memo"
	"github.com/chela-ai/chela/internal/plugin/channel/slack/slacktest"
)

func TestPlain(t *testing.T) {
	person := func(id string) string { return "name-" + id }
	room := func(id string) string { return "room-" + id }
	for in, want := range map[string]string{
		"hello":                             "hello",
		"<@U1> and <@U2|bob>":               "@name-U1 and @bob",
		"<#C1|general> <#C2>":               "#general #room-C2",
		"<https://x.example/a?b=1&amp;c=2>": "https://x.example/a?b=1&c=2",
		"<https://x.example|label>":         "label (https://x.example)",
		"<http://x.example|x.example>":      "http://x.example",
		"<mailto:a@b.example|a@b.example>":  "a@b.example",
		"<mailto:a@b.example|Ann>":          "Ann (a@b.example)",
		"<!here> <!channel> <!subteam^S1|@devs> <!date^1^{date}|today>": "@here @channel @devs today",
		"a &lt; b &amp;&amp; c &gt; d":                                  "a < b && c > d",
		"&amp;lt;":                                                      "&lt;",
		"<":                                                             "<",
		"a < b":                                                         "a < b",
		"<@U1":                                                          "<@U1",
		"<<@U1>":                                                        "<@name-U1",
		"<>":                                                            "<>",
		"<a\nb>":                                                        "<a\nb>",
		"":                                                              "",
	} {
		if got := plain(in, person, room); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAddressed(t *testing.T) {
	for _, c := range []struct {
		in, want  string
		mentioned bool
	}{
		{"<@B> hi", "hi", true}, {" <@B>, hi", "hi", true}, {"<@B|bot>: hi", "hi", true}, {"<@B> <@B> hi", "hi", true},
		{"hi <@B>", "hi <@B>", true},
		{"<@BX> hi", "<@BX> hi", false}, {"hi", "hi", false}, {"<@B>", "", true},
		{"<@U1> <@B> x", "<@U1> <@B> x", true}, {"<@B", "<@B", false},
	} {
		if got, m := addressed(c.in, "B"); got != c.want || m != c.mentioned {
			t.Errorf("addressed(%q) = %q, %v", c.in, got, m)
		}
	}
	if got, m := addressed("<@> x", ""); got != "<@> x" || m {
		t.Errorf("without an id: %q, %v", got, m)
	}
}

func TestEvents(t *testing.T) {
	inWorld(t, "", func(w *world) {
		n := 0
		event := func(chat, who, text string, more map[string]any) *chela.Inbound {
			t.Helper()
			n++
			before := len(w.received())
			w.push("events_api", w.Event(chat, who, text, fmt.Sprintf("%d.000001", n), more))
			if got := w.received(); len(got) > before {
				return &got[before]
			}
			return nil
		}
		// Conversations.
		in := event("D1", "U1", "hello", nil)
		want := chela.Inbound{
			ID:      "1.000001",
			Address: person("U1"),
			Sender:  chela.Sender{ID: "U1", Name: "Ann"},
			Text:    "hello",
			Time:    time.Unix(1, 1000),
			Team:    "T1",
		}
		w.equal(&want, in)
		in = event("C1", "U1", "hello", nil)
		want = chela.Inbound{
			ID:      "2.000001",
			Address: room("C1"),
			Sender:  want.Sender,
			Text:    "hello",
			Time:    time.Unix(2, 1000),
			Team:    "T1",
			Group:   "general",
		}
		w.equal(&want, in)
		for _, id := range []string{"G1", "G2"} {
			w.equal(chela.Peer{Kind: chela.Group, ID: id}, event(id, "U1", "hello", nil).Address.Peer)
			w.equal(chela.Peer{Kind: chela.Group, ID: id},
				event(id, "U1", "<@UBOT> hello", map[string]any{"type": "app_mention", "channel_type": ""}).Address.Peer)
		}
		// Mentions.
		w.equal(true, event("C1", "U1", "ask <@UBOT>", nil).Mentioned)
		w.equal(false, event("D1", "U1", "<@UBOT> hi", nil).Mentioned)
		w.equal(true, event("C1", "U1", "so?", map[string]any{"thread_ts": "0.5", "parent_user_id": "UBOT"}).Mentioned)
		w.equal(false, event("C1", "U1", "so?", map[string]any{"thread_ts": "0.5", "parent_user_id": "U2"}).Mentioned)
		w.equal("@chela", event("C1", "U1", "<@UBOT>", nil).Text)
		w.equal("tell @Bob, #random, label (https://x.example) <&>",
			event("C1", "U1", "<@UBOT> tell <@U2>, <#C2>, <https://x.example|label> &lt;&amp;&gt;", nil).Text)
		w.equal("@nobody", event("C1", "U1", "<@nobody>", nil).Text)
		// Programs, and the account itself.
		in = event("C1", "", "built", map[string]any{"subtype": "bot_message", "bot_id": "B7", "username": "CI"})
		w.equal(chela.Sender{ID: "B7", Name: "CI", Bot: true}, in.Sender)
		for name, ignored := range map[string]*chela.Inbound{
			"own":     event("C1", "UBOT", "mine", nil),
			"own bot": event("C1", "", "mine", map[string]any{"subtype": "bot_message", "bot_id": "BBOT"}),
			"deleted": event("C1", "", "", map[string]any{"subtype": "message_deleted", "deleted_ts": "1.000001"}),
			"joined":  event("C1", "U1", "<@U1> has joined", map[string]any{"subtype": "channel_join"}),
			"preview": event("C1", "", "", map[string]any{"subtype": "message_changed", "message": map[string]any{
				"user": "U1",
				"text": "x",
				"ts":   "1.0",
			}, "previous_message": map[string]any{"text": "x"}}),
			"own edit": event("C1", "", "", map[string]any{"subtype": "message_changed",
				"message":          map[string]any{"user": "UBOT", "text": "x", "ts": "1.0", "edited": map[string]any{"ts": "2"}},
				"previous_message": map[string]any{"text": "y"}}),
			"same text": event("C1", "", "", map[string]any{"subtype": "message_changed",
				"message":          map[string]any{"user": "U1", "text": "x", "ts": "1.0", "edited": map[string]any{"ts": "2"}},
				"previous_message": map[string]any{"text": "x"}}),
			"empty":    event("C1", "U1", "", nil),
			"reaction": event("C1", "U1", "", map[string]any{"type": "reaction_added"}),
		} {
			if ignored != nil {
				t.Errorf("%s: %+v", name, ignored)
			}
		}
		// Files and shared messages.
		in = event("D1", "U1", "look", map[string]any{"subtype": "file_share", "files": []any{
			map[string]any{
				"id":          "F1",
				"name":        "a.png",
				"mimetype":    "image/png",
				"size":        5,
				"url_private": "https://files.slack.com/a.png",
			},
			map[string]any{"id": "F2", "mode": "tombstone"},
			map[string]any{"id": "F3", "title": "Plan", "is_external": true, "url_private": "https://drive.example/p"},
		}})
		w.equal([]chela.Media{{Name: "a.png", Type: "image/png", Bytes: 5, Source: "https://files.slack.com/a.png"}},
			in.Media)
		w.equal("look\n[file, not available]\n[file Plan at https://drive.example/p]", in.Text)
		var many []any
		for range 23 {
			many = append(many, map[string]any{"name": "a", "url_private": "https://files.slack.com/a"})
		}
		in = event("D1", "U1", "", map[string]any{"files": many})
		w.equal(maxFiles, len(in.Media))
		w.equal("[3 more files]", in.Text)
		shared := []any{map[string]any{"is_share": true, "author_name": "Bob", "text": "see &amp; learn"}}
		in = event("D1", "U1", "", map[string]any{"attachments": shared})
		w.equal([]string{"Bob", "see & learn"}, []string{in.Forwarded, in.Text})
		in = event("D1", "U1", "true?", map[string]any{"attachments": shared})
		w.equal(chela.Quote{Sender: chela.Sender{Name: "Bob"}, Text: "see & learn"}, in.Quote)
	})
}

func TestInteractions(t *testing.T) {
	inWorld(t, `, "slashCommand": {"name": "chela"}`, func(w *world) {
		w.push("interactive", pressed("yes", "1.5"))
		w.push("interactive", pressed("yes", "1.5"))
		w.push("interactive", pressed("/approve 1", "1.6"))
		w.push("interactive", map[string]any{"type": "view_submission"})
		w.push("interactive", pressed("", "1.7"))
		w.equal([]string{"callback_data: yes", "/approve 1"}, w.texts())
		in := w.received()[0]
		a := room("C1")
		a.Thread = "0.000009"
		w.equal(chela.Inbound{
			ID:        "1.000001:action:1.5",
			Address:   a,
			Sender:    chela.Sender{ID: "U1", Name: "Ann"},
			Text:      "callback_data: yes",
			Team:      "T1",
			ReplyTo:   "1.000001",
			Mentioned: true,
			Group:     "general",
			Time:      when("1.5"),
		}, in)

		cmd := func(name, text, trigger string) map[string]any {
			return map[string]any{
				"command":    name,
				"text":       text,
				"user_id":    "U1",
				"user_name":  "ann",
				"channel_id": "D1",
				"team_id":    "T1",
				"trigger_id": trigger,
			}
		}
		w.push("slash_commands", cmd("/new", "", "1"))
		w.push("slash_commands", cmd("/new", "", "1"))
		w.push("slash_commands", cmd("/chela", "what is &lt;this&gt;?", "2"))
		w.push("slash_commands", cmd("/chela", "", "3"))
		w.push("slash_commands", cmd("/think", "high", "4"))
		w.push("slash_commands", map[string]any{"command": "/new"})
		w.equal([]string{"/new", "what is <this>?", "/help", "/think high"}, w.texts()[2:])
		w.equal(person("U1"), w.last().Address)
	})
}

// TestKind looks up a conversation whose kind an event does not tell while Slack fails.
func TestKind(t *testing.T) {
	inWorld(t, "", func(w *world) {
		mention := func(ts string) map[string]any {
			return w.Event("G2", "U1", "<@UBOT> hi", ts,
				map[string]any{"type": "app_mention", "channel_type": "", "channel": "C7"})
		}
		w.AddChat(slacktest.Chat{ID: "C7", Name: "private", Kind: "group"})
		w.Fail("conversations.info", slacktest.Fault{Status: 500}, slacktest.Fault{Cut: true})
		w.push("events_api", mention("1.000001"))
		w.equal(chela.Peer{Kind: chela.Group, ID: "C7"}, w.last().Address.Peer)
		// After some time it is passed on all the same.
		w.b.chats = memo.Map[string, chat]{Most: 5}
		for range 10 {
			w.Fail("conversations.info", slacktest.Fault{Status: 500})
		}
		w.push("events_api", mention("2.000001"))
		w.equal(chela.Peer{Kind: chela.Room, ID: "C7"}, w.last().Address.Peer)
	})
}

func TestConfiguration(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                     "channels.slack.botToken is missing",
		`{"botToken": "xapp-1"}`: "botToken is the token of an app",
		`{"botToken": "xoxb-1"}`: "channels.slack.appToken is missing",
		`{"botToken": "xoxb-1", "appToken": "xoxb-1"}`:                                     "appToken is the token of a bot",
		`{"botToken": "xoxb-1", "mode": "http"}`:                                           "channels.slack.signingSecret is missing",
		`{"botToken": "xoxb-1", "mode": "rtm"}`:                                            "want socket or http",
		`{"botToken": "xoxb-1", "mode": "http", "signingSecret": "s", "webhookPath": "x"}`: "does not begin with a slash",
		`{"botToken": "xoxb-1", "appToken": "xapp-1", "apiRoot": "ftp://x"}`:               "apiRoot is not an http or https URL",
		`{"botToken": "env:NONE"}`:                                                         "the variable is not set",
		`{"botToken": 7}`:                                                                  "secret",
		`{"botToken": "xoxb-1", "appToken": "xapp-1"}`:                                     "",
		`{"botToken": "env:BOT", "appToken": {"source": "env", "id": "APP"}}`:              "",
		`{"botToken": "xoxb-1", "mode": "http", "signingSecret": "s", "other": true}`:      "",
	} {
		e := env(t, nil, &reports{})
		e.Getenv = func(name string) string { return map[string]string{"BOT": "xoxb-1", "APP": "xapp-1"}[name] }
		_, err := New(e, "default", json.RawMessage(in))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "xoxb-1") || strings.Contains(err.Error(), "xapp-1")) {
			t.Errorf("%s: the error contains a secret: %v", in, err)
		}
	}
	// The variables are those of the account default only.
	e := env(t, nil, &reports{})
	e.Getenv = func(name string) string {
		return map[string]string{"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xapp-1"}[name]
	}
	if _, err := New(e, "default", json.RawMessage(`{}`)); err != nil {
		t.Error(err)
	}
	if _, err := New(e, "work", json.RawMessage(`{}`)); err == nil ||
		!strings.Contains(err.Error(), "channels.slack.accounts.work.botToken is missing") {
		t.Error(err)
	}
	id := Factory().Identity
	a, b := id(json.RawMessage(`{"botToken": "x"}`)), id(json.RawMessage(`{"botToken": "y"}`))
	if a == b || a == "" || strings.Contains(a, "x") && len(a) != 64 || id(json.RawMessage(`{}`)) != "" {
		t.Errorf("identities %q, %q", a, b)
	}
	if _, ok := Factory().Can.(channel.Poster); !ok {
		t.Error("not a Poster")
	}
}

// FuzzEvent checks that no payload makes the channel fail.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"type":"event_callback","event":{"type":"message","channel":"C1","user":"U1","text":"<@UBOT> <https://x|y>","ts":"1.2"}}`,
		`{"event":{"type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","text":"x","ts":"1","edited":{"ts":"2"}}}}`,
		`{"type":"block_actions","user":{"id":"U1"},"channel":{"id":"C1"},"actions":[{"type":"button","value":"x"}]}`,
		`{"command":"/x","text":"y","user_id":"U1","channel_id":"D1","trigger_id":"1"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		for _, kind := range []string{"events_api", "interactive", "slash_commands", "other"} {
			b := offline(t)
			in, err := b.inbound(t.Context(), kind, json.RawMessage(payload))
			if err == nil && (in.ID == "" || in.Sender.ID == "" || in.Address.Peer.ID == "" || in.Address.Peer.Kind == "") {
				t.Errorf("%s %s: %+v", kind, payload, in)
			}
		}
	})
}

// FuzzPlain checks that no text makes the channel fail, and that nothing is added to a text
// without markup.
func FuzzPlain(f *testing.F) {
	f.Add("<@U1> <#C1|x> <!here> <https://x|y> &amp;")
	f.Fuzz(func(t *testing.T, text string) {
		name := func(string) string { return "n" }
		got := plain(text, name, name)
		if !strings.ContainsAny(text, "<&") && got != text {
			t.Errorf("plain(%q) = %q", text, got)
		}
		addressed(text, "U1")
	})
}

// offline is an account that reaches nothing.
func offline(t *testing.T) *bot {
	ch, err := New(env(t, nil, &reports{}), "default", json.RawMessage(`{"botToken": "xoxb-1", "appToken": "xapp-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	b := ch.(*bot)
	b.self.Store(&self{User: "UBOT", Bot: "BBOT", Name: "chela"})
	return b
}
