package discord

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// notFound is a platform on which nothing exists.
type notFound struct{}

func (notFound) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 404, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(`{"code": 10003}`))}, nil
}

// lonely returns an account on a platform on which nothing exists.
func lonely(t testing.TB) *bot {
	env := channel.Env{Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: notFound{}},
		Getenv: func(string) string { return "" }}
	b, err := newBot(env, "default", json.RawMessage(`{"token": "abc"}`))
	if err != nil {
		t.Fatal(err)
	}
	b.know(user{ID: "1", Username: "bot"}, "2")
	return b
}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"id": "5", "channel_id": "6", "author": {"id": "7"}, "content": "<@1> hello", "mentions": [{"id": "1"}]}`,
		`{"id": "5", "channel_id": "6", "guild_id": "3", "author": {"id": "7"}, "edited_timestamp": "2026-01-02T03:04:05Z", "content": "x"}`,
		`{"id": "5", "channel_id": "6", "author": {"id": "7"}, "attachments": [{"filename": "a", "url": "https://cdn.discordapp.com/a", "size": -1}]}`,
		`{"id": "5", "channel_id": "6", "author": {"id": "7"}, "message_reference": {"type": 1}, "message_snapshots": [{"message": {"content": "y"}}]}`,
		`{"id": "5", "channel_id": "6", "author": {"id": "7"}, "referenced_message": {"author": {"id": "1"}, "poll": {}}, "sticker_items": [{}], "embeds": [{}]}`,
		`{}`, `[]`,
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, update bool) {
		b := lonely(t)
		var m message
		if json.Unmarshal([]byte(s), &m) != nil {
			return
		}
		in, ok, err := b.inbound(t.Context(), &m, update)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		if in.Sender.ID == "1" || !snowflake(in.Sender.ID) || !snowflake(in.Address.Peer.ID) || in.ID == "" ||
			in.Text == "" && len(in.Media) == 0 {
			t.Errorf("%s: %+v", s, in)
		}
		for _, md := range in.Media {
			if u, err := url.Parse(md.Source); err != nil || u.Scheme != "https" ||
				!strings.HasSuffix(u.Host, ".discordapp.com") || md.Bytes < 0 {
				t.Errorf("%s: %+v", s, md)
			}
		}
	})
}

func FuzzInteraction(f *testing.F) {
	for _, s := range []string{
		`{"id": "5", "type": 2, "token": "t", "channel_id": "6", "user": {"id": "7"}, "data": {"name": "new", "options": [{"name": "args", "value": "x"}]}}`,
		`{"id": "5", "type": 2, "token": "t", "channel_id": "6", "user": {"id": "7"}, "data": {"name": "a", "options": [{"name": "b", "options": [{"name": "c", "value": 1.5}]}]}}`,
		`{"id": "5", "type": 3, "token": "t", "channel_id": "6", "member": {"user": {"id": "7"}}, "data": {"custom_id": "1|/x", "values": ["a", "b"]}}`,
		`{"id": "99999999999999999999", "type": 3}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var i interaction
		if json.Unmarshal([]byte(s), &i) != nil || !i.valid() {
			return
		}
		if text := i.text(); !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "callback_data: ") {
			t.Errorf("%s: text %q", s, text)
		}
		_ = timeOf(i.ID)
	})
}

func FuzzFailure(f *testing.F) {
	f.Add(404, `{"code": 10008, "message": "Unknown Message"}`)
	f.Add(429, `{"retry_after": 1e300, "global": true}`)
	f.Add(400, `{"message": "x\n\u001b", "errors": {"a": [1]}}`)
	f.Add(502, `<html>`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		a := channel.Answer{Status: status, Header: http.Header{}, Body: []byte(body)}
		err := lonely(t).failure("GET /x", a)
		if err == nil || len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%d %q: %v", status, body, err)
		}
		if d := retryAfter(a); d <= 0 || d > 24*time.Hour {
			t.Errorf("%q: retry after %v", body, d)
		}
	})
}

