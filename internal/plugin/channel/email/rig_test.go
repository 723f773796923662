package email_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/email"
	"github.com/chela-ai/chela/internal/plugin/channel/email/emailtest"
)

const (
	ann  = "ann@friends.example"
	ben  = "ben@friends.example"
	base = `"address": "chela@example.org", "name": "Chela", "password": "secret-password",
		"imap": {"host": "imap.example.org", "tls": false}, "smtp": {"host": "smtp.example.org", "tls": false}`
)

// rig is an account on a mail server.
type rig struct {
	t      testing.TB
	server *emailtest.Server
	dial   dialer
	dir    string

	mu     sync.Mutex
	log    strings.Builder
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

func (r *rig) state() (up int, lost error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ups, r.report
}

func newRig(t testing.TB, s *emailtest.Server) *rig {
	r := &rig{t: t, server: s, dir: t.TempDir()}
	r.dial = s.Listen(t)
	t.Cleanup(func() {
		if p := s.Problems(); len(p) > 0 {
			t.Errorf("the server refused %q", p)
		}
		if strings.Contains(r.logged(), "secret-") {
			t.Errorf("a secret is in the log:\n%s", r.logged())
		}
	})
	return r
}

func (r *rig) env() channel.Env {
	return channel.Env{
		Log: slog.New(slog.NewTextHandler(r, nil)), Dir: filepath.Join(r.dir, "account"), Dial: r.dial,
		Getenv: func(string) string { return "" },
		Report: func(err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.report = err; err == nil {
				r.ups++
			}
		},
	}
}

func (r *rig) open(keys string) channel.Channel {
	r.t.Helper()
	if keys != "" {
		keys = ", " + keys
	}
	c, err := email.Factory().New(r.env(), "default", json.RawMessage("{"+base+keys+"}"))
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func textsOf(b *channeltest.Inbox) string {
	var out []string
	for _, in := range b.Take() {
		out = append(out, in.Text)
	}
	return strings.Join(out, "|")
}

// bubble runs a test with an account that receives.
func bubble(t *testing.T, set func(*emailtest.Server), keys string,
	f func(t *testing.T, r *rig, c channel.Channel, b *channeltest.Inbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := emailtest.New()
		if set != nil {
			set(s)
		}
		r, b := newRig(t, s), channeltest.NewInbox()
		c := r.open(keys)
		stop := channeltest.Run(r.t.Context(), c, b.Sink)
		synctest.Wait()
		f(t, r, c, b)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}

func address(person string) chela.Address {
	return chela.Address{Channel: "email", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: person}}
}

func permanent(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Permanent
}
