package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

// harness returns the rig as the suite of channels uses it.
func (r *rig) harness() channeltest.Harness {
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			r.t.Error(err)
		}
		return n
	}
	return channeltest.Harness{
		Channel: r.bot, Address: to(chela.Direct, ann, ""), Other: to(chela.Group, group, ""), Once: true,
		Shown: func(a chela.Address) []string { return r.srv.Texts(number(a.Peer.ID)) },
		Say: func(ctx context.Context, in chela.Inbound) error {
			r.srv.Say(number(in.Address.Peer.ID), telegramtest.Person(number(in.Sender.ID), in.Sender.Name), in.Text, nil)
			return r.srv.Confirmed(ctx)
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness { return newRig(t, "").harness() })
}

func TestSocket(t *testing.T) {
	t.Parallel()
	r := newRig(t, "")
	r.root, r.hc = r.srv.Listen()
	r.bot = r.open("")
	stop := r.run()
	r.srv.Say(ann, telegramtest.Person(ann, "Ann"), "over a socket", nil)
	if in := r.one(); in.Text != "over a socket" {
		t.Errorf("got %+v", in)
	}
	if _, err := r.bot.Send(t.Context(), text(to(chela.Direct, ann, ""), "heard")); err != nil {
		t.Error(err)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("9:fromTheFile_1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := channel.Env{
		HTTP: &http.Client{Timeout: 1}, Trusted: func(hosts ...string) *http.Client {
			if len(hosts) != 1 || hosts[0] != "bots.example:8081" {
				t.Errorf("trusted hosts: %q", hosts)
			}
			return &http.Client{Timeout: 2}
		},
		Getenv: func(name string) string {
			return map[string]string{"TELEGRAM_BOT_TOKEN": "8:fromTheEnvironment", "MINE": "10:mine"}[name]
		},
	}
	for _, c := range []struct{ account, conf, token, root, err string }{
		{"default", `{}`, "8:fromTheEnvironment", "https://api.telegram.org", ""},
		{"work", `{}`, "", "", "chela config set channels.telegram.accounts.work.botToken TOKEN"},
		{"work", `{"botToken": "7:plain"}`, "7:plain", "https://api.telegram.org", ""},
		{"default", `{"botToken": "env:MINE"}`, "10:mine", "https://api.telegram.org", ""},
		{"default", `{"botToken": "7:plain", "tokenFile": "` + file + `"}`, "9:fromTheFile_1",
			"https://api.telegram.org", ""},
		{"default", `{"tokenFile": "` + filepath.Join(dir, "none") + `"}`, "", "", "channels.telegram.tokenFile"},
		{"default", `{"botToken": "hunter2"}`, "", "", "channels.telegram.botToken: this is not the token of a bot"},
		{"default", `{"botToken": "7:a/../b"}`, "", "", "not the token"},
		{"default", `{"botToken": "7:plain", "apiRoot": "http://bots.example:8081/api/"}`, "7:plain",
			"http://bots.example:8081/api", ""},
		{"default", `{"botToken": "7:plain", "apiRoot": "bots.example"}`, "", "", "channels.telegram.apiRoot: want a URL"},
		{"default", `{"botToken": "7:plain", "webhookUrl": "http://a.example/"}`, "", "",
			"channels.telegram.webhookUrl: want the public https URL"},
		{"default", `{"botToken": "7:plain", "webhookUrl": "https://a.example/x"}`, "", "",
			"channels.telegram.webhookSecret: want 1 to 256"},
		{"default", `{"botToken": "7:plain", "webhookUrl": "https://a.example/x", "webhookSecret": "a b"}`, "", "",
			"channels.telegram.webhookSecret"},
		{"default", `{"botToken": "7:plain", "webhookUrl": "https://a.example/x", "webhookSecret": "ab", "webhookPath": "x"}`,
			"", "", "channels.telegram.webhookPath"},
		{"default", `[]`, "", "", "channels.telegram"},
	} {
		ch, err := Factory().New(env, c.account, json.RawMessage(c.conf))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v, want %q", c.conf, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.conf, err)
			continue
		}
		b := ch.(*bot)
		if trusted := b.api.client.Timeout == 2; trusted != strings.Contains(c.conf, "apiRoot") {
			t.Errorf("%s: trusted: %v", c.conf, trusted)
		}
		if b.api.token.Reveal() != c.token || b.api.root != c.root || b.Path() != "" {
			t.Errorf("%s: token %q, root %q, path %q", c.conf, b.api.token.Reveal(), b.api.root, b.Path())
		}
	}
	for conf, want := range map[string]string{
		`{"botToken": "77:x"}`:                   "77",
		`{"botToken": "env:X"}`:                  "",
		`{}`:                                     "",
		`[]`:                                     "",
		`{"botToken": "7:x", "tokenFile": "/x"}`: "",
		`{"botToken": "x"}`:                      "",
	} {
		if got := Factory().Identity(json.RawMessage(conf)); got != want {
			t.Errorf("identity of %s: %q, want %q", conf, got, want)
		}
	}
	for account, want := range map[string]string{
		"default": "/telegram-webhook",
		"my work": "/telegram-webhook/my%20work",
	} {
		ch, err := Factory().New(env, account,
			json.RawMessage(`{"botToken": "7:plain", "webhookUrl": "https://a.example/x", "webhookSecret": "ab"}`))
		if err != nil || ch.(channel.Poster).Path() != want {
			t.Errorf("path of the account %s: %v, %v", account, ch, err)
		}
	}
	f := Factory()
	if f.Limits.Text != 4000 || f.Limits.Size('é') != 1 || f.Limits.Size('😀') != 2 || f.Limits.Edit != time.Second ||
		!slices.Contains(f.Aliases, "tg") {
		t.Errorf("%+v", f.Limits)
	}
}

