package discord_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/discord/discordtest"
)

func TestSend(t *testing.T) {
	with(t, "DC-03 a long text becomes several messages", func(t *testing.T, f *fixture) {
		text := strings.Repeat("a sentence of 😀 words. ", 110)
		r := f.send(channel.Part{Key: "1", Address: public, Text: text})
		shown := f.Shown(room)
		if len(shown) != 2 || shown[0].ID != r.ID || shown[0].Text+shown[1].Text != text {
			t.Errorf("%d messages", len(shown))
		}
		for _, m := range shown {
			if utf8.RuneCountInString(m.Text) > 2000 {
				t.Errorf("a message of %d characters", utf8.RuneCountInString(m.Text))
			}
		}
		if again := f.send(channel.Part{Key: "1", Address: public, Text: text}); again.ID != r.ID || len(f.Shown(room)) != 2 {
			t.Errorf("a repeated send made other messages")
		}
		time.Sleep(time.Hour) // Discord has forgotten the nonces
		if again := f.send(channel.Part{Key: "1", Address: public, Text: text}); again.ID != r.ID || len(f.Shown(room)) != 2 {
			t.Errorf("a late repeated send made other messages")
		}
	})
	with(t, "an interrupted send continues with the message that is missing", func(t *testing.T, f *fixture) {
		p := channel.Part{Key: "1", Address: public, Text: strings.Repeat("word ", 600) + "end"}
		for _, fault := range []discordtest.Fault{
			{Method: "POST", Path: "/messages", Status: 503, Accept: true},
			{Method: "POST", Path: "/messages", Status: 500, Body: "end"},
		} {
			f.Fail(fault)
			if _, err := f.ch.Send(t.Context(), p); err == nil {
				t.Fatal("the send did not fail")
			}
		}
		r := f.send(p)
		shown := f.Shown(room)
		if len(shown) != 2 || shown[0].ID != r.ID || !strings.HasSuffix(shown[1].Text, "end") {
			t.Errorf("%d messages", len(shown))
		}
		if n := len(f.Requests("POST", "/messages")); n != 4 {
			t.Errorf("%d requests, want 4: the first message twice, the second twice", n)
		}
	})
	with(t, "a request that was accepted and cut is repeated with its nonce", func(t *testing.T, f *fixture) {
		f.Fail(discordtest.Fault{Method: "POST", Path: "/messages", Cut: true, Accept: true})
		r := f.send(channel.Part{Key: "1", Address: public, Text: "one"})
		if shown := f.Shown(room); len(shown) != 1 || shown[0].ID != r.ID {
			t.Errorf("shown: %+v", shown)
		}
		f.ch = f.account(discordtest.Token) // a new process knows nothing
		if again := f.send(channel.Part{Key: "1", Address: public, Text: "one"}); again.ID != r.ID ||
			len(f.Shown(room)) != 1 {
			t.Errorf("a new process made another message")
		}
	})
	with(t, "a request that is cut each time stays ambiguous", func(t *testing.T, f *fixture) {
		cut := discordtest.Fault{Method: "POST", Path: "/messages", Cut: true}
		f.Fail(cut, cut, cut)
		_, err := f.ch.Send(t.Context(), channel.Part{Key: "1", Address: public, Text: "one"})
		if !errors.Is(err, channel.ErrAmbiguous) || strings.Contains(err.Error(), "discord.invalid") {
			t.Errorf("got %v", err)
		}
	})
	with(t, "DC-06 limits", func(t *testing.T, f *fixture) {
		p := channel.Part{Key: "1", Address: public, Text: "one"}
		f.Fail(discordtest.Fault{Method: "POST", Path: "/messages", Status: 429, RetryAfter: 7.5})
		_, err := f.ch.Send(t.Context(), p)
		e, ok := errors.AsType[*channel.Error](err)
		if !ok || e.Permanent || e.RetryAfter != 7500*time.Millisecond {
			t.Fatalf("got %v", err)
		}
		if _, err := f.ch.Send(t.Context(), p); err == nil || len(f.Requests("POST", "/messages")) != 1 {
			t.Errorf("a request was sent before its time: %v", err)
		}
		if _, err := f.ch.Send(t.Context(), channel.Part{Key: "2", Address: direct, Text: "two"}); err != nil {
			t.Errorf("the limit of a channel holds for another one: %v", err)
		}
		began := time.Now()
		time.Sleep(e.RetryAfter - time.Second)
		f.send(p) // waits for the rest
		if d := time.Since(began); d < e.RetryAfter || d > e.RetryAfter+time.Second {
			t.Errorf("sent after %v", d)
		}
		f.Fail(discordtest.Fault{Method: "POST", Path: "/messages", Status: 429, RetryAfter: 60, Global: true})
		p.Key = "3"
		_, _ = f.ch.Send(t.Context(), p)
		_, err = f.ch.Send(t.Context(), channel.Part{Key: "4", Address: direct, Text: "four"})
		if e, ok := errors.AsType[*channel.Error](err); !ok || e.RetryAfter < 59*time.Second {
			t.Errorf("the global limit: %v", err)
		}
	})
	with(t, "refusals", func(t *testing.T, f *fixture) {
		for name, p := range map[string]channel.Part{
			"empty":          {Address: public},
			"no such person": {Address: chela.Address{Peer: chela.Peer{Kind: chela.Direct, ID: "12345"}}, Text: "x"},
			"no id":          {Address: chela.Address{Peer: chela.Peer{Kind: chela.Room, ID: "../users"}}, Text: "x"},
			"forum":          {Address: chela.Address{Peer: chela.Peer{Kind: chela.Room, ID: forum}}, Text: "x"},
		} {
			_, err := f.ch.Send(t.Context(), p)
			if e, ok := errors.AsType[*channel.Error](err); !ok || !e.Permanent {
				t.Errorf("%s: %v, want a permanent error", name, err)
			}
		}
		f.RemoveChannel(room)
		if _, err := f.ch.Send(t.Context(), channel.Part{Address: public, Text: "x"}); !errors.Is(err, channel.ErrGone) {
			t.Errorf("a removed channel: %v", err)
		}
		f.Fail(discordtest.Fault{Method: "POST", Path: "/messages", Status: 403},
			discordtest.Fault{Method: "POST", Path: "/messages", Status: 500})
		_, err := f.ch.Send(t.Context(), channel.Part{Address: direct, Text: "x"})
		if e, ok := errors.AsType[*channel.Error](err); !ok || !e.Permanent {
			t.Errorf("403: %v", err)
		}
		_, err = f.ch.Send(t.Context(), channel.Part{Address: direct, Text: "x"})
		if e, ok := errors.AsType[*channel.Error](err); !ok || e.Permanent {
			t.Errorf("500: %v", err)
		}
	})
	with(t, "files", func(t *testing.T, f *fixture) {
		p := channel.Part{Key: "1", Address: public, Text: "look", ReplyTo: "5"}
		for i := range 12 {
			p.Media = append(p.Media,
				chela.Media{Name: fmt.Sprintf("../é\"%d.txt", i), Type: "text/plain", Data: []byte{byte('a' + i)}})
		}
		r := f.send(p)
		shown := f.Shown(room)
		if len(shown) != 2 || shown[0].ID != r.ID || shown[0].Text != "look" || len(shown[0].Attachments) != 10 ||
			len(shown[1].Attachments) != 2 {
			t.Fatalf("shown: %+v", shown)
		}
		if name := shown[1].Attachments[0].Name; name != "é\"10.txt" {
			t.Errorf("name %q", name)
		}
		m, err := f.ch.(channel.Fetcher).Fetch(t.Context(), chela.Media{Source: shown[0].Attachments[1].URL}, 10)
		if err != nil && string(m.Data) != "b" {
			t.Errorf("content %q, %v", m.Data, err)
		}
	})
	with(t, "the channel of direct messages is asked for once", func(t *testing.T, f *fixture) {
		for i := range 3 {
			f.send(channel.Part{Key: fmt.Sprint(i), Address: direct, Text: "x"})
		}
		if n := len(f.Requests("POST", "/users/@me/channels")); n != 1 || len(f.Shown(f.DM(ann))) != 3 {
			t.Errorf("asked %d times", n)
		}
	})
	with(t, "nobody but people is notified", func(t *testing.T, f *fixture) {
		f.send(channel.Part{Key: "1", Address: public, Text: "@everyone <@7>"})
		body := f.Requests("POST", "/messages")[0].Body
		if !strings.Contains(body, `"allowed_mentions":{"parse":["users"]}`) {
			t.Errorf("body: %s", body)
		}
	})
}

