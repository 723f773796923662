package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/slack/slacktest"
)

const tokens = `"botToken": "` + slacktest.BotToken + `", "appToken": "` + slacktest.AppToken + `"`

// reports records what an account reports of its connection.
type reports struct {
	mu   sync.Mutex
	list []string
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprint(err))
}

func (r *reports) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.list...)
}

// env returns what an account may use: it reaches the fake only.
func env(t *testing.T, hc *http.Client, r *reports) channel.Env {
	return channel.Env{
		Log: slog.New(slog.DiscardHandler), HTTP: &http.Client{Transport: nowhere{}}, Dir: t.TempDir(), Report: r.add,
		Trusted: func(...string) *http.Client { return hc },
		Getenv:  func(string) string { return "" },
	}
}

// nowhere is a network that must not be used.
type nowhere struct{}

func (nowhere) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.New("the test leaves loopback: " + r.URL.Host)
}

// open makes an account on the fake. config are further members of its section.
func open(t *testing.T, s *slacktest.Server, hc *http.Client, r *reports, config string) *bot {
	t.Helper()
	ch, err := New(env(t, hc, r), "default", json.RawMessage(`{`+tokens+`, "apiRoot": "`+s.Root()+`"`+config+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return ch.(*bot)
}

// world is an account that runs on a fake.
type world struct {
	*slacktest.Server
	t   *testing.T
	b   *bot
	r   *reports
	ctx context.Context
	end context.CancelFunc
	err chan error // of Run

	mu   sync.Mutex
	got  []chela.Inbound
	sink func(n int, in chela.Inbound) error // nil: accepts; n counts the calls
	n    int
}

// inWorld runs f in a bubble with an account that runs.
func inWorld(t *testing.T, config string, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, config)
		w.start()
		f(w)
		w.stop()
	})
}

func newWorld(t *testing.T, config string) *world {
	w := &world{Server: slacktest.New(t), t: t, r: &reports{}, err: make(chan error, 1)}
	w.b = open(t, w.Server, w.Pipe(), w.r, config)
	return w
}

func (w *world) start() {
	w.ctx, w.end = context.WithCancel(w.t.Context())
	go func() { w.err <- w.b.Run(w.ctx, w.accept) }()
	synctest.Wait()
}

func (w *world) stop() {
	w.end()
	select {
	case <-w.err:
	case <-time.After(time.Second):
		w.t.Error("Run did not end with its context")
	}
}

func (w *world) accept(_ context.Context, in chela.Inbound) error {
	w.mu.Lock()
	n, sink := w.n, w.sink
	w.n++
	w.mu.Unlock()
	if sink != nil {
		if err := sink(n, in); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = append(w.got, in)
	return nil
}

// received returns the accepted messages.
func (w *world) received() []chela.Inbound {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]chela.Inbound(nil), w.got...)
}

// texts returns their texts.
func (w *world) texts() []string {
	var out []string
	for _, in := range w.received() {
		out = append(out, in.Text)
	}
	return out
}

// last returns the last one.
func (w *world) last() chela.Inbound {
	w.t.Helper()
	got := w.received()
	if len(got) == 0 {
		w.t.Fatal("nothing was received")
	}
	return got[len(got)-1]
}

func (w *world) say(chat, thread, who, text string) string {
	w.t.Helper()
	ts, err := w.Say(w.ctx, chat, thread, who, text)
	if err != nil {
		w.t.Fatalf("say %q: %v", text, err)
	}
	return ts
}

func (w *world) push(kind string, payload any) {
	w.t.Helper()
	if err := w.Push(w.ctx, kind, payload); err != nil {
		w.t.Fatalf("push %s: %v", kind, err)
	}
}

func (w *world) equal(want, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("(-want +got):\n%s", diff)
	}
}

func room(id string) chela.Address {
	return chela.Address{Channel: "slack", Account: "default", Peer: chela.Peer{Kind: chela.Room, ID: id}}
}

