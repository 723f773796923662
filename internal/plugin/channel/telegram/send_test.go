package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

type fault = telegramtest.Fault

func TestSending(t *testing.T) {
	t.Parallel()
	at := to(chela.Direct, ann, "")
	check(t, "TG-04 typing, and a text as HTML", "", func(t *testing.T, r *rig) {
		if err := r.bot.Typing(t.Context(), at); err != nil {
			t.Error(err)
		}
		got, err := r.bot.Send(t.Context(), text(at, "hello"))
		if err != nil || got.Time.IsZero() {
			t.Errorf("%+v, %v", got, err)
		}
		calls := r.srv.Calls("")
		if len(calls) != 2 || calls[0].Method != "sendChatAction" || calls[0].Params["action"] != "typing" ||
			calls[1].Params["parse_mode"] != "HTML" {
			t.Errorf("%+v", calls)
		}
		if _, ok := calls[1].Params["link_preview_options"]; ok {
			t.Error("link previews were changed")
		}
	})
	check(t, "TG-05 characters of HTML are shown", "", func(t *testing.T, r *rig) {
		if _, err := r.bot.Send(t.Context(), text(at, "1 < 2 & 3 > 2")); err != nil {
			t.Error(err)
		}
		if got := r.srv.Messages(ann); len(got) != 1 || got[0].Text != "1 < 2 & 3 > 2" ||
			got[0].HTML != "1 &lt; 2 &amp; 3 &gt; 2" {
			t.Errorf("%+v", got)
		}
	})
	check(t, "TG-05 a text whose markup is not understood is sent plain", "", func(t *testing.T, r *rig) {
		r.srv.Fail("sendMessage", fault{Status: 400, Description: "Bad Request: can't parse entities: Unsupported start tag"})
		got, err := r.bot.Send(t.Context(), text(at, "**1** < 2"))
		if err != nil || got.ID == "" {
			t.Error(err)
		}
		if c := r.srv.Calls("sendMessage"); len(c) != 2 || c[1].Params["parse_mode"] != nil ||
			c[1].Params["text"] != "**1** < 2" {
			t.Errorf("%+v", c)
		}
		r.srv.Fail("sendPhoto", fault{Status: 400, Description: "Bad Request: can't parse entities: Unsupported start tag"})
		if _, err := r.bot.Send(t.Context(), channel.Part{Key: "p", Address: at, Text: "*x*",
			Media: []chela.Media{{Type: "image/png", Data: []byte("png")}}}); err != nil {
			t.Error(err)
		}
		if m := r.srv.Messages(ann); len(m) != 2 || m[1].Text != "*x*" || m[1].Kind != "photo" {
			t.Errorf("%+v", m)
		}
	})
	check(t, "TG-06 topics, and the general topic", "", func(t *testing.T, r *rig) {
		for thread, want := range map[string]any{"42": "42", "1": "<nil>", "": "<nil>"} {
			p := text(to(chela.Group, forum, thread), "in "+thread)
			if _, err := r.bot.Send(t.Context(), p); err != nil {
				t.Errorf("thread %q: %v", thread, err)
			}
			calls := r.srv.Calls("sendMessage")
			if got := fmt.Sprint(calls[len(calls)-1].Params["message_thread_id"]); got != want {
				t.Errorf("thread %q: %s, want %s", thread, got, want)
			}
		}
		if err := r.bot.Typing(t.Context(), to(chela.Group, forum, "1")); err != nil {
			t.Error(err)
		}
		if c := r.srv.Calls("sendChatAction"); fmt.Sprint(c[0].Params["message_thread_id"]) != "1" {
			t.Errorf("%+v", c)
		}
		if _, err := r.bot.Send(t.Context(), text(to(chela.Group, forum, "43"), "x")); !permanent(err) ||
			!errors.Is(err, channel.ErrGone) {
			t.Errorf("a topic that does not exist: %v", err)
		}
	})
	check(t, "replies and buttons", "", func(t *testing.T, r *rig) {
		m := r.srv.Said(ann, telegramtest.Person(ann, "Ann"), "question", nil)
		for i, reply := range []string{fmt.Sprint(m["message_id"]), fmt.Sprint(m["message_id"], ":edit:1:2"),
			"99999", "callback:c1", ""} {
			p := channel.Part{Key: fmt.Sprint(i), Address: at, Text: "answer", ReplyTo: reply, Buttons: [][]channel.Button{
				{{Label: "Yes", Data: "yes", Style: channel.Success}, {Label: "Page", URL: "https://a.example"}}, {},
				{{Label: "No", Data: "no"}},
			}}
			if _, err := r.bot.Send(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		got := r.srv.Messages(ann)
		if n := m["message_id"].(int64); got[0].ReplyTo != n || got[1].ReplyTo != n ||
			got[2].ReplyTo != 0 || got[3].ReplyTo != 0 {
			t.Errorf("%+v", got)
		}
		if b := got[0].Buttons; len(b) != 2 || len(b[0]) != 2 || b[0][0]["callback_data"] != "yes" ||
			b[0][0]["style"] != "success" || b[0][1]["url"] != "https://a.example" {
			t.Errorf("%+v", b)
		}
		_, err := r.bot.Send(t.Context(),
			channel.Part{Address: at, Text: "x", Buttons: [][]channel.Button{{{Label: "L", Data: strings.Repeat("x", 65)}}}})
		if !permanent(err) || !strings.Contains(err.Error(), "at most 64") {
			t.Errorf("got %v", err)
		}
	})
	check(t, "CH-13 files, and the text as the caption of the first", "", func(t *testing.T, r *rig) {
		var media []chela.Media
		kinds := []string{"image/jpeg", "image/gif", "audio/ogg; codecs=opus", "audio/mpeg", "video/mp4",
			"application/pdf", "image/svg+xml"}
		for i, k := range kinds {
			media = append(media, chela.Media{Name: fmt.Sprint("f", i), Type: k, Data: []byte(k)})
		}
		p := channel.Part{
			Key:     "k",
			Address: at,
			Text:    "look & see",
			Media:   media,
			ReplyTo: "100",
			Buttons: [][]channel.Button{{{Label: "B", Data: "b"}}},
		}
		first, err := r.bot.Send(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		got := r.srv.Messages(ann)
		var shown []string
		for i, m := range got {
			shown = append(shown, m.Kind)
			if string(m.Data) != kinds[i] {
				t.Errorf("file %d: %q", i, m.Data)
			}
		}
		if strings.Join(shown, " ") != "photo animation voice audio video document document" || got[0].Text != "look & see" ||
			got[1].Text != "" || first.ID != id(got[0].ID) || len(got[0].Buttons) != 1 {
			t.Errorf("%q %+v", shown, got[0])
		}
		long := strings.Repeat("é", 1025)
		p = channel.Part{Key: "long", Address: at, Text: long, Media: media[:1], Buttons: p.Buttons}
		if first, err = r.bot.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		got = r.srv.Messages(ann)[len(kinds):]
		if len(got) != 2 || got[0].Kind != "photo" || got[0].Text != "" || got[1].Text != long || first.ID != id(got[0].ID) ||
			len(got[1].Buttons) != 1 {
			t.Errorf("%+v", got)
		}
	})
	check(t, "a picture that Telegram cannot show is sent as a document", "", func(t *testing.T, r *rig) {
		r.srv.Fail("sendPhoto", fault{Status: 400, Description: "Bad Request: PHOTO_INVALID_DIMENSIONS"})
		big := chela.Media{Name: "big.png", Type: "image/png", Data: make([]byte, maxPhoto+1)}
		for i, m := range []chela.Media{{Type: "image/png", Data: []byte("x")}, big} {
			if _, err := r.bot.Send(t.Context(), channel.Part{Key: fmt.Sprint(i), Address: at, Media: []chela.Media{m}}); err !=
				nil {
				t.Error(err)
			}
		}
		for _, m := range r.srv.Messages(ann) {
			if m.Kind != "document" {
				t.Errorf("shown as %s", m.Kind)
			}
		}
	})
	check(t, "what cannot be sent is refused without a call", "", func(t *testing.T, r *rig) {
		for _, p := range []channel.Part{
			{Address: at}, {Address: at, Text: " \n"}, {Address: at, Media: []chela.Media{{Name: "empty"}}},
			{Address: at, Media: []chela.Media{{Name: "huge", Data: make([]byte, maxFile+1)}}},
			text(to(chela.Group, 0, ""), "x"), text(chela.Address{Peer: chela.Peer{ID: "@name"}}, "x"),
			text(to(chela.Group, forum, "x"), "x"),
		} {
			if _, err := r.bot.Send(t.Context(), p); !permanent(err) {
				t.Errorf("%+v: %v", p.Address, err)
			}
		}
		if n := len(r.srv.Calls("")); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
	check(t, "a part that failed in the middle continues there", "", func(t *testing.T, r *rig) {
		p := channel.Part{Key: "k", Address: at, Text: strings.Repeat("x", 2000),
			Media: []chela.Media{{Type: "image/png", Data: []byte("1")}, {Type: "image/png", Data: []byte("2")}}}
		r.srv.Fail("sendPhoto", fault{}, fault{Status: 429, RetryAfter: 3})
		_, err := r.bot.Send(t.Context(), p)
		if e, ok := errors.AsType[*channel.Error](err); !ok || e.RetryAfter != 3*time.Second {
			t.Fatalf("got %v", err)
		}
		r.srv.Fail("sendMessage", fault{Status: 503})
		if _, err := r.bot.Send(t.Context(), p); err == nil {
			t.Fatal("no error")
		}
		got, err := r.bot.Send(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := r.bot.Send(t.Context(), p); err != nil || again != got {
			t.Errorf("%+v, %v, want %+v", again, err, got)
		}
		m := r.srv.Messages(ann)
		if len(m) != 3 || string(m[0].Data) != "1" || string(m[1].Data) != "2" || len(m[2].Text) != 2000 ||
			got.ID != id(m[0].ID) {
			t.Errorf("%+v", m)
		}
		for i := range 2 * maxRemember {
			r.bot.sent.add(sentKey{at, fmt.Sprint(i)}, got)
		}
		if n := len(r.bot.sent.sent); n != maxRemember || len(r.bot.sent.order) != maxRemember {
			t.Errorf("%d keys remembered", n)
		}
	})
	for _, c := range []struct {
		name                       string
		fault                      fault
		permanent, gone, ambiguous bool
		wait                       time.Duration
		shown                      int
		says                       string
	}{
		{name: "429", fault: fault{Status: 429, RetryAfter: 7}, wait: 7 * time.Second},
		{name: "429 that does not say how long", fault: fault{Status: 429}, wait: time.Second},
		{name: "429 for years", fault: fault{Status: 429, RetryAfter: 1_000_000_000}, wait: 24 * time.Hour},
		{name: "500", fault: fault{Status: 500}, ambiguous: true},
		{name: "accepted, then 500", fault: fault{Status: 500, Accept: true}, ambiguous: true, shown: 1},
		{name: "504 of a proxy", fault: fault{Status: 504, Body: "<html>"}, ambiguous: true},
		{name: "502 of a proxy", fault: fault{Status: 502, Body: "<html>"}},
		{name: "503", fault: fault{Status: 503}},
		{name: "cut", fault: fault{Cut: true}, ambiguous: true},
		{name: "cut after it was accepted", fault: fault{Cut: true, Accept: true}, ambiguous: true, shown: 1},
		{name: "no answer", fault: fault{Hang: true}, ambiguous: true},
		{name: "an answer of somebody else", fault: fault{Status: 200, Body: "hello"}, ambiguous: true},
		{name: "an answer without a message", fault: fault{Status: 200, Body: `{"ok":true,"result":true}`}, ambiguous: true},
		{name: "a redirect", fault: fault{Status: 307, Location: "/bot" + telegramtest.Token + "/sendMessage"},
			permanent: true},
		{name: "chat not found", fault: fault{Status: 400, Description: "Bad Request: chat not found"},
			permanent: true, gone: true},
		{name: "blocked", fault: fault{Status: 403, Description: "Forbidden: bot was blocked by the user"}, permanent: true,
			says: "blocked by the user"},
		{name: "moved", fault: fault{Status: 400, Description: "Bad Request: group chat was upgraded to a supergroup chat",
			NewChat: -100999}, permanent: true, says: "-100999"},
		{name: "token", fault: fault{Status: 401, Description: "Unauthorized"}, permanent: true, says: "chela config set"},
	} {
		check(t, "failure: "+c.name, "", func(t *testing.T, r *rig) {
			r.srv.Fail("sendMessage", c.fault)
			_, err := r.bot.Send(t.Context(), text(at, "hello"))
			if err == nil || permanent(err) != c.permanent || errors.Is(err, channel.ErrGone) != c.gone ||
				errors.Is(err, channel.ErrAmbiguous) != c.ambiguous || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			noSecret(t, "the error", fmt.Sprint(err))
			if e, _ := errors.AsType[*channel.Error](err); c.wait != 0 && (e == nil || e.RetryAfter != c.wait) {
				t.Errorf("got %v, want a wait of %s", err, c.wait)
			}
			if n := len(r.srv.Messages(ann)); n != c.shown {
				t.Errorf("%d messages, want %d", n, c.shown)
			}
		})
	}
	check(t, "the context ends while the answer is awaited", "", func(t *testing.T, r *rig) {
		r.srv.Fail("sendMessage", fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.bot.Send(ctx, text(at, "hello")); !errors.Is(err, channel.ErrAmbiguous) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAbilities(t *testing.T) {
	t.Parallel()
	at := to(chela.Direct, ann, "")
	sent := func(t *testing.T, r *rig, a chela.Address, s string) string {
		t.Helper()
		got, err := r.bot.Send(t.Context(), text(a, s))
		if err != nil {
			t.Fatal(err)
		}
		return got.ID
	}
	check(t, "TG-09 one message is edited, and the final text is exact", "", func(t *testing.T, r *rig) {
		m := sent(t, r, at, "a")
		for _, s := range []string{"a b", "a b", "a b <c>"} { // the second changes nothing
			if err := r.bot.Edit(t.Context(), at, m, s); err != nil {
				t.Errorf("%q: %v", s, err)
			}
		}
		r.srv.Fail("editMessageText", fault{Status: 400, Description: "Bad Request: can't parse entities"}, fault{})
		if err := r.bot.Edit(t.Context(), at, m, "the end & <all>"); err != nil {
			t.Error(err)
		}
		if got := r.srv.Messages(ann); len(got) != 1 || got[0].Text != "the end & <all>" || got[0].Edits != 3 {
			t.Errorf("%+v", got)
		}
	})
	check(t, "an edit that failed can be repeated", "", func(t *testing.T, r *rig) {
		m := sent(t, r, at, "a")
		r.srv.Fail("editMessageText", fault{Status: 500, Accept: true}, fault{Cut: true}, fault{Status: 429, RetryAfter: 2})
		for i := range 3 {
			if err := r.bot.Edit(t.Context(), at, m, fmt.Sprint(i)); err == nil || errors.Is(err, channel.ErrAmbiguous) ||
				permanent(err) {
				t.Errorf("got %v", err)
			}
		}
		if err := r.bot.Edit(t.Context(), at, m, "0"); err != nil || r.srv.Texts(ann)[0] != "0" {
			t.Errorf("%v, %q", err, r.srv.Texts(ann))
		}
	})
	check(t, "the caption of a picture is edited", "", func(t *testing.T, r *rig) {
		got, err := r.bot.Send(t.Context(),
			channel.Part{Key: "k", Address: at, Text: "before", Media: []chela.Media{{Type: "image/png", Data: []byte("x")}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.bot.Edit(t.Context(), at, got.ID, "after"); err != nil || r.srv.Texts(ann)[0] != "after" {
			t.Errorf("%v, %q", err, r.srv.Texts(ann))
		}
	})
	check(t, "messages that are gone", "", func(t *testing.T, r *rig) {
		m := sent(t, r, at, "a")
		r.srv.Vanish(ann, 101)
		for name, err := range map[string]error{
			"edit":   r.bot.Edit(t.Context(), at, m, "b"),
			"delete": r.bot.Delete(t.Context(), at, m),
			"react":  r.bot.React(t.Context(), at, m, "👍"),
			"pin":    r.bot.Pin(t.Context(), at, m, true),
			"unpin":  r.bot.Pin(t.Context(), at, m, false),

			"no number": r.bot.Delete(t.Context(), at, "callback:1"),
		} {
			if !errors.Is(err, channel.ErrGone) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	check(t, "reactions and pins, in a topic", "", func(t *testing.T, r *rig) {
		a := to(chela.Group, forum, "42")
		m := sent(t, r, a, "a")
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		ok(r.bot.React(t.Context(), a, m, "👍"))
		ok(r.bot.Pin(t.Context(), a, m, true))
		if got := r.srv.Messages(forum)[0]; got.Reaction != "👍" || !got.Pinned || got.Thread != 42 {
			t.Errorf("%+v", got)
		}
		ok(r.bot.React(t.Context(), a, m, ""))
		ok(r.bot.Pin(t.Context(), a, m, false))
		if got := r.srv.Messages(forum)[0]; got.Reaction != "" || got.Pinned {
			t.Errorf("%+v", got)
		}
		if err := r.bot.React(t.Context(), a, m, "🦄"); !permanent(err) || !strings.Contains(err.Error(), "such as 👍") {
			t.Errorf("got %v", err)
		}
		ok(r.bot.Delete(t.Context(), a, m))
		if n := len(r.srv.Messages(forum)); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
	check(t, "TG-10 a picture is announced, and fetched", "", func(t *testing.T, r *rig) {
		data := bytes.Repeat([]byte{1, 2, 3, 4}, 1<<18) // 1 MB
		file := r.srv.AddFile("photos/a b.jpg", data)
		r.run()
		r.srv.Say(ann, telegramtest.Person(ann, "Ann"), "", object{"caption": "what is this?", "photo": []object{
			{"file_id": "small", "file_size": 100}, {"file_id": file, "file_size": len(data)},
		}})
		in := r.one()
		want := chela.Media{Name: "photo.jpg", Type: "image/jpeg", Bytes: len(data), Source: file}
		if in.Text != "what is this?" || len(in.Media) != 1 || in.Media[0].Source != want.Source ||
			in.Media[0].Bytes != want.Bytes || in.Media[0].Data != nil {
			t.Fatalf("got %+v", in)
		}
		if n := len(r.srv.Calls("getFile")); n != 0 {
			t.Error("fetched before it was admitted")
		}
		got, err := r.bot.Fetch(t.Context(), in.Media[0], len(data))
		if err != nil || !bytes.Equal(got.Data, data) || got.Source != "" || got.Name != "photo.jpg" {
			t.Errorf("%d bytes, %v", len(got.Data), err)
		}
		if _, err := r.bot.Fetch(t.Context(), in.Media[0], len(data)-1); !permanent(err) ||
			!strings.Contains(err.Error(), "at most 1048575") {
			t.Errorf("got %v", err)
		}
	})
	check(t, "files that cannot be fetched", "", func(t *testing.T, r *rig) {
		for name, want := range map[string]string{
			"a/../../secret": "path of the file is invalid",
			"/etc/passwd":    "path of the file is invalid",
		} {
			if _, err := r.bot.Fetch(t.Context(), chela.Media{Source: r.srv.AddFile(name, []byte("x"))}, 10); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		big := r.srv.AddFile("big", make([]byte, 20<<20+1))
		if _, err := r.bot.Fetch(t.Context(), chela.Media{Source: big}, 100<<20); !permanent(err) ||
			!strings.Contains(err.Error(), "at most 20 MB") {
			t.Errorf("got %v", err)
		}
		r.srv.Fail("getFile", fault{Status: 200, Body: `{"ok":true,"result":{"file_path":"none"}}`})
		_, err := r.bot.Fetch(t.Context(), chela.Media{Source: "x"}, 10)
		if err == nil || strings.Contains(err.Error(), "token") {
			t.Errorf("got %v", err)
		}
		noSecret(t, "the error", fmt.Sprint(err))
		// its size is not announced
		r.srv.Fail("getFile", fault{Status: 200, Body: `{"ok":true,"result":{"file_path":"big"}}`})
		if _, err := r.bot.Fetch(t.Context(), chela.Media{Source: "x"}, 10); err == nil ||
			!strings.Contains(err.Error(), "more than 10 bytes") {
			t.Errorf("got %v", err)
		}
	})
	check(t, "polls", "", func(t *testing.T, r *rig) {
		p := channel.Poll{
			Key:      "k",
			Address:  at,
			Question: "When?",
			Options:  []string{"now", "later"},
			Multiple: true,
			Open:     time.Minute,
		}
		first, err := r.bot.Poll(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := r.bot.Poll(t.Context(), p); err != nil || again != first {
			t.Errorf("%+v, %v", again, err)
		}
		got := r.srv.Messages(ann)
		if len(got) != 1 || got[0].Poll["is_anonymous"] != true || got[0].Poll["allows_multiple_answers"] != true ||
			fmt.Sprint(got[0].Poll["open_period"]) != "60" {
			t.Errorf("%+v", got)
		}
		for _, change := range []func(*channel.Poll){
			func(p *channel.Poll) { p.Question = "" }, func(p *channel.Poll) { p.Question = strings.Repeat("x", 301) },
			func(p *channel.Poll) { p.Options = p.Options[:1] },
			func(p *channel.Poll) { p.Options = slices.Repeat([]string{"x"}, 13) },
			func(p *channel.Poll) { p.Options = []string{"x", strings.Repeat("x", 101)} },
			func(p *channel.Poll) { p.Open = time.Second }, func(p *channel.Poll) { p.Open = time.Hour },
			func(p *channel.Poll) { p.Address.Peer.ID = "x" },
		} {
			own := p
			own.Key = "other"
			change(&own)
			if _, err := r.bot.Poll(t.Context(), own); !permanent(err) {
				t.Errorf("%+v: %v", own, err)
			}
		}
	})
	check(t, "topics", "", func(t *testing.T, r *rig) {
		a, err := r.bot.Thread(t.Context(), to(chela.Group, forum, "42"), strings.Repeat("é", 200))
		if err != nil || a.Thread == "" || a.Thread == "42" {
			t.Fatalf("%+v, %v", a, err)
		}
		sent(t, r, a, "in the topic")
		if _, err := r.bot.Thread(t.Context(), to(chela.Group, group, ""), "x"); !permanent(err) {
			t.Errorf("a group without topics: %v", err)
		}
		r.srv.Fail("createForumTopic", fault{Cut: true, Accept: true})
		if _, err := r.bot.Thread(t.Context(), to(chela.Group, forum, ""), "x"); !errors.Is(err, channel.ErrAmbiguous) {
			t.Errorf("got %v", err)
		}
	})
	check(t, "the menu of commands", "", func(t *testing.T, r *rig) {
		list := []channel.Command{{Name: "status", Doc: "What\nis  going on"}, {Name: "Think-Hard"},
			{Name: "status", Doc: "again"}, {Doc: "x"}, {Name: "wörter"}, {Name: strings.Repeat("x", 33)},
			{Name: "long", Doc: strings.Repeat("é", 300)}}
		for i := range 200 {
			list = append(list, channel.Command{Name: fmt.Sprint("c", i), Doc: "x"})
		}
		if err := r.bot.Menu(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		m := r.srv.Menu()
		if len(m) != 100 || m[0]["description"] != "What is going on" || m[1]["command"] != "think_hard" ||
			m[1]["description"] != "think_hard" || m[2]["command"] != "long" {
			t.Errorf("%d: %v", len(m), m[:3])
		}
	})
	check(t, "probe", "", func(t *testing.T, r *rig) {
		if err := r.bot.Probe(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