func TestInteractions(t *testing.T) {
	with(t, "DC-07 buttons are pressed once", func(t *testing.T, f *fixture) {
		var row []channel.Button
		for i := range 7 {
			row = append(row, channel.Button{Label: fmt.Sprint("B", i), Data: "same", Style: channel.Danger})
		}
		f.send(channel.Part{Key: "1", Address: public, Text: "choose", Buttons: [][]channel.Button{
			{{Label: "Yes", Data: "/approve 1", Style: channel.Primary}, {Label: "No", Data: "no"}}, row,
			{{Label: "Site", URL: "https://example.org"}, {Label: "Bad", URL: "javascript:x"}, {Label: "Nothing"}},
		}})
		m := f.Shown(room)[0]
		if len(m.Components) != 4 {
			t.Fatalf("rows: %s", m.Components)
		}
		id, event := f.Press(ann, m.ID, "1|/approve 1")
		synctest.Wait()
		f.Dispatch("INTERACTION_CREATE", event)
		synctest.Wait()
		f.Drop(0)
		_ = f.Connected(t.Context())
		f.Dispatch("INTERACTION_CREATE", event)
		f.Press(bob, m.ID, "2|no")
		f.Press(bob, m.ID, "foreign")
		synctest.Wait()
		f.texts("/approve 1", "callback_data: no", "callback_data: foreign")
		in := f.received()[0]
		if n := len(f.Requests("POST", "/interactions/"+id)); n != 1 {
			t.Errorf("acknowledged with %d requests", n)
		}
		if f.Acks(id) != 1 || !in.Mentioned || in.Address != public || in.Sender != (chela.Sender{ID: ann, Name: "Annie"}) ||
			in.ReplyTo != m.ID || in.Guild != guild {
			t.Errorf("%d acknowledgements, %+v", f.Acks(id), in)
		}
	})
	with(t, "an interaction is acknowledged while the sink is full", func(t *testing.T, f *fixture) {
		f.refuse = func(chela.Inbound) error { return chela.ErrFull }
		f.Send(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		id := f.Command(ann, room, "status", "")
		time.Sleep(time.Second)
		if f.Acks(id) != 1 {
			t.Error("not acknowledged")
		}
	})
	with(t, "slash commands", func(t *testing.T, f *fixture) {
		commands := []channel.Command{{Name: "Status", Doc: "shows the\nstate"}, {Name: "status"}, {Name: "a b"}, {Name: ""},
			{Name: "new", Doc: strings.Repeat("x", 200)}}
		for i := range 150 {
			commands = append(commands, channel.Command{Name: fmt.Sprint("c", i)})
		}
		if err := f.ch.(channel.Menuer).Menu(t.Context(), commands); err != nil {
			t.Fatal(err)
		}
		if menu := f.Menu(); len(menu) != 100 || !slices.Equal(menu[:3], []string{"status", "new", "c0"}) {
			t.Errorf("menu: %q", menu)
		}
		id := f.Command(ann, room, "model", "gpt 5")
		f.Command(ann, f.DM(ann), "status", "")
		synctest.Wait()
		f.texts("/model gpt 5", "/status")
		if in := f.last(); in.Address != direct || f.Acks(id) != 1 {
			t.Errorf("%d acknowledgements, address %+v", f.Acks(id), in.Address)
		}
		if n := len(f.Requests("DELETE", "/webhooks/"+discordtest.App+"/itoken-"+id+"/messages/@original")); n != 1 {
			t.Errorf("the note below the command was removed %d times", n)
		}
	})
}

func TestAbilities(t *testing.T) {
	with(t, "reactions", func(t *testing.T, f *fixture) {
		m := f.Write(discordtest.Post{Channel: room, Person: ann, Text: "x"})
		react := func(emoji string) string {
			t.Helper()
			if err := f.ch.(channel.Reactor).React(t.Context(), public, m.ID, emoji); err != nil {
				t.Error(err)
			}
			var out []string
			for _, r := range f.Shown(room)[0].Reactions {
				out = append(out, r.Emoji.Name)
			}
			return strings.Join(out, " ")
		}
		for _, c := range [][2]string{{"👀", "👀"}, {"✅", "✅"}, {"<:party:5>", "party"}, {"<a:dance:6>", "dance"},
			{"", ""}, {"👍", "👍"}} {
			if got := react(c[0]); got != c[1] {
				t.Errorf("react %q: %q, want %q", c[0], got, c[1])
			}
		}
		f.ch = f.account(discordtest.Token)
		if got := react(""); got != "" {
			t.Errorf("removed by a new process: %q", got)
		}
	})
	with(t, "messages that are gone", func(t *testing.T, f *fixture) {
		for what, err := range map[string]error{
			"edit":   f.ch.(channel.Editor).Edit(t.Context(), public, "5", "x"),
			"delete": f.ch.(channel.Deleter).Delete(t.Context(), public, "5"),
			"pin":    f.ch.(channel.Pinner).Pin(t.Context(), public, "5", true),
			"react":  f.ch.(channel.Reactor).React(t.Context(), public, "5", "👍"),
		} {
			if !errors.Is(err, channel.ErrGone) {
				t.Errorf("%s: %v, want ErrGone", what, err)
			}
		}
	})
	with(t, "pins, polls and reading", func(t *testing.T, f *fixture) {
		m := f.Write(discordtest.Post{Channel: room, Person: ann, Text: "x", Files: map[string]string{"a": "1"}})
		pin := f.ch.(channel.Pinner).Pin
		if err := pin(t.Context(), public, m.ID, true); err != nil || !f.Shown(room)[0].Pinned {
			t.Errorf("pin: %v", err)
		}
		if err := pin(t.Context(), public, m.ID, false); err != nil || f.Shown(room)[0].Pinned {
			t.Errorf("unpin: %v", err)
		}
		poll := channel.Poll{
			Key:      "p",
			Address:  public,
			Question: "Lunch?",
			Options:  []string{"soup", strings.Repeat("x", 99)},
			Open:     90 * time.Minute,
		}
		r, err := f.ch.(channel.Poller).Poll(t.Context(), poll)
		if err != nil || !strings.Contains(string(f.Shown(room)[1].Poll), `"duration":2`) {
			t.Errorf("poll: %v, %s", err, f.Shown(room)[1].Poll)
		}
		if again, err := f.ch.(channel.Poller).Poll(t.Context(), poll); err != nil || again.ID != r.ID ||
			len(f.Shown(room)) != 2 {
			t.Errorf("the same poll again: %v, %v", again, err)
		}
		poll.Options = make([]string, 11)
		if _, err := f.ch.(channel.Poller).Poll(t.Context(), poll); err == nil {
			t.Error("a poll with 11 answers was sent")
		}
		list, err := f.ch.(channel.Reader).Read(t.Context(), public, 10)
		if err != nil || len(list) != 2 || list[0].Own || list[0].Text != "x\n[attachment a]" || !list[1].Own ||
			list[0].Sender.Name != "Ann" {
			t.Errorf("read: %+v, %v", list, err)
		}
	})
	with(t, "threads", func(t *testing.T, f *fixture) {
		for _, at := range []string{room, forum} {
			a := public
			a.Peer.ID = at
			got, err := f.ch.(channel.Threader).Thread(t.Context(), a, "a plan")
			if err != nil || got.Thread == "" || got.Peer.ID != at {
				t.Fatalf("thread in %s: %+v, %v", at, got, err)
			}
			f.send(channel.Part{Key: at, Address: got, Text: "hello"})
			if shown := f.Shown(got.Thread); len(shown) != 1 {
				t.Errorf("shown: %+v", shown)
			}
		}
		if _, err := f.ch.(channel.Threader).Thread(t.Context(), direct, "x"); err == nil {
			t.Error("a thread in a direct chat")
		}
	})
	with(t, "directory and probe", func(t *testing.T, f *fixture) {
		search := func(kind chela.PeerKind, query string) (out []string) {
			t.Helper()
			list, err := f.ch.(channel.Directory).Search(t.Context(), kind, query, 10)
			if err != nil {
				t.Error(err)
			}
			for _, e := range list {
				out = append(out, string(e.Peer.Kind)+" "+e.Peer.ID+" "+e.Name+" "+e.Handle)
			}
			return out
		}
		for _, c := range []struct {
			kind  chela.PeerKind
			query string
			want  []string
		}{
			{chela.Direct, "@an", []string{"direct 7 Annie ann"}},
			{chela.Direct, "", []string{"direct 7 Annie ann"}},
			{chela.Room, "#gen", []string{"channel 101 general "}},
			{chela.Room, "", []string{"channel 101 general ", "channel 102 ideas "}},
			{"", "none", nil},
			{chela.Group, "", nil},
		} {
			if diff := cmp.Diff(c.want, search(c.kind, c.query)); diff != "" {
				t.Errorf("%s %q, -want +got:\n%s", c.kind, c.query, diff)
			}
		}
		if err := f.ch.(channel.Prober).Probe(t.Context()); err != nil {
			t.Error(err)
		}
		f.ch = f.account("wrong")
		if err := f.ch.(channel.Prober).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "chela config set") {
			t.Errorf("probe with a wrong token: %v", err)
		}
	})
	with(t, "typing and an edit that becomes too long", func(t *testing.T, f *fixture) {
		if err := f.ch.(channel.Typer).Typing(t.Context(), direct); err != nil || f.Typing(f.DM(ann)) != 1 {
			t.Errorf("typing: %v", err)
		}
		r := f.send(channel.Part{Key: "1", Address: public, Text: "one"})
		if err := f.ch.(channel.Editor).Edit(t.Context(), public, r.ID, strings.Repeat("é", 2000)); err != nil {
			t.Error(err)
		}
		if err := f.ch.(channel.Editor).Edit(t.Context(), public, r.ID, strings.Repeat("é", 2001)); err == nil {
			t.Error("a text of 2001 characters was accepted")
		}
	})
}

// TestSocket talks over a socket.
func TestSocket(t *testing.T) {
	t.Parallel()
	s, err := discordtest.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s.SetHeartbeat(100 * time.Millisecond)
	f := open(t, s)
	defer f.close()
	f.run()
	if err := f.Say(waittest.Context(t), discordtest.Post{Channel: room, Person: ann, Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	f.texts("hello")
	f.send(channel.Part{Key: "1", Address: public, Text: "hi"})
	if shown := f.Shown(room); len(shown) != 2 || shown[1].Text != "hi" {
		t.Errorf("shown: %+v", shown)
	}
}
