package matrix_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/matrix"
	"github.com/chela-ai/chela/internal/plugin/channel/matrix/matrixtest"
)

const (
	group = "!group:example.org"
	other = "!other:example.org"
	dm    = "!dm:example.org"
	ann   = "@ann:example.org"
	ben   = "@ben:example.org"
	base  = "http://matrix.example.org"
)

// rig is a bot on a homeserver.
type rig struct {
	t      *testing.T
	server *matrixtest.Server
	client *http.Client
	dir    string
	log    *strings.Builder
	mu     sync.Mutex
	report error
	ups    int
}

// Write implements io.Writer for the log.
func (r *rig) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

func (r *rig) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

func newRig(t *testing.T) *rig {
	s := matrixtest.New()
	s.Add(matrixtest.Room{ID: group, Name: "Team", Members: []string{s.Bot, ann, ben, "7"}})
	s.Add(matrixtest.Room{ID: other, Members: []string{s.Bot, ann, ben}})
	s.Add(matrixtest.Room{ID: dm, Members: []string{s.Bot, ann}})
	s.Name(ann, "Ann")
	return &rig{t: t, server: s, client: s.Listen(t), dir: t.TempDir(), log: new(strings.Builder)}
}

func (r *rig) env() channel.Env {
	return channel.Env{
		Log: slog.New(slog.NewTextHandler(r, nil)), HTTP: r.client, Dir: filepath.Join(r.dir, "account"),
		Trusted: func(...string) *http.Client { return r.client },
		Dial: func(context.Context, string, ...string) (net.Conn, error) {
			return nil, errors.New("no connections")
		},
		Getenv: func(string) string { return "" },
		Report: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.report = err
			if err == nil {
				r.ups++
			}
		},
	}
}

const token = `"accessToken": "secret-token"`

func (r *rig) open(keys string) channel.Channel {
	r.t.Helper()
	c, err := matrix.Factory().New(r.env(), "default", json.RawMessage(`{"homeserver": "`+base+`/", `+keys+`}`))
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// receive runs the bot in a bubble, lets f write messages, and returns what arrived.
func receive(t *testing.T, keys string, f func(r *rig)) (got []chela.Inbound, r *rig) {
	synctest.Test(t, func(t *testing.T) {
		r = newRig(t)
		box := channeltest.NewInbox()
		stop := channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
		synctest.Wait()
		f(r)
		synctest.Wait()
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		got = box.Take()
	})
	return got, r
}

func message(kv ...any) map[string]any {
	m := map[string]any{"msgtype": "m.text"}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}

func address(room string) chela.Address {
	return chela.Address{Channel: "matrix", Account: "default", Peer: chela.Peer{Kind: chela.Group, ID: room}}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness {
		r := newRig(t)
		return channeltest.Harness{
			Channel: r.open(token), Address: address(group), Other: address(other), Once: true,
			Shown: func(a chela.Address) []string { return r.server.Shown(a.Peer.ID, a.Thread) },
			Say: func(ctx context.Context, in chela.Inbound) error {
				if err := r.server.Waiting(ctx); err != nil { // older messages are skipped
					return err
				}
				r.server.Text(in.Address.Peer.ID, in.Sender.ID, in.Text)
				return r.server.Waiting(ctx)
			},
		}
	})
}

