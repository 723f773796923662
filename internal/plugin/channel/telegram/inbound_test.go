package telegram

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

// known returns a bot that knows who it is.
func known() *bot {
	b := &bot{account: "default"}
	b.me.Store(&user{ID: telegramtest.BotID, Username: telegramtest.BotName})
	return b
}

// member is the JSON of a message in a group by a person, with more members.
func member(more string) string {
	return `{"update_id": 5, "message": {"message_id": 11, "date": 1700000000, "from": {"id": 7, "first_name": "Ann", "last_name": "Lee"},
		"chat": {"id": -100200, "type": "supergroup", "title": "The chat"}, ` + more + `}}`
}

func TestInbound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, update string
		want         func(*chela.Inbound) // changes what is usual
	}{
		{"a text", member(`"text": "hello"`), func(in *chela.Inbound) { in.Text = "hello" }},
		{"a mention at the beginning",
			member(`"text": "@Chela_bot, hi", "entities": [{"type": "mention", "offset": 0, "length": 10}]`),
			func(in *chela.Inbound) { in.Text, in.Mentioned = "hi", true }},
		{"a mention inside, after emoji",
			member(`"text": "😀 ask @chela_bot that", "entities": [{"type": "mention", "offset": 7, "length": 10}]`),
			func(in *chela.Inbound) { in.Text, in.Mentioned = "😀 ask @chela_bot that", true }},
		{"somebody else is mentioned",
			member(`"text": "@chela_bott hi", "entities": [{"type": "mention", "offset": 0, "length": 11}]`),
			func(in *chela.Inbound) { in.Text = "@chela_bott hi" }},
		{"a name that is no mention", member(`"text": "mail a@chela_bot"`),
			func(in *chela.Inbound) { in.Text = "mail a@chela_bot" }},
		{"a mention without a user name",
			member(`"text": "Chela hi", "entities": [{"type": "text_mention", "offset": 0, "length": 5, "user": {"id": 424242}}]`),
			func(in *chela.Inbound) { in.Text, in.Mentioned = "hi", true }},
		{"a mention of another person",
			member(`"text": "Bob hi", "entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 8}}]`),
			func(in *chela.Inbound) { in.Text = "Bob hi" }},
		{"a command for the bot",
			member(`"text": "/status@chela_bot now", "entities": [{"type": "bot_command", "offset": 0, "length": 17}]`),
			func(in *chela.Inbound) { in.Text, in.Mentioned = "/status now", true }},
		{"a command for another bot",
			member(`"text": "/status@other_bot now", "entities": [{"type": "bot_command", "offset": 0, "length": 17}]`),
			func(in *chela.Inbound) { in.Text = "/status@other_bot now" }},
		{"a command for another bot, in a reply", member(`"text": "/status@other_bot now", "entities": [{"type": "bot_command", "offset": 0, "length": 17}], "reply_to_message": {"message_id": 9, "from": {"id": 424242}, "chat": {"id": -100200}}`),
			func(in *chela.Inbound) {
				in.Text, in.ReplyTo, in.Quote.Sender.ID = "/status@other_bot now", "9", "424242"
			}},
		{"a command for nobody", member(`"text": "/status", "entities": [{"type": "bot_command", "offset": 0, "length": 7}]`),
			func(in *chela.Inbound) { in.Text = "/status" }},
		{"two mentions", member(`"text": "@chela_bot @chela_bot", "entities": [{"type": "mention", "offset": 0, "length": 10}, {"type": "mention", "offset": 11, "length": 10}]`), nil},
		{"a link", member(
			`"text": "see this", "entities": [{"type": "text_link", "offset": 4, "length": 4, "url": "https://a.example"}]`),
			func(in *chela.Inbound) { in.Text = "see [this](https://a.example)" }},
		{"entities outside of the text", member(`"text": "hi", "entities": [{"type": "mention", "offset": -1, "length": 2}, {"type": "mention", "offset": 1, "length": 9223372036854775807}, {"type": "text_link", "offset": 9, "length": 1, "url": "x"}]`),
			func(in *chela.Inbound) { in.Text = "hi" }},
		{"a mention in a caption", member(`"caption": "@chela_bot what?", "caption_entities": [{"type": "mention", "offset": 0, "length": 10}], "photo": [{"file_id": "s"}, {"file_id": "b", "file_size": 9}]`),
			func(in *chela.Inbound) {
				in.Text, in.Mentioned, in.Media = "what?", true,
					[]chela.Media{{Name: "photo.jpg", Type: "image/jpeg", Bytes: 9, Source: "b"}}
			}},
		{"a reply to the bot", member(`"text": "yes", "reply_to_message": {"message_id": 9, "from": {"id": 424242, "is_bot": true, "first_name": "Chela"}, "chat": {"id": -100200}, "text": "sure?"}`),
			func(in *chela.Inbound) {
				in.Text, in.Mentioned, in.ReplyTo, in.Quote = "yes", true, "9",
					chela.Quote{Sender: chela.Sender{ID: "424242", Name: "Chela", Bot: true}, Text: "sure?"}
			}},
		{"a reply to a part of a message", member(`"text": "yes", "quote": {"text": "part"}, "reply_to_message": {"message_id": 9, "from": {"id": 8, "first_name": "Bob"}, "chat": {"id": -100200}, "text": "the part"}`),
			func(in *chela.Inbound) {
				in.Text, in.ReplyTo, in.Quote = "yes", "9", chela.Quote{Sender: chela.Sender{ID: "8", Name: "Bob"}, Text: "part"}
			}},
		{"a reply to a picture", member(`"text": "nice", "reply_to_message": {"message_id": 9, "from": {"id": 8, "username": "bob"}, "chat": {"id": -100200}, "photo": [{"file_id": "x"}]}`),
			func(in *chela.Inbound) {
				in.Text, in.ReplyTo, in.Quote = "nice", "9",
					chela.Quote{Sender: chela.Sender{ID: "8", Name: "bob"}, Text: "[photo.jpg]"}
			}},
		{"a reply to a message of another chat", member(`"text": "nice", "external_reply": {"origin": {"type": "channel", "chat": {"id": -5, "title": "News"}}}, "quote": {"text": "rain"}`),
			func(in *chela.Inbound) {
				in.Text, in.Quote = "nice", chela.Quote{Sender: chela.Sender{Name: "News"}, Text: "rain"}
			}},
		{"a forward", member(`"text": "look", "forward_origin": {"type": "hidden_user", "sender_user_name": "Cid"}`),
			func(in *chela.Inbound) { in.Text, in.Forwarded = "look", "Cid" }},
		{"a forward of a person",
			member(`"text": "look", "forward_origin": {"type": "user", "sender_user": {"id": 9, "first_name": "Cid"}}`),
			func(in *chela.Inbound) { in.Text, in.Forwarded = "look", "Cid" }},
		{"a chain of replies is no topic", member(`"text": "x", "message_thread_id": 9`),
			func(in *chela.Inbound) { in.Text = "x" }},
		{"the chat itself wrote", member(`"text": "x", "sender_chat": {"id": -100200, "title": "The chat"}`),
			func(in *chela.Inbound) {
				in.Text, in.Sender = "x", chela.Sender{ID: "-100200", Name: "The chat"}
			}},
		{"a program", strings.Replace(member(`"text": "x"`), `"first_name": "Ann"`, `"is_bot": true, "first_name": "Ann"`, 1),
			func(in *chela.Inbound) { in.Text, in.Sender.Bot = "x", true }},
		{"a document",
			member(`"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 3}`),
			func(in *chela.Inbound) {
				in.Media = []chela.Media{{Name: "a.pdf", Type: "application/pdf", Bytes: 3, Source: "d"}}
			}},
		{"a recording", member(`"voice": {"file_id": "v"}`), func(in *chela.Inbound) {
			in.Media = []chela.Media{{Name: "voice.ogg", Type: "audio/ogg", Source: "v"}}
		}},
		{"music", member(`"audio": {"file_id": "v", "mime_type": "audio/mp4"}`), func(in *chela.Inbound) {
			in.Media = []chela.Media{{Name: "audio.mp3", Type: "audio/mp4", Source: "v"}}
		}},
		{"a film", member(`"video": {"file_id": "v"}`), func(in *chela.Inbound) {
			in.Media = []chela.Media{{Name: "video.mp4", Type: "video/mp4", Source: "v"}}
		}},
		{"a round film", member(`"video_note": {"file_id": "v"}`), func(in *chela.Inbound) {
			in.Media = []chela.Media{{Name: "video.mp4", Type: "video/mp4", Source: "v"}}
		}},
		{"an animation is one file", member(`"animation": {"file_id": "v"}, "document": {"file_id": "v"}`),
			func(in *chela.Inbound) {
				in.Media = []chela.Media{{Name: "animation.mp4", Type: "video/mp4", Source: "v"}}
			}},
		{"a sticker", member(`"sticker": {"file_id": "v", "emoji": "😀"}`),
			func(in *chela.Inbound) { in.Text = "[sticker 😀]" }},
		{"a location", member(`"location": {"latitude": 52.5, "longitude": 13.4}`),
			func(in *chela.Inbound) { in.Text = "[location 52.5, 13.4]" }},
		{"a place", member(`"location": {"latitude": 52.5, "longitude": 13.4}, "venue": {"location": {"latitude": 52.5, "longitude": 13.4}, "title": "Café", "address": "Main 1"}`),
			func(in *chela.Inbound) { in.Text = "[location 52.5, 13.4, Café, Main 1]" }},
		{"a contact", member(`"contact": {"phone_number": "+491", "first_name": "Bob"}`),
			func(in *chela.Inbound) { in.Text = "[contact Bob, +491]" }},
		{"a poll", member(`"poll": {"question": "When?", "options": [{"text": "now"}, {"text": "later"}]}`),
			func(in *chela.Inbound) { in.Text = "[poll When? / now / later]" }},
		{"a die", member(`"dice": {"emoji": "🎲", "value": 4}`), func(in *chela.Inbound) { in.Text = "[dice 🎲, 4]" }},
		{"a game", member(`"game": {"title": "Chess"}`), func(in *chela.Inbound) { in.Text = "[game Chess]" }},
		{"a checklist", member(`"checklist": {"title": "Buy", "tasks": [{"id": 1, "text": "milk"}]}`),
			func(in *chela.Inbound) { in.Text = "[checklist Buy / milk]" }},
		{"a story", member(`"story": {"id": 1}`), func(in *chela.Inbound) { in.Text = "[story]" }},
		{"a kind that is not known", member(`"hologram": {"id": 1}`),
			func(in *chela.Inbound) { in.Text = "[unsupported message]" }},
		{"a new member", member(`"new_chat_members": [{"id": 9}]`), nil},
		{"a pinned message", member(`"pinned_message": {"message_id": 3}`), nil},
		{"nothing", member(`"via_bot": {"id": 1}`), nil},
		{"an edit of a position", strings.Replace(member(`"edit_date": 3, "location": {"latitude": 1}`), `"message"`,
			`"edited_message"`, 1), nil},
		{"a post of a channel", `{"update_id": 5, "channel_post": {"message_id": 11, "date": 1700000000, "sender_chat": {"id": -5, "title": "News"}, "chat": {"id": -5, "type": "channel", "title": "News"}, "text": "rain"}}`,
			func(in *chela.Inbound) {
				in.Address, in.Sender, in.Group, in.Text = to(chela.Room, -5, ""),
					chela.Sender{ID: "-5", Name: "News"}, "News", "rain"
			}},
		{"a private message", `{"update_id": 5, "message": {"message_id": 11, "date": 1700000000, "from": {"id": 7, "username": "ann"}, "chat": {"id": 7, "type": "private"}, "text": "hi"}}`,
			func(in *chela.Inbound) {
				in.Address, in.Sender, in.Group, in.Text = to(chela.Direct, 7, ""), chela.Sender{ID: "7", Name: "ann"}, "", "hi"
			}},
		{"TG-06 a topic", `{"update_id": 5, "message": {"message_id": 11, "date": 1700000000, "from": {"id": 7, "username": "ann"}, "chat": {"id": -9, "type": "supergroup", "title": "F", "is_forum": true}, "text": "hi",
			"message_thread_id": 42, "is_topic_message": true, "reply_to_message": {"message_id": 42, "from": {"id": 424242}, "chat": {"id": -9}, "forum_topic_created": {"name": "x"}}}}`,
			func(in *chela.Inbound) {
				in.Address, in.Sender, in.Group, in.Text = to(chela.Group, -9, "42"), chela.Sender{ID: "7", Name: "ann"}, "F", "hi"
			}},
		{"TG-06 the general topic", `{"update_id": 5, "message": {"message_id": 11, "date": 1700000000, "from": {"id": 7, "username": "ann"}, "chat": {"id": -9, "type": "supergroup", "title": "F", "is_forum": true}, "text": "hi"}}`,
			func(in *chela.Inbound) {
				in.Address, in.Sender, in.Group, in.Text = to(chela.Group, -9, "1"), chela.Sender{ID: "7", Name: "ann"}, "F", "hi"
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := parseUpdate([]byte(c.update))
			if u.ID != 5 || u.Message == nil && u.EditedMessage == nil && u.ChannelPost == nil {
				t.Fatalf("not parsed: %s", c.update)
			}
			got, ok := known().inbound([]*update{u})
			if ok != (c.want != nil) {
				t.Fatalf("passed on: %v: %+v", ok, got)
			}
			if !ok {
				return
			}
			want := chela.Inbound{ID: "11", Address: to(chela.Group, group, ""), Sender: chela.Sender{ID: "7", Name: "Ann Lee"},
				Group: "The chat"}
			c.want(&want)
			if got.Time.Unix() != 1700000000 {
				t.Errorf("time %s", got.Time)
			}
			got.Time = want.Time
			if g, w := asJSON(t, got), asJSON(t, want); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
		})
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte(member(`"text": "@chela_bot, hi", "entities": [{"type": "mention", "offset": 0, "length": 10}, {"type": "text_link", "offset": 3, "length": 2, "url": "x"}]`)))
	f.Add([]byte(
		member(`"caption": "😀", "photo": [{"file_id": "s"}], "reply_to_message": {"message_id": 1, "reply_to_message": {}}`)))
	f.Add([]byte(`{"update_id": 1, "callback_query": {"id": "1", "from": {"id": 1}, "data": "x", "message": {"message_id": 1, "chat": {"id": 1}}}}`))
	f.Add([]byte(
		`{"update_id": 1, "edited_channel_post": {"message_id": 1, "chat": {"id": 1, "type": "channel"}, "text": "\ud800"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		u := parseUpdate(raw)
		_ = u.album()
		in, ok := known().inbound([]*update{u, u})
		if !ok {
			return
		}
		if in.ID == "" || in.Sender.ID == "" || in.Address.Peer.ID == "" || in.Address.Peer.Kind == "" ||
			in.Text == "" && len(in.Media) == 0 {
			t.Errorf("incomplete: %+v", in)
		}
		if !utf8.ValidString(in.Text) {
			t.Errorf("text %q", in.Text)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"ok":true,"result":{"message_id":1}}`))
	f.Add(429, []byte(
		`{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":1e300}}`))
	f.Add(502, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		var m sentMessage
		if err := read("sendMessage", answerOf(status, body), &m); err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			if wait := retryOf(err); wait < 0 || wait.Hours() > 24*31 {
				t.Errorf("wait %s", wait)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("accepted %q", body)
		}
	})
}

func FuzzVisible(f *testing.F) {
	f.Add("a <b>b</b> &amp; 😀")
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "")
		if n := visible(s); n < 0 || n > size(s) {
			t.Errorf("%q: %d of %d", s, n, size(s))
		}
		if got := visible(render(s)); got > size(s)*2+8 {
			t.Errorf("%q: %d", s, got)
		}
		_ = fmt.Sprint(captioned(s))
	})
}
