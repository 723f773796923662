package signal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/signal/signaltest"
)

func TestSend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		part channel.Part
		chat string
		want string // as message prints it
	}{
		{"styles in units of UTF-16", channel.Part{Address: direct(ann), Text: "😀 **bold** and _it_, ~~no~~ `x`"}, ann,
			"😀 bold and it, no x [3:4:BOLD 12:2:ITALIC 16:2:STRIKETHROUGH 19:1:MONOSPACE]"},
		{"to a number", channel.Part{Address: direct("+491701111111"), Text: "x"}, ann, "x []"},
		{"with the prefix of targets", channel.Part{Address: direct("uuid:" + strings.ToUpper(ann)), Text: "x"}, ann, "x []"},
		{"to a user name", channel.Part{Address: direct("ben.01"), Text: "x"}, ben, "x []"},
		{"to a group", channel.Part{Address: group(team), Text: "a < b & c"}, team, "a < b & c []"},
		{"without a kind", channel.Part{Address: chela.Address{Peer: chela.Peer{ID: team}}, Text: "x"}, team, "x []"},
		{"attachments with a caption", channel.Part{Address: group(team), Text: "**look**", Media: []chela.Media{
			{Name: "a b,c;d=e.png", Type: "image/png", Data: []byte("png")},
			{Type: "text/plain; charset=utf-8", Data: []byte("text")}, {Name: "x", Type: "nonsense", Data: []byte{0}},
		}}, team, `look [0:4:BOLD] image/png "a b,c;d=e.png" "png" text/plain "" "text" application/octet-stream "x" "\x00"`},
		{"attachment only", channel.Part{Address: group(team), Media: []chela.Media{{Type: "a/b", Data: []byte("1")}}},
			team, ` [] a/b "" "1"`},
		{"reply", channel.Part{Address: group(team), Text: "x", ReplyTo: "77:" + ann}, team, "x [] > 77 " + ann + " "},
		{"reply to an edit", channel.Part{Address: group(team), Text: "x", ReplyTo: "77:" + ann + ":edit:88"}, team,
			"x [] > 77 " + ann + " "},
		{"reply to somebody who is not known", channel.Part{Address: group(team), Text: "x", ReplyTo: "77"}, team, "x []"},
		{"reply to nonsense", channel.Part{Address: group(team), Text: "x", ReplyTo: "abc"}, team, "x []"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			got, err := r.open(keys).Send(t.Context(), tt.part)
			all := r.server.Messages(tt.chat)
			if err != nil || len(all) != 1 {
				t.Fatalf("%v; people see %+v", err, all)
			}
			m := all[0]
			text := fmt.Sprint(m.Text, " ", m.Styles)
			for _, f := range m.Files {
				text += fmt.Sprintf(" %s %q %q", f.Type, f.Name, f.Data)
			}
			if m.Quote.Time != 0 {
				text += fmt.Sprintf(" > %d %s %s", m.Quote.Time, m.Quote.Author, m.Quote.Text)
			}
			if text != tt.want {
				t.Errorf("people see\n%s, want\n%s", text, tt.want)
			}
			if got.ID != fmt.Sprint(m.Time) || got.Time.UnixMilli() != m.Time {
				t.Errorf("receipt %+v, want %d", got, m.Time)
			}
		})
	}
}

// TestQuoteOwn replies to an own message, whose id is a time only.
func TestQuoteOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(keys)
	first, err := c.Send(t.Context(), channel.Part{Address: group(team), Text: "**one**"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), channel.Part{Address: group(team), Text: "two", ReplyTo: first.ID}); err != nil {
		t.Fatal(err)
	}
	if q := r.server.Messages(team)[1].Quote; q.Author != r.server.Account || q.Text != "one" ||
		fmt.Sprint(q.Time) != first.ID {
		t.Errorf("quote %+v", q)
	}
}