func TestReceive(t *testing.T) {
	t.Parallel()
	quoteOf := func(r *rig, sender, text string) string { return r.server.Text(group, sender, text) }
	for _, tt := range []struct {
		name string
		say  func(r *rig)
		want func(in chela.Inbound) bool
	}{
		{"text in a group", func(r *rig) { r.server.Text(group, ann, "hello") }, func(in chela.Inbound) bool {
			return in.Address == address(group) && in.Sender == chela.Sender{ID: ann, Name: "Ann"} && in.Text == "hello" &&
				in.Group == "Team" && !in.Mentioned && !in.Time.IsZero()
		}},
		{"reaction", func(r *rig) {
			r.server.Say(group, ann, "m.reaction",
				map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": "$own", "key": "👍"}})
			r.server.Say(group, ann, "m.reaction",
				map[string]any{"m.relates_to": map[string]any{"rel_type": "m.other", "event_id": "$own", "key": "👍"}})
		}, func(in chela.Inbound) bool {
			return in.Reaction == "👍" && in.ReplyTo == "$own" && in.Text == "" && in.Sender.ID == ann &&
				in.Address == address(group)
		}},
		{"direct", func(r *rig) { r.server.Text(dm, ann, "hello") }, func(in chela.Inbound) bool {
			return in.Address.Peer == chela.Peer{Kind: chela.Direct, ID: ann} && in.Group == "" && !in.Mentioned
		}},
		{"mention in the list", func(r *rig) {
			r.server.Say(group, ann, "m.room.message",
				message("body", "Chela: hello", "m.mentions", map[string]any{"user_ids": []string{r.server.Bot}}))
		}, func(in chela.Inbound) bool { return in.Mentioned && in.Text == "hello" }},
		{"name without a mention", func(r *rig) {
			r.server.Say(group, ann, "m.room.message", message("body", "Chela is nice", "m.mentions", map[string]any{}))
		}, func(in chela.Inbound) bool { return !in.Mentioned }},
		{"mention of an old client", func(r *rig) { r.server.Text(group, ann, "@bot:example.org, hello") },
			func(in chela.Inbound) bool { return in.Mentioned && in.Text == "hello" }},
		{"display name", func(r *rig) { r.server.Text(group, ann, "what do you say, chela?") },
			func(in chela.Inbound) bool { return in.Mentioned && strings.HasSuffix(in.Text, "chela?") }},
		{"display name in a word", func(r *rig) { r.server.Text(group, ann, "Chelation") },
			func(in chela.Inbound) bool { return !in.Mentioned && in.Text == "Chelation" }},
		{"only a mention", func(r *rig) { r.server.Text(group, ann, "@bot") },
			func(in chela.Inbound) bool { return in.Mentioned && in.Text == "@bot" }},
		{"room mention", func(r *rig) {
			r.server.Say(group, ann, "m.room.message",
				message("body", "@room hello", "m.mentions", map[string]any{"room": true}))
		}, func(in chela.Inbound) bool { return !in.Mentioned }},
		{"notice", func(r *rig) {
			r.server.Say(group, ann, "m.room.message", map[string]any{"msgtype": "m.notice", "body": "beep"})
		}, func(in chela.Inbound) bool { return in.Sender.Bot && in.Text == "beep" }},
		{"emote", func(r *rig) {
			r.server.Say(group, ann, "m.room.message", map[string]any{"msgtype": "m.emote", "body": "waves"})
		}, func(in chela.Inbound) bool { return in.Text == "* waves" }},
		{"edit", func(r *rig) {
			r.server.Say(group, ann, "m.room.message", message("body", "* new", "m.new_content", message("body", "new"),
				"m.relates_to", map[string]any{"rel_type": "m.replace", "event_id": "$unknown"}))
		}, func(in chela.Inbound) bool { return in.Edited && in.Text == "new" && in.ID != "$unknown" }},
		{"thread", func(r *rig) {
			r.server.Say(group, ann, "m.room.message", message("body", "in a thread", "m.relates_to", map[string]any{
				"rel_type": "m.thread", "event_id": "$root", "is_falling_back": true,
				"m.in_reply_to": map[string]any{"event_id": "$root"},
			}))
		}, func(in chela.Inbound) bool { return in.Address.Thread == "$root" && in.ReplyTo == "" }},
		{"sticker", func(r *rig) { r.server.Say(group, ann, "m.sticker", map[string]any{"body": "cat"}) },
			func(in chela.Inbound) bool { return in.Text == "[sticker: cat]" }},
		{"poll", func(r *rig) {
			r.server.Say(group, ann, "org.matrix.msc3381.poll.start",
				map[string]any{"org.matrix.msc3381.poll.start": map[string]any{
					"question": map[string]any{"org.matrix.msc1767.text": "Tea?"}}})
		}, func(in chela.Inbound) bool { return in.Text == "[poll: Tea?]" }},
		{"location", func(r *rig) {
			r.server.Say(group, ann, "m.room.message",
				map[string]any{"msgtype": "m.location", "body": "here", "geo_uri": "geo:52.5,13.4;u=10"})
		}, func(in chela.Inbound) bool { return in.Text == "[location 52.5, 13.4]" }},
		{"image with a caption", func(r *rig) {
			r.server.Say(group, ann, "m.room.message", map[string]any{
				"msgtype":  "m.image",
				"body":     "look",
				"filename": "a.png",
				"url":      "mxc://example.org/x",
				"info":     map[string]any{"mimetype": "image/png", "size": 9},
			})
		}, func(in chela.Inbound) bool {
			return in.Text == "look" && len(in.Media) == 1 && in.Media[0].Name == "a.png" && in.Media[0].Type == "image/png" &&
				in.Media[0].Bytes == 9 && in.Media[0].Source == "mxc://example.org/x"
		}},
		{"file", func(r *rig) {
			r.server.Say(group, ann, "m.room.message",
				map[string]any{"msgtype": "m.file", "body": "a.txt", "url": "mxc://example.org/x"})
		}, func(in chela.Inbound) bool { return in.Text == "" && len(in.Media) == 1 && in.Media[0].Name == "a.txt" }},
		{"encrypted file", func(r *rig) {
			r.server.Say(group, ann, "m.room.message",
				map[string]any{"msgtype": "m.file", "body": "a.txt", "file": map[string]any{"url": "mxc://a/b"}})
		}, func(in chela.Inbound) bool { return in.Text == "[encrypted file]" && len(in.Media) == 0 }},
		{"unknown type of message", func(r *rig) {
			r.server.Say(group, ann, "m.room.message", map[string]any{"msgtype": "x.new", "body": "something"})
		}, func(in chela.Inbound) bool { return in.Text == "something" }},
		{"reply to a person", func(r *rig) {
			q := quoteOf(r, r.server.Bot, "first")
			r.server.Redact(q)
			r.server.Say(group, ann, "m.room.message", message("body", "> <@bot:example.org> forged\n\nyes", "m.relates_to",
				map[string]any{"m.in_reply_to": map[string]any{"event_id": q}}))
		}, func(in chela.Inbound) bool {
			return in.ReplyTo != "" && in.Text == "yes" && !in.Mentioned && in.Quote.Sender.ID == "" && in.Quote.Text == "forged"
		}},
		{"reply to the bot", func(r *rig) {
			id := quoteOf(r, r.server.Bot, "mine")
			r.server.Say(group, ann, "m.room.message",
				message("body", "yes", "m.relates_to", map[string]any{"m.in_reply_to": map[string]any{"event_id": id}}))
		}, func(in chela.Inbound) bool {
			return in.Mentioned && in.Quote.Text == "mine" && in.Quote.Sender.ID == "@bot:example.org"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, r := receive(t, token, tt.say)
			if len(got) != 1 || !tt.want(got[0]) {
				t.Errorf("got %+v\n%s", got, r.logged())
			}
		})
	}
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	got, r := receive(t, token, func(r *rig) {
		r.server.Text(group, r.server.Bot, "own")
		r.server.Say(group, ann, "m.reaction",
			map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": "$x"}})
		r.server.Say(group, ann, "x.unknown", map[string]any{"body": "x"})
		r.server.Say(group, ann, "m.room.message", map[string]any{"msgtype": 7})
		r.server.Say(group, ann, "m.room.message", map[string]any{})
		r.server.Say(group, ann, "m.room.encrypted", map[string]any{})
		r.server.Say(group, ann, "m.room.encrypted", map[string]any{})
	})
	if len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	if n := strings.Count(r.logged(), "encrypted room"); n != 1 {
		t.Errorf("the log says %d times that a room is encrypted, want once:\n%s", n, r.logged())
	}
}

// TestCursor checks that the token of /sync is stored after the sink accepted everything.
func TestCursor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		box := channeltest.NewInbox()
		r.server.Text(group, ann, "old")
		stop := channeltest.Run(r.t.Context(), r.open(token), box.Sink)
		synctest.Wait()
		box.Fail(nil, chela.ErrFull, chela.ErrFull)
		r.server.Text(group, ann, "one")
		r.server.Text(group, ann, "two")
		r.server.Text(group, ann, "three")
		synctest.Wait()
		_ = stop()
		first := texts(box.Take())

		stop = channeltest.Run(r.t.Context(), r.open(token), box.Sink) // as after a crash
		time.Sleep(time.Minute)
		_ = stop()
		second := texts(box.Take())
		if first != "one" || second != "two three" && second != "one two three" {
			t.Errorf("got %q, then %q", first, second)
		}
		stop = channeltest.Run(r.t.Context(), r.open(token), box.Sink)
		time.Sleep(time.Minute)
		_ = stop()
		if again := texts(box.Take()); again != "" {
			t.Errorf("delivered again: %q", again)
		}
		info, err := os.Stat(filepath.Join(r.dir, "account", "sync.json"))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("state: %v, %v", info, err)
		}
		if n := len(r.server.Requests("/receipt/")); n == 0 {
			t.Error("no read receipt")
		}
	})
}