func TestReceiving(t *testing.T) {
	t.Parallel()
	a := telegramtest.Person(ann, "Ann")
	check(t, "TG-01 a refused token ends the channel with what to do, and nothing is polled", "",
		func(t *testing.T, r *rig) {
			r.srv.Revoke()
			err := r.bot.Run(t.Context(), r.sink)
			if !permanent(err) || !strings.Contains(err.Error(), "chela config set channels.telegram.botToken") {
				t.Errorf("got %v", err)
			}
			noSecret(t, "the error", fmt.Sprint(err))
			if n := len(r.srv.Calls("getUpdates")); n != 0 {
				t.Errorf("%d polls", n)
			}
			if err := r.bot.Probe(t.Context()); !permanent(err) {
				t.Errorf("probe: %v", err)
			}
		})
	check(t, "TG-01 a token that is revoked later ends the channel", "", func(t *testing.T, r *rig) {
		done := make(chan error, 1)
		go func() { done <- r.bot.Run(t.Context(), r.sink) }()
		synctest.Wait()
		r.srv.Revoke()
		if err := <-done; !permanent(err) {
			t.Errorf("got %v", err)
		}
	})
	check(t, "TG-02 a message that was not accepted comes again after a restart, and an accepted one does not", "",
		func(t *testing.T, r *rig) {
			stop := r.run()
			r.srv.Say(ann, a, "one", nil)
			if in := r.one(); in.Text != "one" {
				t.Fatalf("got %+v", in)
			}
			r.mu.Lock()
			for range 100 {
				r.refuse = append(r.refuse, chela.ErrFull)
			}
			r.mu.Unlock()
			r.srv.Say(ann, a, "two", nil)
			r.srv.Say(ann, a, "three", nil)
			time.Sleep(40 * time.Second)
			if err := stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("Run ended with %v", err)
			}
			r.mu.Lock()
			tries := len(r.tries)
			for _, id := range r.tries[1:] {
				if id != r.tries[1] {
					t.Errorf("message %s was tried before %s was accepted", id, r.tries[1])
				}
			}
			r.refuse = nil
			r.mu.Unlock()
			if tries != 7 || r.srv.Waiting() != 2 { // after 0, 1, 3, 7, 15 and 31 s
				t.Errorf("%d tries, %d waiting, want 7 and 2", tries, r.srv.Waiting())
			}
			r.bot = r.open("")
			r.run()
			got := r.received()
			if len(got) != 2 || got[0].Text != "two" || got[1].Text != "three" {
				t.Errorf("got %+v", got)
			}
		})
	check(t, "a message that is refused for good is passed over", "", func(t *testing.T, r *rig) {
		r.run()
		r.refuse = []error{chela.Errorf(chela.CodeForbidden, "may not"), chela.Errorf(chela.CodeInvalid, "too long")}
		for _, s := range []string{"one", "two", "three"} {
			r.srv.Say(ann, a, s, nil)
		}
		began := time.Now()
		if in := r.one(); in.Text != "three" || time.Since(began) > 0 {
			t.Errorf("got %+v after %s", in, time.Since(began))
		}
	})
	check(t, "TG-03 a conflict with another poller is a warning with pauses", "", func(t *testing.T, r *rig) {
		conflict := telegramtest.Fault{Status: 409,
			Description: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}
		r.srv.Fail("getUpdates", conflict, conflict, conflict)
		r.run()
		began := time.Now()
		r.srv.Say(ann, a, "hello", nil)
		if in := r.one(); in.Text != "hello" {
			t.Errorf("got %+v", in)
		}
		if d := time.Since(began); d < 8*time.Second || d > 15*time.Second {
			t.Errorf("after %s", d)
		}
		if s := r.log.String(); !strings.Contains(s, "level=WARN") ||
			!strings.Contains(s, "another program receives the messages of this bot") {
			t.Error(s)
		}
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.reports) != 4 || r.reports[2] == nil || r.reports[3] != nil {
			t.Errorf("reports: %v", r.reports)
		}
	})
	check(t, "two pollers take turns without losing a message", "", func(t *testing.T, r *rig) {
		r.run()
		synctest.Wait()
		r.bot = r.open("")
		r.run()
		for i := range 20 {
			r.srv.Say(ann, a, fmt.Sprint(i), nil)
			time.Sleep(3 * time.Second)
		}
		seen := map[string]bool{}
		for _, in := range r.received() {
			seen[in.Text] = true
		}
		if len(seen) != 20 {
			t.Errorf("%d messages, want 20", len(seen))
		}
	})
	check(t, "a webhook is deleted before polling, with its updates kept", "", func(t *testing.T, r *rig) {
		r.srv.SetWebhook("https://old.example/")
		r.srv.Say(ann, a, "kept", nil)
		r.run()
		if in := r.one(); in.Text != "kept" {
			t.Errorf("got %+v", in)
		}
		if c := r.srv.Calls("deleteWebhook"); len(c) != 1 || c[0].Params["drop_pending_updates"] != false {
			t.Errorf("%+v", c)
		}
		c := r.srv.Calls("getUpdates")[0].Params
		if fmt.Sprint(c["allowed_updates"]) !=
			"[message edited_message channel_post edited_channel_post callback_query message_reaction]" ||
			fmt.Sprint(c["timeout"]) != "30" {
			t.Errorf("%v", c)
		}
	})
	check(t, "duplicates, wrong order and gaps are passed on as they come", "", func(t *testing.T, r *rig) {
		one, two := r.srv.Said(ann, a, "one", nil), r.srv.Said(ann, a, "two", nil)
		r.srv.PushID(5000, object{"message": two})
		r.srv.PushID(4000, object{"message": one})
		r.srv.PushID(5000, object{"message": two})
		r.run()
		var ids []string
		for _, in := range r.received() {
			ids = append(ids, in.Text+in.ID)
		}
		if want := fmt.Sprint("two", two["message_id"]); len(ids) != 2 || ids[0] != want ||
			ids[1] != fmt.Sprint("one", one["message_id"]) {
			t.Errorf("got %q", ids)
		}
		r.srv.PushID(5000, object{"message": two}) // after it was confirmed: the store knows it by its id
		if in := r.one(); in.ID != fmt.Sprint(two["message_id"]) {
			t.Errorf("got %+v", in)
		}
		r.srv.PushID(17, object{"message": r.srv.Said(ann, a, "low", nil)}) // ids begin anew after a week
		if in := r.one(); in.Text != "low" {
			t.Errorf("got %+v", in)
		}
	})
	check(t, "an edit before its original, and repeated edits", "", func(t *testing.T, r *rig) {
		m := r.srv.Said(ann, a, "first", nil)
		edited := func(text string) object {
			own := object{"edit_date": 1_800_000_000}
			for k, v := range m {
				own[k] = v
			}
			own["text"] = text
			return object{"edited_message": own}
		}
		r.srv.Push(edited("second"))
		r.srv.Push(object{"message": m})
		r.srv.Push(edited("second"))
		r.srv.Push(edited("third")) // in the same second
		r.run()
		got := r.received()
		if len(got) != 4 || !got[0].Edited || got[1].Edited || got[0].ID != got[2].ID || got[0].ID == got[3].ID ||
			got[0].ID == got[1].ID ||
			!strings.HasPrefix(got[0].ID, got[1].ID+":edit:1800000000:") || got[3].Text != "third" {
			t.Errorf("got %+v", got)
		}
	})
	check(t, "updates of unknown kinds and malformed ones do not stop the others", "", func(t *testing.T, r *rig) {
		r.srv.Push(object{"message": "a text"})
		r.srv.Push(object{"message": object{"message_id": "x", "chat": []int{1}}})
		r.srv.Push(object{"message": object{}})
		r.srv.Push(object{"poll_answer": object{}}) // Telegram leaves it out, because it is not allowed
		r.srv.Push(object{"callback_query": object{"id": "9", "from": a}})
		r.srv.Push(object{"message": r.srv.Said(ann, nil, "nobody", nil)})
		r.srv.Push(object{"message": r.srv.Said(ann, object{"id": telegramtest.BotID, "is_bot": true}, "my own", nil)})
		r.srv.Say(ann, a, "hello", nil)
		r.run()
		if in := r.one(); in.Text != "hello" {
			t.Errorf("got %+v", in)
		}
		r.srv.Push(object{"message": "the last one"})
		if got := r.received(); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
		if got := r.srv.Answered(); len(got) != 1 {
			t.Errorf("answered %q", got)
		}
	})
	check(t, "faults of the connection while polling", "", func(t *testing.T, r *rig) {
		r.srv.Fail("getMe", telegramtest.Fault{Status: 500})
		r.srv.Fail("deleteWebhook", telegramtest.Fault{Cut: true})
		r.srv.Fail("getUpdates", telegramtest.Fault{Status: 502, Body: "<html>Bad Gateway</html>"},
			telegramtest.Fault{Cut: true},
			telegramtest.Fault{Status: 200, Body: "welcome to the hotel"},
			telegramtest.Fault{Status: 200, Body: `{"ok": true, "result": [{}]}`},
			telegramtest.Fault{Status: 429, RetryAfter: 77}, telegramtest.Fault{Status: 400}, telegramtest.Fault{Status: 302},
			telegramtest.Fault{Hang: true})
		r.run()
		began := time.Now()
		r.srv.Say(ann, a, "hello", nil)
		if in := r.one(); in.Text != "hello" {
			t.Errorf("got %+v", in)
		}
		if d := time.Since(began); d < 77*time.Second || d > 6*time.Minute {
			t.Errorf("after %s", d)
		}
		noSecret(t, "the log", r.log.String())
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, err := range r.reports {
			noSecret(t, "a report", fmt.Sprint(err))
		}
	})
	check(t, "the pause after a connection that worked for long is short", "", func(t *testing.T, r *rig) {
		r.srv.Fail("getUpdates", telegramtest.Fault{Cut: true}, telegramtest.Fault{Cut: true}, telegramtest.Fault{Cut: true})
		r.run()
		time.Sleep(5 * time.Minute)
		r.srv.Fail("getUpdates", telegramtest.Fault{Cut: true})
		r.srv.Say(ann, a, "one", nil)
		r.one()
		began := time.Now()
		r.srv.Say(ann, a, "two", nil)
		r.one()
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("after %s", d)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := len(r.reports); n > 6 {
			t.Errorf("%d reports", n)
		}
	})
	check(t, "an answer that does not come is given up, and the connection is made again", "", func(t *testing.T, r *rig) {
		r.srv.Fail("getUpdates", telegramtest.Fault{Hang: true})
		r.run()
		began := time.Now()
		r.srv.Say(ann, a, "hello", nil)
		r.one()
		if d := time.Since(began); d < 45*time.Second || d > 50*time.Second {
			t.Errorf("after %s, want 45 s and a pause", d)
		}
	})
	check(t, "the messages of an album are one message", "", func(t *testing.T, r *rig) {
		photo := func(n int, caption string) object {
			return r.srv.Said(ann, a, "", object{"media_group_id": "g", "caption": caption,
				"photo": []object{{"file_id": fmt.Sprint("p", n), "file_size": n}}})
		}
		r.run()
		synctest.Wait()
		first := photo(1, "my trip")
		r.srv.Push(object{"message": first})
		r.srv.Push(object{"message": photo(2, "")})
		time.Sleep(700 * time.Millisecond) // the last one comes late, after another message
		r.srv.Say(ann, a, "between", nil)
		r.srv.Push(object{"message": photo(3, "")})
		got := r.received()
		if len(got) != 2 || got[0].ID != fmt.Sprint(first["message_id"]) || got[0].Text != "my trip" ||
			len(got[0].Media) != 3 || got[1].Text != "between" {
			t.Errorf("got %+v", got)
		}
		for i := range 10 {
			r.srv.Push(object{"message": r.srv.Said(ann, a, "",
				object{"media_group_id": "h", "photo": []object{{"file_id": fmt.Sprint("q", i)}}})})
		}
		began := time.Now()
		// If a poll ends between the pushes, the rest of the album is awaited once.
		if in := r.one(); len(in.Media) != 10 || time.Since(began) > albumTime {
			t.Errorf("%d pictures after %s", len(in.Media), time.Since(began))
		}
	})
	check(t, "TG-08 the press of a button is a message, and is answered", "", func(t *testing.T, r *rig) {
		r.run()
		m := r.srv.Said(forum, object{"id": telegramtest.BotID, "is_bot": true}, "sure?",
			object{"message_thread_id": topic, "is_topic_message": true})
		r.srv.Push(object{"callback_query": object{"id": "c1", "from": a, "message": m, "data": "yes"}})
		r.srv.Push(object{"callback_query": object{"id": "c2", "from": a, "message": m, "data": "/status now"}})
		got := r.received()
		if len(got) != 2 || got[0].Text != "callback_data: yes" || got[1].Text != "/status now" {
			t.Fatalf("got %+v", got)
		}
		in := got[0]
		if in.ID == got[1].ID || in.Sender.ID != "7" || in.Address != to(chela.Group, forum, "42") || !in.Mentioned ||
			in.ReplyTo != fmt.Sprint(m["message_id"]) || in.Group != "The chat" {
			t.Errorf("got %+v", in)
		}
		if got := r.srv.Answered(); strings.Join(got, " ") != "c1 c2" {
			t.Errorf("answered %q", got)
		}
	})
	check(t, "TG-12 a reaction", "", func(t *testing.T, r *rig) {
		r.run()
		like := func(emoji string) []object { return []object{{"type": "emoji", "emoji": emoji}} }
		r.srv.Push(object{"message_reaction": object{"chat": object{"id": ann, "type": "private"}, "message_id": 5, "user": a,
			"date": 100, "old_reaction": like("👎"), "new_reaction": append(like("👎"), like("👍")...)}})
		r.srv.Push(object{"message_reaction": object{"chat": object{"id": ann, "type": "private"}, "message_id": 5, "user": a,
			"date": 101, "old_reaction": like("👍"), "new_reaction": []object{}}})
		r.srv.Push(object{"message_reaction": object{"chat": object{"id": forum, "type": "supergroup"}, "message_id": 6,
			"actor_chat": object{"id": forum}, "date": 101, "old_reaction": []object{}, "new_reaction": like("👍")}})
		in := r.one()
		if in.Reaction != "👍" || in.ReplyTo != "5" || in.Sender.ID != "7" || in.Text != "" ||
			in.Address != to(chela.Direct, ann, "") || !in.Time.Equal(time.Unix(100, 0)) {
			t.Errorf("got %+v", in)
		}
	})
	check(t, "TG-07 a group becomes a supergroup", "", func(t *testing.T, r *rig) {
		r.run()
		r.srv.Push(object{"message": object{"message_id": 9, "date": 1, "chat": object{"id": -77, "type": "group"}, "from": a,
			"migrate_to_chat_id": -10077}})
		r.srv.Push(object{"message": object{"message_id": 1, "date": 1, "chat": object{"id": -10077, "type": "supergroup"},
			"from": a, "migrate_from_chat_id": -77}})
		if got := r.received(); len(got) != 0 || !slices.Equal(r.moved, []string{"-77 -10077"}) {
			t.Errorf("moved %q, messages %+v", r.moved, got)
		}
	})
	check(t, "a press that cannot be answered is accepted all the same", "", func(t *testing.T, r *rig) {
		r.srv.Fail("answerCallbackQuery", telegramtest.Fault{Status: 400, Description: "Bad Request: query is too old"})
		r.run()
		m := r.srv.Said(ann, object{"id": telegramtest.BotID}, "sure?", nil)
		r.srv.Push(object{"callback_query": object{"id": "c1", "from": a, "message": m, "data": "no"}})
		if in := r.one(); in.Text != "callback_data: no" || in.Group != "" {
			t.Errorf("got %+v", in)
		}
	})
}