func TestSendRefused(t *testing.T) {
	t.Parallel()
	const closed = "Y2xvc2VkY2xvc2VkY2xvc2VkY2xvc2VkY2xvc2VkY2M="
	file := func(size int) []chela.Media {
		return []chela.Media{{Name: "f", Type: "a/b", Data: make([]byte, size)}}
	}
	for _, tt := range []struct {
		name  string
		part  channel.Part
		fault signaltest.Fault
		want  func(e *channel.Error, err error) bool
		text  string
	}{
		{"not on Signal", channel.Part{Address: direct(gone), Text: "x"}, signaltest.Fault{},
			func(e *channel.Error, err error) bool {
				return e.Permanent && errors.Is(err, channel.ErrGone)
			}, "UNREGISTERED_FAILURE"},
		{"changed safety number", channel.Part{Address: direct("00000000-0000-4000-8000-000000000001"), Text: "x"},
			signaltest.Fault{}, func(e *channel.Error, err error) bool {
				return e.Permanent && !errors.Is(err, channel.ErrGone)
			}, "signal-cli -a +491700000000 trust -v SAFETY_NUMBER 00000000-0000-4000-8000-000000000001"},
		{"too many messages", channel.Part{Address: direct("00000000-0000-4000-8000-000000000002"), Text: "x"},
			signaltest.Fault{}, func(e *channel.Error, _ error) bool {
				return !e.Permanent && e.RetryAfter == 90*time.Second
			}, "--challenge tok"},
		{"no network", channel.Part{Address: direct("00000000-0000-4000-8000-000000000003"), Text: "x"}, signaltest.Fault{},
			func(e *channel.Error, _ error) bool {
				return !e.Permanent
			}, "NETWORK_FAILURE"},
		{"no group", channel.Part{Address: group("bm9uZW5vbmVub25lbm9uZW5vbmVub25lbm9uZW5vbmU="), Text: "x"},
			signaltest.Fault{}, func(e *channel.Error, err error) bool {
				return e.Permanent && errors.Is(err, channel.ErrGone)
			}, "Group not found"},
		{"not a member", channel.Part{Address: group(closed), Text: "x"}, signaltest.Fault{},
			func(e *channel.Error, err error) bool {
				return e.Permanent && errors.Is(err, channel.ErrGone)
			}, "not a member"},
		{"empty", channel.Part{Address: group(team), Text: " \n"}, signaltest.Fault{},
			func(e *channel.Error, _ error) bool { return e.Permanent }, "empty"},
		{"a name", channel.Part{Address: direct("Ann"), Text: "x"}, signaltest.Fault{},
			func(e *channel.Error, _ error) bool { return e.Permanent }, "signal:+491701234567"},
		{"a room", channel.Part{Address: chela.Address{Peer: chela.Peer{Kind: chela.Room, ID: team}}, Text: "x"},
			signaltest.Fault{}, func(e *channel.Error, _ error) bool { return e.Permanent }, "signal:group:ID"},
		{"an empty file", channel.Part{Address: group(team), Media: file(0)}, signaltest.Fault{},
			func(e *channel.Error, _ error) bool { return e.Permanent }, "0 bytes"},
		{"a large file", channel.Part{Address: group(team), Media: file(15 << 20)}, signaltest.Fault{},
			func(e *channel.Error, _ error) bool { return e.Permanent }, "15728640 bytes"},
		{"429", channel.Part{Address: group(team), Text: "x"}, signaltest.Fault{Status: 429, RetryAfter: time.Minute},
			func(e *channel.Error, _ error) bool {
				return !e.Permanent && e.RetryAfter == time.Minute
			}, "429"},
		{"503", channel.Part{Address: group(team), Text: "x"}, signaltest.Fault{Status: 503},
			func(e *channel.Error, _ error) bool { return !e.Permanent }, "503"},
		{"404", channel.Part{Address: group(team), Text: "x"}, signaltest.Fault{Status: 404},
			func(e *channel.Error, _ error) bool { return !e.Permanent }, "channels.signal.httpUrl"},
		{"421", channel.Part{Address: group(team), Text: "x"}, signaltest.Fault{Status: 421},
			func(e *channel.Error, _ error) bool { return !e.Permanent }, "host name"},
		{"413", channel.Part{Address: group(team), Text: "x"}, signaltest.Fault{Status: 413},
			func(e *channel.Error, _ error) bool { return e.Permanent }, "413"},
		{"I/O error", channel.Part{Address: group(team), Text: "x"}, signaltest.Fault{Code: -3, Message: "disk"},
			func(e *channel.Error, _ error) bool { return !e.Permanent }, "disk"},
		{"internal error", channel.Part{Address: group(team), Text: "x"},
			signaltest.Fault{Code: -32603, Message: "Failed to send message: x\n(IOException)"},
			func(e *channel.Error, _ error) bool { return !e.Permanent }, "x (IOException)"},
		{"bad attachment", channel.Part{Address: group(team), Text: "x"},
			signaltest.Fault{Code: -32603, Message: "x (AttachmentInvalidException)"},
			func(e *channel.Error, _ error) bool { return e.Permanent }, "Attachment"},
		{"old signal-cli", channel.Part{Address: group(team), Text: "x"},
			signaltest.Fault{Code: -32601, Message: "Method not implemented"},
			func(e *channel.Error, _ error) bool { return e.Permanent }, "current version"},
		{"invalid request", channel.Part{Address: group(team), Text: "x"},
			signaltest.Fault{Code: -32600, Message: strings.Repeat("long ", 1000)},
			func(e *channel.Error, err error) bool { return e.Permanent && len(err.Error()) < 500 }, "long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.server.AddGroup(signaltest.Group{ID: closed, Name: "Closed", Closed: true})
			for i, p := range []signaltest.Person{{Outcome: "IDENTITY_FAILURE"},
				{Outcome: "RATE_LIMIT_FAILURE", RetryAfter: 90, Token: "tok"}, {Outcome: "NETWORK_FAILURE"}} {
				p.UUID = fmt.Sprint("00000000-0000-4000-8000-00000000000", i+1)
				r.server.Add(p)
			}
			if tt.fault != (signaltest.Fault{}) {
				r.server.Fail(tt.fault)
			}
			tt.part.Key = "k"
			_, err := r.open(keys).Send(t.Context(), tt.part)
			e, ok := errors.AsType[*channel.Error](err)
			if !ok || !tt.want(e, err) || errors.Is(err, channel.ErrAmbiguous) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v (%+v), want %q", err, e, tt.text)
			}
			if shown := r.server.Shown(team); len(shown) != 0 {
				t.Errorf("people see %q", shown)
			}
		})
	}
}