func texts(ins []chela.Inbound) string {
	var out []string
	for _, in := range ins {
		out = append(out, in.Text)
	}
	return strings.Join(out, " ")
}

func TestRefusedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		box := channeltest.NewInbox(chela.Errorf(chela.CodeForbidden, "a stranger"))
		stop := channeltest.Run(r.t.Context(), r.open(token), box.Sink)
		synctest.Wait()
		r.server.Text(group, ann, "one")
		r.server.Text(group, ann, "two")
		synctest.Wait()
		_ = stop()
		if got := texts(box.Take()); got != "two" || box.Calls() != 2 {
			t.Errorf("got %q in %d calls, want two in 2", got, box.Calls())
		}
	})
}

// TestGap checks that messages are read that an answer of /sync leaves out.
func TestGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		box := channeltest.NewInbox()
		stop := channeltest.Run(r.t.Context(), r.open(token), box.Sink)
		synctest.Wait()
		_ = stop()
		var want []string
		for i := range 180 {
			want = append(want, fmt.Sprint("n", i))
			r.server.Text(group, ann, want[i])
		}
		stop = channeltest.Run(r.t.Context(), r.open(token), box.Sink)
		synctest.Wait()
		_ = stop()
		if got := texts(box.Take()); got != strings.Join(want, " ") {
			t.Errorf("got %q", got)
		}
	})
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	got, _ := receive(t, token, func(r *rig) { r.server.Again(r.server.Text(group, ann, "one")) })
	if len(got) != 2 || got[0].ID != got[1].ID || got[0].Address != got[1].Address {
		t.Errorf("got %+v, want twice the same id", got)
	}
}