func person(id string) chela.Address {
	return chela.Address{Channel: "slack", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: id}}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness {
		s := slacktest.New(t)
		b := open(t, s, s.Pipe(), &reports{}, "")
		return channeltest.Harness{
			Channel: b, Address: room("C1"), Other: person("U1"), Once: true,
			Shown: func(a chela.Address) []string {
				if a.Peer.Kind == chela.Direct {
					return s.Texts("D1", a.Thread)
				}
				return s.Texts(a.Peer.ID, a.Thread)
			},
			Say: func(ctx context.Context, in chela.Inbound) error {
				_, err := s.Say(ctx, in.Address.Peer.ID, in.Address.Thread, in.Sender.ID, in.Text)
				return err
			},
		}
	})
}

// TestSocket runs over a real socket.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := slacktest.New(t)
	s.Patience = waittest.Limit
	b := open(t, s, s.Listen(), &reports{}, "")
	ctx, cancel := context.WithCancel(t.Context())
	got, done := make(chan chela.Inbound, 1), make(chan error, 1)
	go func() { done <- b.Run(ctx, func(_ context.Context, in chela.Inbound) error { got <- in; return nil }) }()
	if _, err := s.Say(ctx, "D1", "", "U1", "over a socket"); err != nil {
		t.Fatal(err)
	}
	if in := <-got; in.Text != "over a socket" || in.Address != person("U1") {
		t.Errorf("got %+v", in)
	}
	cancel()
	<-done
}

func TestChecks(t *testing.T) {
	t.Run("SL-01 an envelope is acknowledged in time, and not if the sink takes longer", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			began := time.Now()
			w.say("D1", "", "U1", "quick")
			if d := time.Since(began); d > 100*time.Millisecond {
				t.Errorf("acknowledged after %s", d)
			}
			w.sink = func(n int, _ chela.Inbound) error {
				if n == 1 {
					time.Sleep(2700 * time.Millisecond)
				}
				return nil
			}
			w.say("D1", "", "U1", "slow") // the repetition is acknowledged
			w.equal([]string{"quick", "slow"}, w.texts())
			w.equal(0, w.Late())
			if d := time.Since(began); d < 3*time.Second {
				t.Errorf("the slow one was acknowledged after %s", d)
			}
		})
	})
	t.Run("SL-02 a message in a thread is answered in the thread", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			root := w.say("C1", "", "U1", "<@UBOT> start")
			w.say("C1", root, "U2", "<@UBOT>: and this?")
			got := w.received()
			w.equal("", got[0].Address.Thread)
			w.equal(root, got[1].Address.Thread)
			w.equal("and this?", got[1].Text)
			if _, err := w.b.Send(w.ctx, channel.Part{Key: "k", Address: got[1].Address, Text: "yes"}); err != nil {
				t.Fatal(err)
			}
			w.equal([]string{"yes"}, w.Texts("C1", root))
			w.equal(0, len(w.Texts("C1", "")))
			// The message that starts a thread has the thread's id as well.
			w.push("events_api", w.Event("C1", "U1", "<@UBOT> again", "5.000001", map[string]any{"thread_ts": "5.000001"}))
			w.equal("", w.last().Address.Thread)
		})
	})
	t.Run("a reaction to a message of the account", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			react := func(user, author string) {
				w.push("events_api", map[string]any{"type": "event_callback", "team_id": "T1", "event_id": "E" + user + author,
					"event": map[string]any{
						"type": "reaction_added", "user": user, "reaction": "thumbsup", "item": map[string]any{
							"type":    "message",
							"channel": "C1",
							"ts":      "5.000001",
						}, "item_user": author, "event_ts": "6.000001",
					}})
			}
			react("U1", "U2")
			react("UBOT", "UBOT")
			react("U1", "UBOT")
			got := w.received()
			w.equal(1, len(got))
			w.equal(":thumbsup:", got[0].Reaction)
			w.equal("5.000001", got[0].ReplyTo)
			w.equal("U1", got[0].Sender.ID)
			w.equal("C1", got[0].Address.Peer.ID)
		})
	})
	t.Run("SL-03 a post with a wrong signature or an old timestamp is refused, and the URL is verified",
		func(t *testing.T) {
			inWorld(t, httpMode, func(w *world) {
				answer := slacktest.Post(w.b, "application/json", `{"type":"url_verification","challenge":"3eZb"}`, nil)
				if answer.Code != 200 || answer.Body.String() != "3eZb" {
					t.Errorf("url_verification: %d %q", answer.Code, answer.Body)
				}
				body := asJSON(w.Event("D1", "U1", "hello", "1.000001", nil))
				for name, change := range map[string]func(*http.Request){
					"wrong":  func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64)) },
					"old":    resigned(-5*time.Minute - time.Second),
					"future": resigned(5*time.Minute + time.Second),
				} {
					if code := slacktest.Post(w.b, "application/json", body, change).Code; code != 401 {
						t.Errorf("%s: status %d", name, code)
					}
				}
				w.equal(0, len(w.received()))
				if code := slacktest.Post(w.b, "application/json", body, resigned(-4*time.Minute)).Code; code != 200 {
					t.Errorf("status %d", code)
				}
				w.equal([]string{"hello"}, w.texts())
			})
		})
	t.Run("SL-04 a connection whose end is announced is replaced without a gap", func(t *testing.T) {
		for _, reason := range []string{"warning", "refresh_requested"} {
			inWorld(t, "", func(w *world) {
				began := time.Now()
				w.say("D1", "", "U1", "before")
				w.Expire(reason, 10*time.Second)
				synctest.Wait()
				w.equal(2, w.Connections())
				w.say("D1", "", "U1", "between")
				time.Sleep(11 * time.Second)
				w.equal(1, w.Connections())
				w.say("D1", "", "U1", "after")
				w.equal([]string{"before", "between", "after"}, w.texts())
				w.equal([]string{"<nil>", "<nil>"}, w.r.all())
				if d := time.Since(began); d > 12*time.Second {
					t.Errorf("it took %s", d)
				}
			})
		}
	})
}