func TestWithoutMention(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"hello":             "hello",
		"<@1> hello":        "hello",
		"<@!1>, hello <@1>": "hello <@1>",
		"<@2> <@1>":         "<@2> <@1>",
		" \n<@1><@1> x":     "x",
		"  kept":            "  kept",
		"<@1>":              "",
	} {
		if got := withoutMention(in, "1"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestRouteOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/channels/1/messages/22":                  "GET /channels/1/messages/ID",
		"/channels/1/messages/2/reactions/%20/@me": "GET /channels/1/messages/ID/reactions/EMOJI/@me",
		"/interactions/3/secret/callback":          "GET /interactions/ID/TOKEN/callback",
		"/webhooks/3/secret/messages/@original":    "GET /webhooks/ID/TOKEN/messages/@original",
		"/guilds/4/members?limit=1":                "GET /guilds/4/members",
	} {
		if got := routeOf("GET", path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestLimits waits for a limit that an answer announced before it is reached.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limits
		note := func(reset string) {
			l.note("a", channel.Answer{Status: 200, Header: http.Header{"X-Ratelimit-Remaining": {"0"},
				"X-Ratelimit-Reset-After": {reset}}})
		}
		note("1.5")
		began := time.Now()
		if err := l.wait(t.Context(), "b"); err != nil || time.Since(began) != 0 {
			t.Errorf("another route: %v after %v", err, time.Since(began))
		}
		if err := l.wait(t.Context(), "a"); err != nil || time.Since(began) != 1500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		note("60")
		err := l.wait(t.Context(), "a")
		if e, ok := err.(*channel.Error); !ok || e.RetryAfter != time.Minute { //nolint:errorlint // the error itself
			t.Errorf("got %v", err)
		}
		for i := range 3 * maxRoutes {
			l.note(strings.Repeat("x", i), channel.Answer{Status: 429, Header: http.Header{}})
		}
		if len(l.until) > maxRoutes {
			t.Errorf("%d limits are remembered", len(l.until))
		}
	})
}

func TestCache(t *testing.T) {
	t.Parallel()
	c := newCache[int, int]()
	for i := range 3 * remembered {
		c.put(i, i)
		c.put(i, -i)
	}
	if _, ok := c.get(2*remembered - 1); ok || len(c.values) != remembered || len(c.order) != remembered {
		t.Errorf("%d values", len(c.values))
	}
	for i := 2 * remembered; i < 3*remembered; i++ {
		if v, ok := c.get(i); !ok || v != -i {
			t.Fatalf("%d: %d, %v", i, v, ok)
		}
	}
}

// TestHosts checks which hosts are Discord's without apiRoot.
func TestHosts(t *testing.T) {
	t.Parallel()
	b := lonely(t)
	for at, want := range map[string]bool{
		"wss://gateway.discord.gg": true, "wss://gateway-us-east1-b.discord.gg": true, "ws://gateway.discord.gg": false,
		"wss://discord.gg.evil.invalid": false, "wss://evildiscord.gg": false, "wss://a@gateway.discord.gg": false, "": false,
	} {
		if got := b.gatewayURL(at); got != want {
			t.Errorf("gateway %q: %v", at, got)
		}
	}
	for at, want := range map[string]bool{
		"https://cdn.discordapp.com/a":       true,
		"https://media.discordapp.net/a?x=1": true,
		"http://cdn.discordapp.com/a":        false,
		"https://cdn.discordapp.com:8443/a":  false,
		"https://127.0.0.1/a":                false,
	} {
		u, err := url.Parse(at)
		if got := err == nil && b.content(u); got != want {
			t.Errorf("content %q: %v", at, got)
		}
	}
}

func TestButtons(t *testing.T) {
	t.Parallel()
	var many [][]channel.Button
	for range 9 {
		many = append(many, []channel.Button{{Label: strings.Repeat("é", 100), Data: "x"}})
	}
	got := rows(many)
	if len(got) != maxRows || len([]rune(got[0].Components[0].Label)) != maxLabel {
		t.Errorf("%d rows, %+v", len(got), got[0])
	}
	if r := rows([][]channel.Button{{{Data: "only data"}}}); r[0].Components[0].Label != "only data" {
		t.Errorf("a button without a label: %+v", r)
	}
}

// TestFinal checks which errors of the sink end the attempts.
func TestFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{bot: lonely(t)}
		f := frame{Type: "MESSAGE_CREATE",
			Data: json.RawMessage(`{"id": "5", "channel_id": "6", "author": {"id": "7"}, "content": "x"}`)}
		for _, c := range []struct {
			err   error
			calls int
		}{{nil, 1}, {chela.Errorf(chela.CodeInvalid, "x"), 1}, {chela.Errorf(chela.CodeForbidden, "x"), 1},
			{chela.Errorf(chela.CodeUnavailable, "x"), 2}, {chela.ErrFull, 2}} {
			calls, began := 0, time.Now()
			r.accepted = newCache[string, struct{}]()
			r.sink = func(_ context.Context, _ chela.Inbound) error {
				if calls++; calls > 1 {
					return nil
				}
				return c.err
			}
			if err := r.pass(t.Context(), f); err != nil || calls != c.calls {
				t.Errorf("%v: %d calls, %v", c.err, calls, err)
			}
			if d := time.Since(began); (c.calls == 1) != (d == 0) {
				t.Errorf("%v: done after %v", c.err, d)
			}
		}
	})
}