// TestPartly sends to a group with people who cannot be reached.
func TestPartly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.Add(signaltest.Person{UUID: ben, Outcome: "IDENTITY_FAILURE"})
	c := r.open(keys)
	if _, err := c.Send(t.Context(), channel.Part{Address: group(team), Text: "x"}); err != nil ||
		!strings.Contains(r.logged(), "missed=1") {
		t.Errorf("got %v\n%s", err, r.logged())
	}
	r.server.Add(signaltest.Person{UUID: ann, Outcome: "NETWORK_FAILURE"})
	_, err := c.Send(t.Context(), channel.Part{Address: group(team), Text: "x"})
	if e, ok := errors.AsType[*channel.Error](err); !ok || e.Permanent {
		t.Errorf("some can be reached later: %v", err)
	}
}

// TestAmbiguous breaks requests whose outcome is then unknown.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	for _, f := range []signaltest.Fault{
		{Cut: true, Accept: true}, {Cut: true}, {Status: 500, Accept: true}, {Status: 504, Accept: true},
		{Body: "<html>", Accept: true}, {Body: `{"jsonrpc": "2.0", "id": "x", "result": {"timestamp": 5}}`, Accept: true},
		{Body: `{"jsonrpc": "2.0", "id": "1", "result": {}}`, Accept: true},
		{Body: `{"jsonrpc": "2.0", "id": "1", "result": []}`, Accept: true},
	} {
		r := newRig(t)
		f.Method = "send"
		r.server.Fail(f)
		c := r.open(keys)
		_, err := c.Send(t.Context(), channel.Part{Key: "k", Address: group(team), Text: "x"})
		if !errors.Is(err, channel.ErrAmbiguous) {
			t.Errorf("%+v: %v", f, err)
		}
		shown := len(r.server.Shown(team))
		if (shown == 1) != f.Accept {
			t.Errorf("%+v: people see %d messages", f, shown)
		}
		if _, err := c.Send(t.Context(), channel.Part{Key: "k", Address: group(team), Text: "x"}); err != nil ||
			len(r.server.Shown(team)) != shown+1 {
			t.Errorf("%+v: an unconfirmed part was taken for a confirmed one: %v", f, err)
		}
	}
}

