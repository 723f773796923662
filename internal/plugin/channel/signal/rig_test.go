package signal_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/channel/signal"
	"github.com/chela-ai/chela/internal/plugin/channel/signal/signaltest"
)

const (
	ann   = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	ben   = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
	gone  = "cccccccc-cccc-4ccc-8ccc-cccccccccccc"
	team  = "dGVhbXRlYW10ZWFtdGVhbXRlYW10ZWFtdGVhbXRlYW0="
	other = "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyLS0="
	base  = "http://127.0.0.1:8080"
)

// rig is an account on a daemon.
type rig struct {
	t        *testing.T
	server   *signaltest.Server
	client   *http.Client
	dir      string
	programs signal.Programs
	vars     map[string]string

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

func newServer() *signaltest.Server {
	s := signaltest.New()
	s.Add(signaltest.Person{UUID: ann, Number: "+491701111111", Name: "Ann"})
	s.Add(signaltest.Person{UUID: ben, Name: "Ben", Username: "ben.01"})
	s.AddGroup(signaltest.Group{ID: team, Name: "Team", Members: []string{ann, ben}})
	s.AddGroup(signaltest.Group{ID: other, Name: "Other", Members: []string{ann, ben}})
	return s
}

func newRig(t *testing.T) *rig {
	s := newServer()
	r := &rig{t: t, server: s, client: s.Listen(t), dir: t.TempDir()}
	t.Cleanup(func() {
		if p := s.Problems(); len(p) > 0 {
			t.Errorf("requests with problems: %q", p)
		}
	})
	return r
}

func (r *rig) env() channel.Env {
	return channel.Env{
		Log:     slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug})),
		HTTP:    r.client,
		Dir:     filepath.Join(r.dir, "account"),
		Trusted: func(...string) *http.Client { return r.client },
		Dial: func(context.Context, string, ...string) (net.Conn, error) {
			return nil, errors.New("no connections")
		},
		Getenv: func(name string) string { return r.vars[name] },
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

const keys = `"account": "+49 170 0000000", "httpUrl": "` + base + `/"`

func (r *rig) open(keys string) channel.Channel {
	r.t.Helper()
	programs := r.programs
	if programs == nil {
		programs = func(context.Context, *slog.Logger, string) (sandbox.Broker, error) {
			return nil, errors.New("nothing is to be started")
		}
	}
	f := signal.Factory(programs)
	c, err := f.New(r.env(), "default", json.RawMessage(`{`+keys+`}`))
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func texts(all []chela.Inbound) string {
	var out []string
	for _, in := range all {
		out = append(out, in.Text)
	}
	return strings.Join(out, " ")
}

// receive runs the account in a bubble, lets f write messages, and returns what arrived.
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

func direct(id string) chela.Address {
	return chela.Address{Channel: "signal", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: id}}
}

func group(id string) chela.Address {
	return chela.Address{Channel: "signal", Account: "default", Peer: chela.Peer{Kind: chela.Group, ID: id}}
}

func permanent(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Permanent
}

type object = signaltest.Object

// refusing is a network in which nothing listens.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// hanging is a network in which nothing is answered.
type hanging struct{}

func (hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// spy shows the bodies of requests, which are not answered.
type spy struct{ f func(body []byte) }

func (s spy) RoundTrip(r *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(r.Body)
	s.f(b)
	return nil, errors.Join(err, errors.New("no answer"))
}

// reported returns what the channel reported last.
func (r *rig) reported() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}

// connected returns how often the channel reported a connection.
func (r *rig) connected() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ups
}