func TestInvitations(t *testing.T) {
	t.Parallel()
	const room = "!new:example.org"
	for _, tt := range []struct {
		keys string
		want bool
	}{
		{``, false},
		{`, "autoJoin": "off"`, false},
		{`, "autoJoin": "always"`, true},
		{`, "autoJoin": "allowlist"`, false},
		{`, "autoJoin": "allowlist", "autoJoinAllowlist": ["!x:example.org", "#x:example.org"]`, false},
		{`, "autoJoin": "allowlist", "autoJoinAllowlist": ["` + room + `"]`, true},
		{`, "autoJoin": "allowlist", "autoJoinAllowlist": ["#new:example.org"]`, true},
		{`, "autoJoin": "allowlist", "autoJoinAllowlist": ["` + ann + `"]`, true},
	} {
		got, r := receive(t, token+tt.keys, func(r *rig) {
			r.server.Add(matrixtest.Room{ID: room, Alias: "#new:example.org", Members: []string{ann}})
			r.server.Text(room, ann, "before")
			r.server.Invite(room, ann)
			synctest.Wait()
			r.server.Text(room, ann, "after")
		})
		if r.server.Joined(room) != tt.want || tt.want != (texts(got) == "after") {
			t.Errorf("%s: joined %v, messages %q", tt.keys, r.server.Joined(room), texts(got))
		}
	}
}