func TestConnection(t *testing.T) {
	t.Run("a lost connection is made again", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			w.Drop()
			synctest.Wait()
			w.equal(0, w.Connections())
			w.say("D1", "", "U1", "hello") // waits for the connection
			w.equal([]string{"hello"}, w.texts())
			if got := w.r.all(); len(got) != 3 || !strings.Contains(got[1], "socket") || got[2] != "<nil>" {
				t.Errorf("reports: %q", got)
			}
		})
	})
	t.Run("a connection that does not answer pings is replaced", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "")
			w.Mute(true)
			w.start()
			w.Mute(false)
			time.Sleep(pingEvery + pingTime + 3*time.Second)
			w.say("D1", "", "U1", "hello")
			if got := w.r.all(); len(got) != 3 || !strings.Contains(got[1], "does not answer") {
				t.Errorf("reports: %q", got)
			}
			time.Sleep(5 * time.Minute)
			w.equal(3, len(w.r.all()))
			w.stop()
		})
	})
	t.Run("a successor that cannot be connected is tried again while the connection lives", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			w.Fail("apps.connections.open", slacktest.Fault{Status: 503}, slacktest.Fault{Error: "internal_error"})
			w.Expire("warning", 10*time.Second)
			time.Sleep(5 * time.Second)
			w.equal(2, w.Connections())
		})
	})
	t.Run("frames that are not known or broken", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			w.Raw(`{"type":"news","text":"x"}`)
			w.push("hologram", map[string]any{"x": 1}) // is acknowledged
			w.push("events_api", "text")
			w.push("events_api",
				map[string]any{"type": "event_callback", "event": map[string]any{"type": "message", "text": "no author"}})
			w.Raw(`{`)
			synctest.Wait()
			w.say("D1", "", "U1", "after")
			w.equal([]string{"after"}, w.texts())
		})
	})
	t.Run("bad tokens end it", func(t *testing.T) {
		for _, code := range []string{"invalid_auth", "account_inactive", "token_revoked"} {
			for _, method := range []string{"auth.test", "apps.connections.open"} {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, "")
					w.Fail(method, slacktest.Fault{Error: code})
					w.start()
					err := <-w.err
					e, ok := errors.AsType[*channel.Error](err)
					if !ok || !e.Permanent || !strings.Contains(err.Error(), code) ||
						!strings.Contains(err.Error(), "chela config set channels.slack.botToken") {
						t.Errorf("%s %s: %v", method, code, err)
					}
					w.end()
				})
			}
		}
	})
	t.Run("Socket Mode that is turned off ends it", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			w.Expire("link_disabled", time.Second)
			if err := <-w.err; !strings.Contains(err.Error(), "Socket Mode is off") {
				t.Error(err)
			}
			w.err <- nil
		})
	})
	t.Run("a server that fails at the start is tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, "")
			w.Fail("auth.test", slacktest.Fault{Status: 500}, slacktest.Fault{Status: 429, After: time.Minute})
			w.start()
			began := time.Now()
			w.say("D1", "", "U1", "hello")
			if d := time.Since(began); d < time.Minute || d > 70*time.Second {
				t.Errorf("connected after %s", d)
			}
			w.stop()
		})
	})
}