const hooked = `{"botToken": "` + telegramtest.Token +
	`", "apiRoot": "ROOT", "webhookUrl": "https://home.example/hook", "webhookSecret": "s3cret_token"}`

func TestWebhook(t *testing.T) {
	t.Parallel()
	a := telegramtest.Person(ann, "Ann")
	check(t, "TG-11 a post needs the secret, and is answered after it was accepted", hooked, func(t *testing.T, r *rig) {
		if r.bot.Path() != "/telegram-webhook" {
			t.Errorf("path %q", r.bot.Path())
		}
		said := func(s string) object { return object{"message": r.srv.Said(ann, a, s, nil)} }
		// the webhook is not set yet
		if w := r.srv.Post(r.bot, "/telegram-webhook", said("early")); w.Code != http.StatusUnauthorized {
			t.Errorf("without the secret: %d", w.Code)
		}
		stop := r.run()
		synctest.Wait()
		if url, s := r.srv.Webhook(); url != "https://home.example/hook" || s != "s3cret_token" {
			t.Fatalf("webhook %q, %q", url, s)
		}
		if c := r.srv.Calls("setWebhook"); fmt.Sprint(c[0].Params["allowed_updates"]) !=
			"[message edited_message channel_post edited_channel_post callback_query message_reaction]" {
			t.Errorf("%v", c[0].Params)
		}
		for _, wrong := range []string{"", "s3cret_tokem", "s3cret_token "} {
			body := &watched{Reader: strings.NewReader(`{"update_id": 1}`)}
			req := httptest.NewRequest(http.MethodPost, "/telegram-webhook", body)
			req.Header.Set("X-Telegram-Bot-Api-Secret-Token", wrong)
			w := httptest.NewRecorder()
			r.bot.ServeHTTP(w, req)
			if w.Code != http.StatusUnauthorized || body.read {
				t.Errorf("secret %q: %d, body read: %v", wrong, w.Code, body.read)
			}
		}
		r.refuse = []error{chela.ErrFull}
		m := said("hello")
		if w := r.srv.Post(r.bot, "/telegram-webhook", m); w.Code != http.StatusServiceUnavailable || len(r.got) != 0 {
			t.Errorf("not accepted: %d", w.Code)
		}
		if w := r.srv.Post(r.bot, "/telegram-webhook", m); w.Code != http.StatusOK || len(r.got) != 1 ||
			r.got[0].Text != "hello" {
			t.Errorf("accepted: %d, %+v", w.Code, r.got)
		}
		r.refuse = []error{chela.Errorf(chela.CodeForbidden, "may not")}
		if w := r.srv.Post(r.bot, "/telegram-webhook", said("stranger")); w.Code != http.StatusOK {
			t.Errorf("refused for good: %d", w.Code)
		}
		press := object{"callback_query": object{"id": "c1", "from": a, "message": m["message"], "data": "yes"}}
		if w := r.srv.Post(r.bot, "/telegram-webhook", press); w.Code != http.StatusOK || len(r.srv.Answered()) != 1 {
			t.Errorf("press: %d, %q", w.Code, r.srv.Answered())
		}
		if n := len(r.srv.Calls("getUpdates")); n != 0 {
			t.Errorf("%d polls", n)
		}
		_ = stop()
		if w := r.srv.Post(r.bot, "/telegram-webhook", said("late")); w.Code != http.StatusServiceUnavailable {
			t.Errorf("after the end: %d", w.Code)
		}
		if url, _ := r.srv.Webhook(); url == "" {
			t.Error("the webhook was deleted, so that messages would be lost")
		}
	})
	check(t, "posts that are none of Telegram's", hooked, func(t *testing.T, r *rig) {
		r.run()
		synctest.Wait()
		for _, c := range []struct {
			method, body string
			code         int
		}{
			{"GET", "", http.StatusMethodNotAllowed},
			{"POST", "{", http.StatusOK}, // would be repeated for a day otherwise
			{"POST", `"` + strings.Repeat("x", maxPost) + `"`, http.StatusRequestEntityTooLarge},
		} {
			req := httptest.NewRequest(c.method, "/telegram-webhook", strings.NewReader(c.body))
			req.Header.Set("X-Telegram-Bot-Api-Secret-Token", "s3cret_token")
			w := httptest.NewRecorder()
			if r.bot.ServeHTTP(w, req); w.Code != c.code {
				t.Errorf("%s %.10s: %d, want %d", c.method, c.body, w.Code, c.code)
			}
		}
	})
	check(t, "a webhook that another program changed is set again", hooked, func(t *testing.T, r *rig) {
		r.run()
		synctest.Wait()
		r.srv.SetWebhook("https://other.example/")
		time.Sleep(checkTime + 5*time.Second)
		if url, _ := r.srv.Webhook(); url != "https://home.example/hook" {
			t.Errorf("webhook %q", url)
		}
	})
	t.Run("an account that polls receives no posts", func(t *testing.T) {
		r := newRig(t, "")
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		w := httptest.NewRecorder()
		if r.bot.ServeHTTP(w, req); w.Code != http.StatusNotFound {
			t.Errorf("%d", w.Code)
		}
	})
	if secret.New("").Equal(secret.New("")) {
		t.Error("an empty secret is accepted")
	}
}

// watched is a body that tells whether it was read.
type watched struct {
	io.Reader
	read bool
}

func (w *watched) Read(p []byte) (int, error) { w.read = true; return w.Reader.Read(p) }