// TestJoinRetried checks that an invitation is not forgotten when joining fails.
func TestJoinRetried(t *testing.T) {
	t.Parallel()
	const room = "!new:example.org"
	_, r := receive(t, token+`, "autoJoin": "always"`, func(r *rig) {
		r.server.Add(matrixtest.Room{ID: room, Members: []string{ann}})
		r.server.Fail(matrixtest.Fault{Path: "/join", Status: 502})
		r.server.Invite(room, ann)
		time.Sleep(2 * time.Minute)
	})
	if !r.server.Joined(room) {
		t.Error("not joined")
	}
}

// TestMembers checks that a chat of two becomes a group when a third person joins.
func TestMembers(t *testing.T) {
	t.Parallel()
	got, _ := receive(t, token, func(r *rig) {
		r.server.Text(dm, ann, "one")
		synctest.Wait()
		r.server.Member(dm, ben, "join", "invite")
		r.server.Text(dm, ann, "two")
	})
	if len(got) != 2 || got[0].Address.Peer.Kind != chela.Direct || got[1].Address.Peer.Kind != chela.Group {
		t.Errorf("got %+v", got)
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	send := func(r *rig, c channel.Channel, p channel.Part) channel.Receipt {
		got, err := c.Send(r.t.Context(), p)
		if err != nil {
			r.t.Fatalf("send: %v", err)
		}
		return got
	}
	bubble := func(name string, f func(t *testing.T, r *rig, c channel.Channel)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				f(t, r, r.open(token))
			})
		})
	}
	bubble("MX-01 sync, send, transaction reused on retry", func(t *testing.T, r *rig, c channel.Channel) {
		box := channeltest.NewInbox()
		stop := channeltest.Run(r.t.Context(), c, box.Sink)
		synctest.Wait()
		r.server.Text(dm, ann, "ping")
		synctest.Wait()
		defer func() { _ = stop() }()
		in := box.Take()[0]
		r.server.Fail(matrixtest.Fault{Path: "/send/", Status: 500, Accept: true},
			matrixtest.Fault{Path: "/send/", Cut: true, Accept: true})
		p := channel.Part{Key: "k", Address: in.Address, Text: "pong"}
		_, err := c.Send(t.Context(), p)
		if e, ok := errors.AsType[*channel.Error](err); !ok || e.Permanent {
			t.Errorf("status 500: %v", err)
		}
		if _, err = c.Send(t.Context(), p); !errors.Is(err, channel.ErrAmbiguous) {
			t.Errorf("cut: %v", err)
		}
		send(r, c, p)
		if got := r.server.Shown(dm, ""); len(got) != 1 || got[0] != "pong" {
			t.Errorf("people see %q", got)
		}
	})
	bubble("markup", func(t *testing.T, r *rig, c channel.Channel) {
		send(r, c, channel.Part{Key: "1", Address: address(group), Text: "**a** <b>\n- x"})
		send(r, c, channel.Part{Key: "2", Address: address(group), Text: "plain & simple\nline"})
		sent := r.server.Sent()
		if sent[0]["formatted_body"] != "<p><strong>a</strong> &lt;b&gt;</p><ul><li>x</li></ul>" ||
			sent[0]["body"] != "a <b>\n• x" {
			t.Errorf("got %v", sent[0])
		}
		if sent[1]["formatted_body"] != nil || sent[1]["m.mentions"] == nil {
			t.Errorf("got %v", sent[1])
		}
	})
	bubble("reply and thread", func(t *testing.T, r *rig, c channel.Channel) {
		a := address(group)
		send(r, c, channel.Part{Key: "1", Address: a, Text: "x", ReplyTo: "$q"})
		a.Thread = "$root"
		send(r, c, channel.Part{Key: "2", Address: a, Text: "x"})
		send(r, c, channel.Part{Key: "3", Address: a, Text: "x", ReplyTo: "$q"})
		var got []string
		for _, c := range r.server.Sent() {
			data, _ := json.Marshal(c["m.relates_to"])
			got = append(got, string(data))
		}
		want := []string{
			`{"m.in_reply_to":{"event_id":"$q"}}`,
			`{"event_id":"$root","is_falling_back":true,"m.in_reply_to":{"event_id":"$root"},"rel_type":"m.thread"}`,
			`{"event_id":"$root","is_falling_back":false,"m.in_reply_to":{"event_id":"$q"},"rel_type":"m.thread"}`,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %s", got)
		}
	})
	bubble("media", func(t *testing.T, r *rig, c channel.Channel) {
		p := channel.Part{Key: "1", Address: address(group), Text: "*look*",
			Media: []chela.Media{{Name: "a.png", Type: "image/png", Data: []byte("png")}, {Name: "b", Data: []byte("b")}}}
		r.server.Fail(matrixtest.Fault{Path: "/send/"}, matrixtest.Fault{Path: "/send/", Status: 502, Accept: true})
		first, err := c.Send(t.Context(), p)
		for i := 0; err != nil && i < 3; i++ {
			first, err = c.Send(t.Context(), p)
		}
		sent := r.server.Sent()
		if err != nil || len(sent) != 2 || sent[0]["body"] != "look" || sent[0]["filename"] != "a.png" ||
			sent[0]["msgtype"] != "m.image" || sent[1]["body"] != "b" || sent[1]["msgtype"] != "m.file" {
			t.Fatalf("got %v, %v", sent, err)
		}
		if first.ID != "$e1" {
			t.Errorf("the receipt has %s, want the first message", first.ID)
		}
		f := c.(channel.Fetcher)
		got, err := f.Fetch(t.Context(), chela.Media{Source: sent[0]["url"].(string)}, 100)
		if err != nil || string(got.Data) != "png" || got.Type != "image/png" || got.Source != "" {
			t.Errorf("fetch: %+v, %v", got, err)
		}
		if _, err := f.Fetch(t.Context(), chela.Media{Source: sent[0]["url"].(string)}, 2); err == nil {
			t.Error("a file that is too long was read")
		}
		r.server.OldMedia = true
		if got, err = f.Fetch(t.Context(), chela.Media{Source: sent[0]["url"].(string)}, 100); err != nil ||
			string(got.Data) != "png" {
			t.Errorf("old server: %+v, %v", got, err)
		}
		for _, bad := range []string{"", "mxc://a", "mxc:///b", "mxc://a/b/c", "https://a/b?c", "mxc://example.org/none"} {
			if _, err := f.Fetch(t.Context(), chela.Media{Source: bad}, 100); err == nil {
				t.Errorf("%q: no error", bad)
			}
		}
		r.server.MaxUpload = 10
		p.Key, p.Media[0].Data = "2", make([]byte, 11)
		if _, err := c.Send(t.Context(), p); !permanent(err) {
			t.Errorf("too large: %v", err)
		}
	})
	bubble("reactions", func(t *testing.T, r *rig, c channel.Channel) {
		id := r.server.Text(group, ann, "x")
		for _, step := range []struct{ emoji, want string }{{"👍", "👍"}, {"👍", "👍"}, {"🎉", "🎉"}, {"", ""},
			{"", ""}, {"👍", "👍"}} {
			if err := c.(channel.Reactor).React(t.Context(), address(group), id, step.emoji); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.server.Reactions(id), " "); got != step.want {
				t.Errorf("after %q: %q, want %q", step.emoji, got, step.want)
			}
		}
	})
	bubble("limits", func(t *testing.T, r *rig, c channel.Channel) {
		r.server.Fail(matrixtest.Fault{Path: "/send/", Status: 429, Code: "M_LIMIT_EXCEEDED",
			RetryAfter: 2500 * time.Millisecond})
		_, err := c.Send(t.Context(), channel.Part{Key: "1", Address: address(group), Text: "x"})
		if e, ok := errors.AsType[*channel.Error](err); !ok || e.RetryAfter != 2500*time.Millisecond || e.Permanent {
			t.Errorf("got %v", err)
		}
	})
	bubble("refusals", func(t *testing.T, r *rig, c channel.Channel) {
		r.server.Add(matrixtest.Room{ID: "!crypt:example.org", Members: []string{r.server.Bot, ann, ben}, Crypt: true})
		for _, id := range []string{"!none:example.org", "!crypt:example.org", "#none:example.org"} {
			if _, err := c.Send(t.Context(), channel.Part{Key: "1", Address: address(id), Text: "x"}); !permanent(err) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if _, err := c.Send(t.Context(), channel.Part{Key: "1", Address: address(group), Text: " "}); !permanent(err) {
			t.Errorf("empty: %v", err)
		}
		a := address("ann")
		a.Peer.Kind = chela.Direct
		if _, err := c.Send(t.Context(), channel.Part{Key: "1", Address: a, Text: "x"}); !permanent(err) {
			t.Errorf("not a user id: %v", err)
		}
	})
	bubble("to a person", func(t *testing.T, r *rig, c channel.Channel) {
		a := address(ben)
		a.Peer.Kind = chela.Direct
		send(r, c, channel.Part{Key: "1", Address: a, Text: "one"})
		send(r, c, channel.Part{Key: "2", Address: a, Text: "two"})
		c = r.open(token) // the room is known from the account data
		send(r, c, channel.Part{Key: "3", Address: a, Text: "three"})
		rooms := r.server.Rooms()
		if len(rooms) != 4 {
			t.Fatalf("rooms: %q", rooms)
		}
		for _, id := range rooms {
			if got := r.server.Shown(id, ""); strings.HasPrefix(id, "!created") && strings.Join(got, " ") != "one two three" {
				t.Errorf("people see %q", got)
			}
		}
	})
	bubble("read", func(t *testing.T, r *rig, c channel.Channel) {
		r.server.Text(group, ann, "one")
		id := send(r, c, channel.Part{Key: "1", Address: address(group), Text: "two"}).ID
		if err := c.(channel.Editor).Edit(t.Context(), address(group), id, "2"); err != nil {
			t.Fatal(err)
		}
		r.server.Text(group, ann, "three")
		got, err := c.(channel.Reader).Read(t.Context(), address(group), 2)
		if err != nil || len(got) != 2 || got[0].Text != "2" || !got[0].Own || got[1].Text != "three" ||
			got[1].Sender.Name != "Ann" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func permanent(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Permanent
}

// TestConnection checks how Run behaves when the homeserver fails.
func TestConnection(t *testing.T) {
	t.Parallel()
	t.Run("revoked token", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			box := channeltest.NewInbox()
			c := r.open(token)
			done := make(chan error, 1)
			go func() { done <- c.Run(t.Context(), box.Sink) }()
			synctest.Wait()
			r.server.Revoke("another")
			err := <-done
			if !permanent(err) || !strings.Contains(err.Error(), "chela config set channels.matrix.accessToken") ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
			n := len(r.server.Requests(""))
			time.Sleep(time.Hour)
			if len(r.server.Requests("")) != n {
				t.Error("requests after Run has returned")
			}
		})
	})
	t.Run("failures", func(t *testing.T) {
		t.Parallel()
		got, r := receive(t, token, func(r *rig) {
			r.server.Fail(
				matrixtest.Fault{Path: "/sync", Status: 502}, matrixtest.Fault{Path: "/sync", Cut: true},
				matrixtest.Fault{Path: "/sync", Status: 429, Code: "M_LIMIT_EXCEEDED", RetryAfter: time.Minute},
				matrixtest.Fault{Path: "/joined_members", Status: 500},
			)
			r.server.Text(group, ann, "one")
			time.Sleep(10 * time.Minute)
			r.server.Text(group, ann, "two")
		})
		if texts(got) != "one two" || r.report != nil || r.ups < 2 {
			t.Errorf("got %q, report %v, %d times connected\n%s", texts(got), r.report, r.ups, r.logged())
		}
	})
	t.Run("password", func(t *testing.T) {
		t.Parallel()
		const keys = `"userId": "@bot:example.org", "password": "secret-password"`
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			box := channeltest.NewInbox()
			stop := channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
			synctest.Wait()
			_ = stop()
			stop = channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
			synctest.Wait()
			if r.server.Logins() != 1 {
				t.Errorf("%d logins, want one", r.server.Logins())
			}
			r.server.Revoke("another") // the session was ended elsewhere
			time.Sleep(time.Minute)
			r.server.Text(group, ann, "one")
			synctest.Wait()
			_ = stop()
			if r.server.Logins() != 2 || texts(box.Take()) != "one" {
				t.Errorf("%d logins, want two", r.server.Logins())
			}
			r.server.Revoke("another") // while the gateway does not run
			stop = channeltest.Run(r.t.Context(), r.open(keys), box.Sink)
			time.Sleep(time.Minute)
			_ = stop()
			if r.server.Logins() != 3 {
				t.Errorf("%d logins, want three", r.server.Logins())
			}
			info, err := os.Stat(filepath.Join(r.dir, "account", "login.json"))
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("login: %v, %v", info, err)
			}
			if strings.Contains(r.logged(), "secret-") {
				t.Errorf("the log contains a secret:\n%s", r.logged())
			}
		})
	})
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			err := r.open(`"userId": "@bot:example.org", "password": "secret-wrong"`).Run(t.Context(),
				channeltest.NewInbox().Sink)
			if !permanent(err) || strings.Contains(err.Error(), "secret-wrong") {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("other account", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			if err := r.open(token+`, "userId": "@else:example.org"`).Run(t.Context(),
				channeltest.NewInbox().Sink); !permanent(err) {
				t.Errorf("got %v", err)
			}
		})
	})
}

