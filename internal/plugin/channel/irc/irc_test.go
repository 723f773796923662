package irc_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/irc"
	"github.com/chela-ai/chela/internal/plugin/channel/irc/irctest"
)

// rig is a bot on a server.
type rig struct {
	server *irctest.Server
	c      channel.Channel
	mu     sync.Mutex
	log    strings.Builder
	got    []chela.Inbound
	fail   []error
}

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

func (r *rig) sink(_ context.Context, in chela.Inbound) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fail) > 0 {
		err := r.fail[0]
		r.fail = r.fail[1:]
		if err != nil {
			return err
		}
	}
	r.got = append(r.got, in)
	return nil
}

func (r *rig) take() []chela.Inbound {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

const keys = `"host": "irc.test", "tls": false, "nick": "chela", "channels": ["#test", "#Other"]`

func newRig(t *testing.T, s *irctest.Server, more string) *rig {
	r := &rig{server: s}
	dial := s.Listen(t)
	env := channel.Env{
		Log:    slog.New(slog.NewTextHandler(r, nil)),
		Dial:   func(ctx context.Context, _ string, _ ...string) (net.Conn, error) { return dial(ctx) },
		Getenv: func(string) string { return "" }, Report: func(error) {},
	}
	c, err := irc.Factory().New(env, "default", json.RawMessage("{"+keys+more+"}"))
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	return r
}

// run runs the bot in a bubble while f runs.
func run(t *testing.T, s *irctest.Server, more string, f func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		*s = *irctest.New()
		r := newRig(t, s, more)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.c.Run(ctx, r.sink) }()
		synctest.Wait()
		f(t, r)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if p := s.Problems(); len(p) > 0 {
			t.Errorf("the server refused %q", p)
		}
	})
}

func room(name string) chela.Address {
	return chela.Address{Channel: "irc", Account: "default", Peer: chela.Peer{Kind: chela.Group, ID: name}}
}

// live is a channel whose connection exists before Run is called, for the suite. Run only
// says where the messages go.
type live struct {
	channel.Channel
	mu    sync.Mutex
	sink  channel.Sink
	ready chan struct{}
	taken chan struct{}
}

