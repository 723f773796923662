package client_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// line is a network path to a gateway that can be cut and moved to another
// gateway.
type line struct {
	mu      sync.Mutex
	gateway *testGateway // nil: unreachable
	conns   []net.Conn
}

func (l *line) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	h := l.gateway
	l.mu.Unlock()
	if h == nil {
		return nil, errors.New("unreachable")
	}
	c, err := h.pipe.Dial(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, nil
}

// line returns a network path to the gateway and a client connected through it.
func (h *testGateway) line(t *testing.T) (*line, *client.Client) {
	t.Helper()
	l := &line{gateway: h}
	c, err := client.Dial(t.Context(), client.Options{Dial: l.dial})
	if err != nil {
		t.Fatal(err)
	}
	return l, c
}

// cut closes all connections. From then on h answers, if it is not nil.
func (l *line) cut(h *testGateway) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gateway = h
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

const session chela.SessionKey = "agent:main:main"

func (h *testGateway) says(run chela.RunID, text string) {
	h.bus.Publish(chela.Event{Run: run, Session: session, Stream: chela.StreamAssistant, Delta: text})
}

func (h *testGateway) begins(run chela.RunID) {
	h.bus.Publish(chela.Event{Run: run, Session: session, Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
}

func (h *testGateway) ends(run chela.RunID, text string) {
	h.bus.Publish(chela.Event{
		Run:     run,
		Session: session,
		Stream:  chela.StreamLifecycle,
		Phase:   chela.PhaseEnd,
		End:     &chela.EndEvent{Outcome: "ok", Text: text},
	})
}

// seen returns the unread events: the client's own, and chat events with their
// text.
func seen(c *client.Client) []string {
	synctest.Wait()
	var out []string
	for len(c.Events()) > 0 {
		e := <-c.Events()
		switch e.Name {
		case client.EventLost, client.EventResumed, client.EventReset:
			var o client.Outage
			if err := e.Decode(&o); err != nil {
				panic(err)
			}
			if o.Attempt == 0 {
				out = append(out, e.Name)
			}
		case wire.EventChat:
			var chat wire.Chat
			if err := e.Decode(&chat); err != nil {
				panic(err)
			}
			switch {
			case chat.State != wire.StateDelta:
				out = append(out, chat.State+" "+chat.Message.Text())
			case chat.Replace:
				out = append(out, "="+chat.Delta)
			default:
				out = append(out, "+"+chat.Delta)
			}
		}
	}
	return out
}

func wants(t *testing.T, c *client.Client, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, seen(c)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReconnect(t *testing.T) {
	t.Run("missed events follow, streamed text as a whole", func(t *testing.T) {
		withGateway(t, func(t *testing.T, h *testGateway) {
			l, c := h.line(t)
			defer c.Close()
			h.begins("r")
			h.says("r", "one ")
			wants(t, c, "+one ")
			l.cut(nil)
			synctest.Wait()
			for _, word := range []string{"two ", "three "} {
				time.Sleep(time.Second / 10)
				h.says("r", word)
			}
			l.cut(h)
			time.Sleep(5 * time.Second)
			wants(t, c, client.EventLost, client.EventResumed, "=one two three ")
			l.cut(h)
			h.ends("r", "one two three ")
			h.begins("s")
			h.says("s", "again")
			time.Sleep(5 * time.Second)
			wants(t, c, client.EventLost, client.EventResumed, "final one two three ", "=again")
			h.ends("s", "again")
			wants(t, c, "final again")
		})
	})
	t.Run("another gateway", func(t *testing.T) {
		watch := func(subscribed chan<- string) rpc.Method {
			return rpc.New(wire.MethodSessionsMessagesSubscribe, wire.RoleOperator, "",
				func(_ context.Context, p rpc.Peer, in wire.SessionKey) (wire.Subscribed, error) {
					subscribed <- in.Key
					return wire.Subscribed{Subscribed: true, Key: "agent:main:" + in.Key}, nil
				})
		}
		subscribed := make(chan string, 8)
		withGateway(t, func(t *testing.T, h *testGateway) {
			l, c := h.line(t)
			defer c.Close()
			if err := c.Call(t.Context(), wire.MethodSessionsMessagesSubscribe, wire.SessionKey{Key: "work"}, nil); err != nil {
				t.Fatal(err)
			}
			h.begins("a")
			for range 9 { // so that this gateway has sent more than the other
				h.says("a", "word ")
				time.Sleep(time.Second)
			}
			seen(c)
			first := c.Hello().Server.BootID
			other := newTestGateway(watch(subscribed))
			defer other.server.Shutdown(context.Background(), wire.Shutdown{Reason: "gateway stopping"})
			l.cut(other)
			time.Sleep(5 * time.Second)
			wants(t, c, client.EventLost, client.EventReset)
			if got := c.Hello().Server.BootID; got == first {
				t.Error("the hello is the first connection's")
			}
			l.cut(other) // the client continues where the other gateway is
			time.Sleep(5 * time.Second)
			wants(t, c, client.EventLost, client.EventResumed)
			if len(subscribed) != 2 || <-subscribed != "work" || <-subscribed != "work" {
				t.Error("the subscription was not renewed")
			}
		}, watch(subscribed))
	})
	t.Run("outage too long", func(t *testing.T) {
		withGateway(t, func(t *testing.T, h *testGateway) {
			l, c := h.line(t)
			defer c.Close()
			l.cut(nil)
			time.Sleep(5 * time.Minute)
			l.cut(h)
			time.Sleep(time.Minute)
			wants(t, c, client.EventLost, client.EventReset)
		})
	})
	t.Run("a rejected client does not retry", func(t *testing.T) {
		withGateway(t, func(t *testing.T, h *testGateway) {
			pipe, good := gateway.NewPipe(), true
			defer pipe.Close()
			go h.server.Serve(pipe, h.server.Upgrade(func(context.Context, access.Attempt) (access.Grant, error) {
				if good {
					return access.Grant{Principal: chela.Owner("device:x")}, nil
				}
				return access.Grant{}, wire.Errorf(wire.NotPaired, "unknown client")
			}))
			l := &line{gateway: &testGateway{pipe: pipe}}
			c, err := client.Dial(t.Context(), client.Options{Dial: l.dial})
			if err != nil {
				t.Fatal(err)
			}
			good = false
			l.cut(l.gateway)
			<-c.Done()
			if we, ok := errors.AsType[*wire.Error](c.Err()); !ok || we.Code != wire.NotPaired {
				t.Errorf("Err: %v", c.Err())
			}
		})
	})
	t.Run("a revoked credential", func(t *testing.T) {
		withGateway(t, func(t *testing.T, h *testGateway) {
			c := dial(t, h, client.Options{})
			h.server.Drop("process", nil)
			<-c.Done()
			if ce, ok := errors.AsType[*client.CloseError](c.Err()); !ok || ce.Code != wire.CloseAuth {
				t.Errorf("Err: %v", c.Err())
			}
		})
	})
}

func TestOutage(t *testing.T) {
	t.Run("calls wait or fail", func(t *testing.T) {
		ping := rpc.New("ping", wire.RoleOperator, "",
			func(context.Context, rpc.Peer, wire.None) (wire.OK, error) { return wire.OK{OK: true}, nil })
		withGateway(t, func(t *testing.T, h *testGateway) {
			l, patient := h.line(t)
			defer patient.Close()
			hasty, err := client.Dial(t.Context(), client.Options{Dial: l.dial, NoWait: true})
			if err != nil {
				t.Fatal(err)
			}
			defer hasty.Close()
			l.cut(nil)
			synctest.Wait()
			if err := hasty.Call(t.Context(), "ping", nil, nil); !errors.Is(err, client.ErrOffline) {
				t.Errorf("call with NoWait: %v, want %v", err, client.ErrOffline)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := patient.Call(short, "ping", nil, nil); !errors.Is(err, context.DeadlineExceeded) ||
				!errors.Is(err, client.ErrOffline) {
				t.Errorf("call with a deadline: %v", err)
			}
			done := make(chan error, 1)
			go func() { done <- patient.Call(t.Context(), "ping", nil, nil) }()
			time.Sleep(time.Minute)
			l.cut(h)
			if err := <-done; err != nil {
				t.Errorf("waiting call: %v", err)
			}
		}, ping)
	})
	t.Run("a message is sent again with the same key", func(t *testing.T) {
		var mu sync.Mutex
		taken, tries := map[string]int{}, 0
		l := &line{}
		send := rpc.New(wire.MethodChatSend, wire.RoleOperator, "",
			func(ctx context.Context, _ rpc.Peer, in wire.ChatSend) (wire.ChatSent, error) {
				mu.Lock()
				defer mu.Unlock()
				tries++
				taken[in.IdempotencyKey]++
				if tries < 3 { // before the answer
					l.cut(l.gateway)
					<-ctx.Done()
				}
				return wire.ChatSent{RunID: in.IdempotencyKey, Status: wire.StatusStarted}, nil
			})
		withGateway(t, func(t *testing.T, h *testGateway) {
			l.gateway = h
			c, err := client.Dial(t.Context(), client.Options{Dial: l.dial})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			run, err := c.Send(t.Context(), "main", "hello")
			if err != nil || taken[run] != 3 || len(taken) != 1 {
				t.Errorf("Send = %q, %v after %v", run, err, taken)
			}
			err = func() error {
				tries = 2
				return c.Call(t.Context(), "no such method", nil, nil)
			}()
			if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.InvalidRequest {
				t.Errorf("rejected call: %v", err)
			}
		}, send)
	})
	t.Run("other calls report the lost answer", func(t *testing.T) {
		l := &line{}
		hang := rpc.New("hang", wire.RoleOperator, "", func(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.OK, error) {
			l.cut(l.gateway)
			<-ctx.Done()
			return wire.OK{}, ctx.Err()
		})
		withGateway(t, func(t *testing.T, h *testGateway) {
			l.gateway = h
			c, err := client.Dial(t.Context(), client.Options{Dial: l.dial})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Call(t.Context(), "hang", nil, nil); !errors.Is(err, client.ErrLost) {
				t.Errorf("hang: %v, want %v", err, client.ErrLost)
			}
		}, hang)
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	restart := &client.CloseError{Code: wire.CloseRestart}
	if d := client.Backoff(1, fmt.Errorf("x: %w", restart)); d != 0 {
		t.Errorf("after a restart: %v, want 0", d)
	}
	for attempt, full := range map[int]time.Duration{
		1:    time.Second,
		2:    2 * time.Second,
		4:    8 * time.Second,
		6:    30 * time.Second,
		5000: 30 * time.Second,
	} {
		for range 50 {
			if d := client.Backoff(attempt, errors.New("x")); d <= full/2-1 || d > full {
				t.Errorf("attempt %d: %v, want between %v and %v", attempt, d, full/2, full)
			}
		}
	}
}

func TestInsecure(t *testing.T) {
	t.Parallel()
	t.Run("GW-14 no credential without encryption to a public host", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing is dialed
		for url, refused := range map[string]bool{
			"ws://example.com:18789":     true,
			"ws://8.8.8.8":               true,
			"ws://[2001:db8::1]":         true,
			"ws://localhost.example.com": true,
			"http://1.1.1.1":             true,
			"ws://10.0.0.1.example.com":  true,
			"ws://evillocalhost":         true,
			"ws://evil-localhost:1":      true,

			"ws://example.com./localhost": true,
			"ws://172.32.0.1":             true,
			"ws://100.128.0.1":            true,
			"ws://[::ffff:8.8.8.8]":       true,
			"WS://example.com":            true,
			"wss://example.com":           false,
			"ws://127.0.0.1:1":            false,
			"ws://[::1]:1":                false,
			"ws://localhost:1":            false,

			"ws://192.168.1.2:1":       false,
			"ws://100.100.1.1:1":       false,
			"ws://[fd00::1]:1":         false,
			"ws://gw.localhost:1":      false,
			"ws://LOCALHOST.:1":        false,
			"ws://[::ffff:10.0.0.1]:1": false,
			"https://evillocalhost":    false,
		} {
			_, err := client.Dial(ctx, client.Options{URL: url, Auth: &wire.Auth{Token: "t"}})
			if errors.Is(err, client.ErrInsecure) != refused {
				t.Errorf("%s: %v, want it refused: %v", url, err, refused)
			}
		}
	})
}

func TestDevice(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	withGateway(t, func(t *testing.T, h *testGateway) {
		pipe := gateway.NewPipe()
		defer pipe.Close()
		go h.server.Serve(pipe, h.server.Upgrade(func(_ context.Context, a access.Attempt) (access.Grant, error) {
			id, err := pairing.Verify(a.Connect, a.Nonce, time.Now())
			return access.Grant{Principal: chela.Owner("device:" + id.ID)}, err
		}))
		c, err := client.Dial(t.Context(), client.Options{
			Dial: pipe.Dial, Key: key, Scopes: []string{wire.ScopeRead, wire.ScopeWrite}, Auth: &wire.Auth{DeviceToken: "t"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if !h.server.Connected("device:"+client.DeviceID(key), wire.RoleOperator) {
			t.Error("resumed with another identity")
		}
	})
}

func TestStatus(t *testing.T) {
	pipe := gateway.NewPipe()
	srv := &http.Server{Handler: http.NotFoundHandler()}
	go srv.Serve(pipe)
	defer srv.Close()
	_, err := client.Dial(t.Context(), client.Options{Dial: pipe.Dial})
	if se, ok := errors.AsType[*client.StatusError](err); !ok || se.Code != http.StatusNotFound {
		t.Errorf("Dial: %v", err)
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{err, "connect to gateway: gateway answered 404 Not Found"},
		{&client.CloseError{Code: wire.CloseAuth}, "gateway closed the connection (code 4001)"},
		{&client.CloseError{Code: wire.CloseAuth, Reason: "too slow"}, "gateway closed the connection: too slow"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