// TestUnreadableRoom checks that a room that cannot be read stops nothing.
func TestUnreadableRoom(t *testing.T) {
	t.Parallel()
	got, r := receive(t, token, func(r *rig) {
		r.server.Fail(matrixtest.Fault{Path: "/joined_members", Status: 403, Code: "M_FORBIDDEN"})
		r.server.Text(dm, ann, "lost")
		synctest.Wait()
		r.server.Text(group, ann, "one")
	})
	if texts(got) != "one" || !strings.Contains(r.logged(), "cannot be read") {
		t.Errorf("got %q\n%s", texts(got), r.logged())
	}
}

// TestSocket uses a real connection.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := matrixtest.New()
	s.Add(matrixtest.Room{ID: group, Members: []string{s.Bot, ann, ben}})
	r := &rig{t: t, server: s, client: http.DefaultClient, dir: t.TempDir(), log: new(strings.Builder)}
	c, err := matrix.Factory().New(r.env(), "default",
		json.RawMessage(`{"homeserver": "`+s.ListenLoopback(t)+`", `+token+`}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(channel.Prober).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), channel.Part{Key: "1", Address: address(group), Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Shown(group, ""); len(got) != 1 {
		t.Errorf("people see %q", got)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	env := channel.Env{Trusted: func(...string) *http.Client { panic("no client before the section is checked") },
		Getenv: func(string) string { return "" }}
	for section, want := range map[string]string{
		`{}`: "chela config set channels.matrix.homeserver",
		`{"homeserver": "example.org", "accessToken": "x"}`:                                  "https://matrix.example.org",
		`{"homeserver": "https://a:b@example.org", "accessToken": "x"}`:                      "https://matrix.example.org",
		`{"homeserver": "https://example.org"}`:                                              "chela config set channels.matrix.accessToken",
		`{"homeserver": "https://example.org", "password": "x"}`:                             "userId",
		`{"homeserver": "https://example.org", "accessToken": "x", "autoJoin": "sometimes"}`: "off, allowlist or always",
		`{"homeserver": "https://example.org", "accessToken": "env:NONE"}`:                   "NONE",
		`{"homeserver": 1}`: "channels.matrix",
	} {
		if _, err := matrix.Factory().New(env, "default", json.RawMessage(section)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
	env.Trusted = func(...string) *http.Client { return nil }
	env.Getenv = func(name string) string {
		return map[string]string{"MATRIX_HOMESERVER": "https://example.org", "MATRIX_ACCESS_TOKEN": "x"}[name]
	}
	if _, err := matrix.Factory().New(env, "default", nil); err != nil {
		t.Errorf("by the environment: %v", err)
	}
	if _, err := matrix.Factory().New(env, "work", nil); err == nil {
		t.Error("the environment is for the account default only")
	}
}