func (l *live) Run(ctx context.Context, s channel.Sink) error {
	l.mu.Lock()
	l.sink = s
	l.mu.Unlock()
	l.ready <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness {
		r := newRig(t, irctest.New(), "")
		l := &live{Channel: r.c, ready: make(chan struct{}, 1), taken: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = r.c.Run(ctx, func(ctx context.Context, in chela.Inbound) error {
				l.mu.Lock()
				sink := l.sink
				l.mu.Unlock()
				err := sink(ctx, in)
				if err == nil {
					l.taken <- struct{}{}
				}
				return err
			})
		}()
		t.Cleanup(func() { cancel(); <-done })
		if err := r.server.Joined(t.Context()); err != nil {
			t.Fatal(err)
		}
		for { // the lines before the first message are handled
			_, err := r.c.Send(t.Context(),
				channel.Part{Key: "ready", Address: chela.Address{Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}, Text: "x"})
			if err == nil {
				break
			}
		}
		return channeltest.Harness{
			Channel: l, Address: room("#test"), Other: room("#other"), Once: true,
			Shown: func(a chela.Address) []string { return r.server.Shown(a.Peer.ID) },
			Say: func(ctx context.Context, in chela.Inbound) error {
				<-l.ready
				r.server.Say("nick", in.Sender.ID, in.Address.Peer.ID, in.Text)
				select {
				case <-l.taken:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		}
	})
}

func TestIRC(t *testing.T) {
	t.Parallel()
	t.Run("IR-01 join, mention, reply in lines, NickServ", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), `, "nickserv": {"password": "secret-pass"}`, func(t *testing.T, r *rig) {
			if got := r.server.Lines("JOIN"); !slices.Equal(got, []string{"JOIN #test", "JOIN #other"}) {
				t.Errorf("joined %q", got)
			}
			if got := r.server.Shown("NickServ"); !slices.Equal(got, []string{"IDENTIFY secret-pass"}) {
				t.Errorf("NickServ got %q", got)
			}
			r.server.Say("ann", "", "#Test", "Chela: \x02\x0304,05hello\x0f 12")
			synctest.Wait()
			in := r.take()
			if len(in) != 1 || in[0].Text != "hello 12" || !in[0].Mentioned || in[0].Address != room("#test") ||
				in[0].Sender.ID != "ann!user@host" || in[0].Sender.Name != "ann" || in[0].Group != "#Test" {
				t.Fatalf("got %+v", in)
			}
			text := strings.Repeat("wörd ", 100) + "\n\n" + strings.Repeat("汉", 200) + "\n**bold**"
			if _, err := r.c.Send(t.Context(), channel.Part{Key: "1", Address: in[0].Address, Text: text}); err != nil {
				t.Fatal(err)
			}
			lines := r.server.Shown("#test")
			for _, l := range lines {
				if len(l) > 350 || !utf8.ValidString(l) {
					t.Errorf("a line of %d bytes: %q", len(l), l)
				}
			}
			if got := strings.Join(lines, ""); strings.ReplaceAll(got, " ", "") != strings.Repeat("wörd", 100)+
				strings.Repeat("汉", 200)+"bold" {
				t.Errorf("got %q", lines)
			}
			if strings.Contains(r.logged(), "secret") {
				t.Error("the log contains the password")
			}
		})
	})
	t.Run("receive", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			for _, tt := range []struct {
				target, text, want string
				mentioned          bool
			}{
				{"#test", "what does chela say?", "what does chela say?", true},
				{"#test", "chelation", "chelation", false},
				{"#test", "chela,", "chela,", true},
				{"#test", "\x01ACTION waves\x01", "* waves", false},
				{"#test", "\x01VERSION\x01", "", false},
				{"#test", " ", "", false},
				{"chela", "chela: hello", "hello", false},
			} {
				r.server.Say("ann", "annaccount", tt.target, tt.text)
				synctest.Wait()
				got := r.take()
				if tt.want == "" {
					if len(got) != 0 {
						t.Errorf("%q: got %+v", tt.text, got)
					}
					continue
				}
				if len(got) != 1 || got[0].Text != tt.want || got[0].Mentioned != tt.mentioned ||
					got[0].Sender.ID != "annaccount" || got[0].Time.Year() != 2026 {
					t.Errorf("%q: got %+v", tt.text, got)
				}
			}
			r.server.Raw(":chela!u@h PRIVMSG #test :own")
			r.server.Raw(":irc.test PRIVMSG chela :server")
			r.server.Raw(":ann!u@h NOTICE chela :notice")
			synctest.Wait()
			if got := r.take(); len(got) != 0 {
				t.Errorf("got %+v", got)
			}
		})
	})
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			r.server.Say("ann", "annaccount", "chela", "hi")
			synctest.Wait()
			in := r.take()[0]
			if in.Address.Peer != (chela.Peer{Kind: chela.Direct, ID: "annaccount"}) {
				t.Fatalf("got %+v", in)
			}
			r.server.Raw(":ann!u@h NICK anna")
			synctest.Wait()
			if _, err := r.c.Send(t.Context(), channel.Part{Key: "1", Address: in.Address, Text: "hello"}); err != nil ||
				!slices.Equal(r.server.Shown("anna"), []string{"hello"}) {
				t.Errorf("got %q, %v", r.server.Shown("anna"), err)
			}
			in.Address.Peer.ID = "ben!user@host"
			if _, err := r.c.Send(t.Context(), channel.Part{Key: "2", Address: in.Address, Text: "hello"}); err != nil ||
				len(r.server.Shown("ben")) != 1 {
				t.Errorf("got %q, %v", r.server.Shown("ben"), err)
			}
		})
	})
	t.Run("no injection", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			if _, err := r.c.Send(t.Context(),
				channel.Part{Key: "1", Address: room("#test"), Text: "a\r\nQUIT\x00 :x\rJOIN #x"}); err != nil {
				t.Fatal(err)
			}
			if got := r.server.Shown("#test"); !slices.Equal(got, []string{"a", "QUIT :x", "JOIN #x"}) {
				t.Errorf("got %q", got)
			}
			for _, target := range []string{"#test\r\nQUIT", "#test QUIT", "#a,#b", ":x", ""} {
				if _, err := r.c.Send(t.Context(), channel.Part{Key: "2", Address: room(target), Text: "x"}); !permanent(err) {
					t.Errorf("%q: %v", target, err)
				}
			}
		})
	})
	t.Run("flood control", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			if _, err := r.c.Send(t.Context(),
				channel.Part{Key: "1", Address: room("#test"), Text: strings.Repeat("x\n", 8)}); err != nil {
				t.Fatal(err)
			}
			times := r.server.Times()
			if times[4].Sub(times[0]) != 0 || times[5].Sub(times[4]) != time.Second || times[7].Sub(times[4]) != 3*time.Second {
				t.Errorf("got %v", times)
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			if _, err := r.c.Send(t.Context(), channel.Part{Key: "1", Address: room("#elsewhere"), Text: "x"}); !permanent(err) {
				t.Errorf("got %v", err)
			}
			a := room("nobody")
			a.Peer.Kind = chela.Direct
			if _, err := r.c.Send(t.Context(), channel.Part{Key: "2", Address: a, Text: "x"}); !errors.Is(err, channel.ErrGone) {
				t.Errorf("got %v", err)
			}
			if _, err := r.c.Send(t.Context(), channel.Part{Key: "3", Address: room("#test"),
				Media: []chela.Media{{Name: "a.png"}}}); err != nil || len(r.server.Shown("#test")) != 1 {
				t.Errorf("got %q, %v", r.server.Shown("#test"), err)
			}
		})
	})
	t.Run("cut while sending", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			r.server.CutAfter(7)
			p := channel.Part{Key: "1", Address: room("#test"), Text: "1\n2\n3\n4\n5\n6\n7\n8"}
			if _, err := r.c.Send(t.Context(), p); !errors.Is(err, channel.ErrAmbiguous) {
				t.Errorf("got %v", err)
			}
			_, err := r.c.Send(t.Context(), p)
			if e, ok := errors.AsType[*channel.Error](err); !ok || e.Permanent {
				t.Errorf("not connected: %v", err)
			}
			time.Sleep(time.Minute)
			if _, err := r.c.Send(t.Context(), p); err != nil {
				t.Error(err)
			}
			if got := strings.Join(r.server.Shown("#test"), ""); got != "1234567678" { // 1 to 5 were confirmed
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("no sign of life", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			time.Sleep(10 * time.Minute)
			if n := len(r.server.Lines("NICK")); n != 1 {
				t.Fatalf("%d connections, want one", n)
			}
			r.server.Raw("PING :server")
			synctest.Wait()
			if got := r.server.Lines("PONG"); !slices.Equal(got, []string{"PONG :server"}) {
				t.Errorf("got %q", got)
			}
			r.server.Deaf(true)
			time.Sleep(4 * time.Minute)
			r.server.Deaf(false)
			time.Sleep(4 * time.Minute)
			if n := len(r.server.Lines("NICK")); n < 2 {
				t.Errorf("%d connections, want a new one", n)
			}
		})
	})
	t.Run("sink", func(t *testing.T) {
		t.Parallel()
		run(t, new(irctest.Server), "", func(t *testing.T, r *rig) {
			r.fail = []error{chela.ErrFull, chela.ErrFull, nil, chela.Errorf(chela.CodeForbidden, "a stranger")}
			for _, text := range []string{"one", "two", "three"} {
				r.server.Say("ann", "", "#test", text)
			}
			time.Sleep(time.Minute)
			if got := r.take(); len(got) != 2 || got[0].Text != "one" || got[1].Text != "three" {
				t.Errorf("got %+v", got)
			}
		})
	})
}

