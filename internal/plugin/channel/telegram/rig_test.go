package telegram

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/channel/telegram/telegramtest"
)

// The chats of a rig.
const (
	ann     = 7 // a person, and the private chat with her
	bob     = 8
	group   = -100200
	forum   = -100300
	news    = -100400 // a channel
	topic   = 42
	section = `{"botToken": "` + telegramtest.Token + `", "apiRoot": "ROOT"}`
)

type object = telegramtest.Object

// rig is a bot with its platform.
type rig struct {
	t    *testing.T
	srv  *telegramtest.Server
	root string
	hc   *http.Client
	bot  *bot
	log  lockedBuffer

	mu      sync.Mutex
	got     []chela.Inbound
	tries   []string // ids of all calls of the sink
	refuse  []error  // of the next calls of the sink
	moved   []string
	reports []error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newRig returns a bot with the section conf, in which ROOT stands for the root of the API;
// "": the usual one.
func newRig(t *testing.T, conf string) *rig {
	r := &rig{t: t, srv: telegramtest.New()}
	t.Cleanup(r.srv.Close)
	for id, kind := range map[int64]string{
		ann:   "private",
		bob:   "private",
		group: "supergroup",
		forum: "forum",
		news:  "channel",
	} {
		r.srv.Chat(id, kind)
	}
	r.srv.Topic(forum, topic, "Plans")
	r.root, r.hc = r.srv.Pipe()
	r.bot = r.open(conf)
	return r
}

func (r *rig) env() channel.Env {
	return channel.Env{
		Log: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), HTTP: r.hc,
		Trusted: func(...string) *http.Client { return r.hc }, Getenv: func(string) string { return "" },
		Moved: func(from, to string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.moved = append(r.moved, from+" "+to)
		},
		Report: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reports = append(r.reports, err)
		},
	}
}

func (r *rig) open(conf string) *bot {
	r.t.Helper()
	conf = strings.ReplaceAll(cmp.Or(conf, section), "ROOT", r.root)
	ch, err := Factory().New(r.env(), "default", json.RawMessage(conf))
	if err != nil {
		r.t.Fatal(err)
	}
	return ch.(*bot)
}

// sink accepts messages.
func (r *rig) sink(_ context.Context, in chela.Inbound) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries = append(r.tries, in.ID)
	if len(r.refuse) > 0 {
		err := r.refuse[0]
		r.refuse = r.refuse[1:]
		if err != nil {
			return err
		}
	}
	r.got = append(r.got, in)
	return nil
}

// run runs the bot until stop is called.
func (r *rig) run() (stop func() error) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.bot.Run(ctx, r.sink) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

// received waits until all updates are confirmed, and returns the messages since the last
// call.
func (r *rig) received() []chela.Inbound {
	r.t.Helper()
	if err := r.srv.Confirmed(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// one is received for one message.
func (r *rig) one() chela.Inbound {
	r.t.Helper()
	got := r.received()
	if len(got) != 1 {
		r.t.Fatalf("%d messages, want 1: %+v", len(got), got)
	}
	return got[0]
}

func to(kind chela.PeerKind, id int64, thread string) chela.Address {
	return chela.Address{Channel: "telegram", Account: "default", Peer: chela.Peer{Kind: kind, ID: idOf(id)},
		Thread: thread}
}

func idOf(n int64) string { return id(n) }

func text(a chela.Address, text string) channel.Part {
	return channel.Part{Key: "k:" + text, Address: a, Text: text}
}

// check runs a subtest in a bubble.
func check(t *testing.T, name, conf string, f func(t *testing.T, r *rig)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newRig(t, conf)) })
	})
}

func permanent(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Permanent
}

// noSecret fails the test if a text contains the secret of the token.
func noSecret(t *testing.T, what, s string) {
	t.Helper()
	if _, part, _ := strings.Cut(telegramtest.Token, ":"); strings.Contains(s, part) || secret.ContainsCredential(s) {
		t.Errorf("%s contains the token: %s", what, s)
	}
}

func answerOf(status int, body []byte) channel.Answer {
	return channel.Answer{Status: status, Header: http.Header{}, Body: body}
}

// retryOf returns how long an error asks to wait.
func retryOf(err error) time.Duration {
	e, ok := errors.AsType[*channel.Error](err)
	if !ok {
		return 0
	}
	return e.RetryAfter
}