// TestNoDaemon sends while nothing listens, which is not ambiguous.
func TestNoDaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.client.Transport = refusing{}
	_, err := r.open(keys).Send(t.Context(), channel.Part{Address: group(team), Text: "x"})
	if err == nil || errors.Is(err, channel.ErrAmbiguous) || permanent(err) {
		t.Errorf("got %v", err)
	}
	if err := r.open(keys).(channel.Prober).Probe(t.Context()); err == nil ||
		!strings.Contains(err.Error(),
			"signal-cli -a +491700000000 daemon --http 127.0.0.1:8080 --receive-mode=on-connection") {
		t.Errorf("probe: %v", err)
	}
}

func TestSlowDaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.client.Transport = hanging{}
		c := r.open(keys)
		began := time.Now()
		if _, err := c.Send(t.Context(), channel.Part{Address: group(team), Text: "x"}); err == nil {
			t.Error("sent")
		}
		if err := c.(channel.Typer).Typing(t.Context(), group(team)); err == nil {
			t.Error("typing")
		}
		if _, err := c.(channel.Fetcher).Fetch(t.Context(), chela.Media{Source: "group " + team + " x"}, 9); err == nil {
			t.Error("fetched")
		}
		if d := time.Since(began); d > 10*time.Minute {
			t.Errorf("it took %s", d)
		}
	})
}

func TestEdits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(keys)
	e, d := c.(channel.Editor), c.(channel.Deleter)
	for _, a := range []chela.Address{direct(ann), group(team)} {
		sent, err := c.Send(t.Context(), channel.Part{Key: "k", Address: a, Text: "one"})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"two", "**three**"} { // each edit refers to the one before
			if err := e.Edit(t.Context(), a, sent.ID, text); err != nil {
				t.Fatal(err)
			}
		}
		m := r.server.Messages(a.Peer.ID)
		if len(m) != 1 || m[0].Text != "three" || len(m[0].Versions) != 3 || fmt.Sprint(m[0].Styles) != "[0:5:BOLD]" {
			t.Errorf("people see %+v", m)
		}
		if err := e.Edit(t.Context(), a, sent.ID, " "); !permanent(err) {
			t.Errorf("empty edit: %v", err)
		}
		if err := d.Delete(t.Context(), a, sent.ID); err != nil || len(r.server.Shown(a.Peer.ID)) != 0 {
			t.Errorf("delete: %v, people see %q", err, r.server.Shown(a.Peer.ID))
		}
		for _, id := range []string{sent.ID, "x", "0", "-5", "5:" + ann, "99999999999999999999"} {
			if err := d.Delete(t.Context(), a, id); !errors.Is(err, channel.ErrGone) {
				t.Errorf("delete %s: %v", id, err)
			}
			if err := e.Edit(t.Context(), a, id, "x"); !errors.Is(err, channel.ErrGone) {
				t.Errorf("edit %s: %v", id, err)
			}
		}
		if err := d.Delete(t.Context(), chela.Address{Peer: chela.Peer{ID: "x"}}, "5"); !permanent(err) {
			t.Errorf("delete elsewhere: %v", err)
		}
	}
}