func permanent(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Permanent
}

// TestRegistration checks the beginning of a connection.
func TestRegistration(t *testing.T) {
	t.Parallel()
	const sasl = `, "sasl": {"username": "me", "password": "secret-sasl"}`
	for _, tt := range []struct {
		name, keys string
		server     func(s *irctest.Server)
		want       string // of the permanent error; empty: a connection
	}{
		{"SASL", sasl, func(s *irctest.Server) { s.Accounts["me"] = "secret-sasl" }, ""},
		{"wrong SASL password", sasl, func(s *irctest.Server) { s.Accounts["me"] = "other" }, "channels.irc.sasl"},
		{"no SASL", sasl, func(s *irctest.Server) { s.Caps = []string{"server-time"} }, "offers no SASL"},
		{"no capabilities", "", func(s *irctest.Server) { s.Caps = nil }, ""},
		{"server password", `, "password": "secret-server"`, func(s *irctest.Server) { s.Password = "secret-server" }, ""},
		{"wrong server password", `, "password": "secret-wrong"`, func(s *irctest.Server) { s.Password = "secret-server" },
			"channels.irc.password"},
		{"wrong server password without a number", `, "password": "secret-wrong"`,
			func(s *irctest.Server) { s.Password, s.Terse = "secret-server", true }, "channels.irc.password"},
		{"nick in use", "", func(s *irctest.Server) { s.InUse = []string{"chela", "chela_"} }, ""},
		{"banned from a channel", "", func(s *irctest.Server) { s.Banned = []string{"#test"} }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := irctest.New()
				tt.server(s)
				r := newRig(t, s, tt.keys)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := r.c.Run(ctx, r.sink)
				if tt.want == "" && !errors.Is(err, context.DeadlineExceeded) ||
					tt.want != "" && (!permanent(err) || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("got %v", err)
				}
				if tt.want != "" && ctx.Err() != nil {
					t.Error("Run did not end by itself")
				}
				if tt.want == "" && len(s.Lines("JOIN #other")) != 1 {
					t.Errorf("not registered once: %q", s.Lines(""))
				}
				if strings.Contains(r.logged(), "secret-") || err != nil && strings.Contains(err.Error(), "secret-") {
					t.Errorf("a secret is shown: %v %s", err, r.logged())
				}
				if p := s.Problems(); len(p) > 0 {
					t.Errorf("the server refused %q", p)
				}
			})
		})
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	s := irctest.New()
	addr := s.ListenLoopback(t)
	env := channel.Env{
		Log: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" }, Report: func(error) {},
		Dial: func(ctx context.Context, _ string, _ ...string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
	}
	c, err := irc.Factory().New(env, "default", json.RawMessage("{"+keys+"}"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, func(context.Context, chela.Inbound) error { return nil }) }()
	if err := s.Joined(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	<-done
}

func TestNew(t *testing.T) {
	t.Parallel()
	env := channel.Env{Getenv: func(string) string { return "" }}
	for section, want := range map[string]string{
		`{}`:                                                    "chela config set channels.irc.host",
		`{"host": "a b", "nick": "x"}`:                          "irc.example.org",
		`{"host": "a"}`:                                         "chela config set channels.irc.nick",
		`{"host": "a", "nick": "#x"}`:                           "channels.irc.nick",
		`{"host": "a", "nick": "x\r\nQUIT"}`:                    "channels.irc.nick",
		`{"host": "a", "nick": "x", "port": 70000}`:             "65535",
		`{"host": "a", "nick": "x", "channels": ["a,b"]}`:       "a,b",
		`{"host": "a", "nick": "x", "sasl": {"username": "y"}}`: "sasl.password",
		`{"host": "a", "nick": "x", "password": "a\nb"}`:        "line break",
	} {
		if _, err := irc.Factory().New(env, "default", json.RawMessage(section)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
}