func TestSink(t *testing.T) {
	t.Run("a message is tried again before later ones", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			var tries []string
			w.sink = func(n int, in chela.Inbound) error {
				tries = append(tries, in.Text)
				if n < 4 {
					return chela.ErrFull
				}
				return nil
			}
			var wg sync.WaitGroup
			for _, text := range []string{"one", "two"} {
				wg.Go(func() { w.say("D1", "", "U1", text) })
				synctest.Wait()
			}
			wg.Wait()
			w.equal([]string{"one", "two"}, w.texts())
			w.equal([]string{"one", "one", "one", "one", "one", "two"}, tries)
		})
	})
	t.Run("a refusal is final", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			w.sink = func(n int, _ chela.Inbound) error {
				if n < 2 {
					return chela.Errorf([]chela.Code{chela.CodeInvalid, chela.CodeForbidden}[n], "no")
				}
				return nil
			}
			for _, text := range []string{"one", "two", "three"} {
				w.say("D1", "", "U1", text)
			}
			w.equal([]string{"three"}, w.texts())
		})
	})
	t.Run("a repeated message is one", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			e := w.Event("C1", "U1", "<@UBOT> hi", "1.000001", nil)
			mention := w.Event("C1", "U1", "<@UBOT> hi", "1.000001", map[string]any{"type": "app_mention", "channel_type": ""})
			w.push("events_api", mention)
			w.push("events_api", e)
			w.push("events_api", e)
			w.equal([]string{"hi"}, w.texts())
			w.equal(room("C1"), w.last().Address)
		})
	})
	t.Run("messages out of order and an edit before its original", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			edit := w.Event("D1", "", "", "9.000001", map[string]any{"subtype": "message_changed",
				"message": map[string]any{
					"type":   "message",
					"user":   "U1",
					"text":   "new",
					"ts":     "2.000001",
					"edited": map[string]any{"ts": "3.0"},
				},
				"previous_message": map[string]any{"text": "old"}})
			w.push("events_api", edit)
			w.push("events_api", w.Event("D1", "U1", "old", "2.000001", nil))
			w.push("events_api", w.Event("D1", "U1", "first", "1.000001", nil))
			got := w.received()
			w.equal([]string{"new", "old", "first"}, w.texts())
			w.equal([]string{"2.000001:edit:3.0", "2.000001"}, []string{got[0].ID, got[1].ID})
			w.equal([]bool{true, false}, []bool{got[0].Edited, got[1].Edited})
			w.equal(person("U1"), got[0].Address)
		})
	})
}

// pressed returns the payload of a button.
func pressed(data, ts string) map[string]any {
	return map[string]any{
		"type":    "block_actions",
		"team":    map[string]any{"id": "T1"},
		"user":    map[string]any{"id": "U1"},
		"channel": map[string]any{"id": "C1"},
		"message": map[string]any{"ts": "1.000001", "thread_ts": "0.000009"},
		"actions": []any{map[string]any{"type": "button", "value": data, "action_ts": ts}},
	}
}