func TestReact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c := r.open(keys)
		box := channeltest.NewInbox()
		stop := channeltest.Run(r.t.Context(), c, box.Sink)
		at := r.server.Say(ben, team, "hello", nil)
		synctest.Wait()
		defer func() { _ = stop() }()
		in := box.Take()[0]
		own, err := c.Send(t.Context(), channel.Part{Address: group(team), Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		react := func(a chela.Address, id, emoji string) {
			t.Helper()
			if err := c.(channel.Reactor).React(t.Context(), a, id, emoji); err != nil {
				t.Errorf("react to %s: %v", id, err)
			}
		}
		react(in.Address, in.ID, "🎉")
		react(in.Address, in.ID, "")
		react(in.Address, fmt.Sprint(at), "👀")
		react(in.Address, own.ID, "👍")
		react(direct(ann), "5:"+ann+":edit:6", "👍")
		react(direct(ann), "5:"+ann, "")
		want := []signaltest.Reaction{
			{Chat: team, Author: ben, Emoji: "🎉", Time: at}, {Chat: team, Author: ben, Emoji: "🎉", Time: at, Removed: true},
			{Chat: team, Author: ben, Emoji: "👀", Time: at},
			{Chat: team, Author: r.server.Account, Emoji: "👍", Time: own.Time.UnixMilli()},
			{Chat: ann, Author: ann, Emoji: "👍", Time: 5}, {Chat: ann, Author: ann, Emoji: "👍", Time: 5, Removed: true},
		}
		if got := r.server.Reactions(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		for _, id := range []string{"12345", "x", "5:Ann", "5:+1"} {
			if err := c.(channel.Reactor).React(t.Context(), group(team), id, "👍"); !permanent(err) ||
				!strings.Contains(err.Error(), "TIME:UUID") {
				t.Errorf("react to %s: %v", id, err)
			}
		}
	})
}

func TestTyping(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(keys).(channel.Typer)
	if err := errors.Join(c.Typing(t.Context(), direct(ann)), c.Typing(t.Context(), group(team))); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(r.server.Typing()); got != fmt.Sprintf("[%s %s]", ann, team) {
		t.Errorf("typed in %s", got)
	}
	if err := c.Typing(t.Context(), direct("Ann")); !permanent(err) {
		t.Errorf("got %v", err)
	}
	r.server.Fail(signaltest.Fault{Method: "sendTyping", Cut: true, Accept: true})
	if err := c.Typing(t.Context(), group(team)); err == nil || errors.Is(err, channel.ErrAmbiguous) {
		t.Errorf("cut: %v", err)
	}
}

// TestForgetsKeys sends more parts than are remembered.
func TestForgetsKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.open(keys)
	send := func(key string) string {
		t.Helper()
		got, err := c.Send(context.Background(), channel.Part{Key: key, Address: group(team), Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return got.ID
	}
	first, last := send("0"), ""
	for i := range 512 {
		last = send(fmt.Sprint(i + 1))
	}
	if send("512") != last {
		t.Error("the last key is forgotten")
	}
	if send("0") == first {
		t.Error("all keys are remembered")
	}
	if a, b := send(""), send(""); a == b {
		t.Error("no key is a key")
	}
}

// TestRequest looks at the bytes of a request.
func TestRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var body struct {
		Version string         `json:"jsonrpc"`
		ID      string         `json:"id"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params"`
	}
	r.client.Transport = spy{func(b []byte) {
		if err := json.Unmarshal(b, &body); err != nil {
			t.Error(err)
		}
	}}
	_, _ = r.open(keys).Send(t.Context(), channel.Part{Address: direct(ann), Text: "_x_"})
	want := fmt.Sprintf("map[account:+491700000000 message:x recipient:[%s] textStyle:[0:1:ITALIC]]", ann)
	if body.Version != "2.0" || body.ID == "" || body.Method != "send" || fmt.Sprint(body.Params) != want {
		t.Errorf("got %+v", body)
	}
}
