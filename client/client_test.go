package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// testGateway is a gateway in this process.
type testGateway struct {
	bus    *bus.Bus
	server *gateway.Server
	pipe   *gateway.Pipe
}

func newTestGateway(methods ...rpc.Method) *testGateway {
	quiet := slog.New(slog.DiscardHandler)
	h := &testGateway{bus: bus.New(quiet), pipe: gateway.NewPipe()}
	h.server = gateway.New(gateway.Options{Log: quiet, Bus: h.bus, Version: "1.2.3", Methods: rpc.NewSet(methods)})
	go h.server.Serve(h.pipe, h.server.Upgrade(gateway.Trust(chela.Owner("process"))))
	return h
}

// withGateway runs f with a gateway in a synctest bubble.
func withGateway(t *testing.T, f func(t *testing.T, h *testGateway), methods ...rpc.Method) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(methods...)
		f(t, h)
		if err := h.server.Shutdown(context.Background(), wire.Shutdown{Reason: "gateway stopping"}); err != nil {
			t.Error(err)
		}
	})
}

func dial(t *testing.T, h *testGateway, o client.Options) *client.Client {
	t.Helper()
	o.Dial = h.pipe.Dial
	c, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHello(t *testing.T) {
	withGateway(t, func(t *testing.T, h *testGateway) {
		c := dial(t, h, client.Options{Scopes: []string{wire.ScopeRead}})
		defer c.Close()
		hello := c.Hello()
		if hello.Protocol != wire.Version || hello.Server.Version != "1.2.3" ||
			fmt.Sprint(hello.Auth.Scopes) != "[operator.read]" {
			t.Errorf("hello %+v", hello)
		}
	})
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		o    client.Options
		want string
	}{
		{client.Options{}, fmt.Sprint([]string{wire.ScopeAdmin, wire.ScopeRead, wire.ScopeWrite, wire.ScopeApprovals,
			wire.ScopePairing})},
		{client.Options{URL: "ws://127.0.0.1:1"}, "[operator.read operator.write]"},
		{client.Options{URL: "ws://127.0.0.1:1", Scopes: []string{wire.ScopeApprovals}}, "[operator.approvals]"},
	} {
		withGateway(t, func(t *testing.T, h *testGateway) {
			c := dial(t, h, tt.o)
			defer c.Close()
			if got := fmt.Sprint(c.Hello().Auth.Scopes); got != tt.want {
				t.Errorf("%+v: %s, want %s", tt.o, got, tt.want)
			}
		})
	}
}

// TestStarting checks that Dial waits for a gateway that is starting, until its
// context ends.
func TestStarting(t *testing.T) {
	withGateway(t, func(t *testing.T, h *testGateway) {
		pipe := gateway.NewPipe()
		early := &http.Server{Handler: gateway.Starting(nil)}
		go early.Serve(pipe)
		defer early.Close()
		up := time.Now().Add(1700 * time.Millisecond)
		o := client.Options{Once: true, Dial: func(ctx context.Context) (net.Conn, error) {
			if time.Now().Before(up) {
				return pipe.Dial(ctx)
			}
			return h.pipe.Dial(ctx)
		}}
		short, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		if _, err := client.Dial(short, o); err == nil || !strings.Contains(err.Error(), "gateway starting") {
			t.Errorf("within 900 ms: %v", err)
		}
		c, err := client.Dial(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if late := time.Since(up); late > 500*time.Millisecond {
			t.Errorf("connected %v after the gateway was up", late)
		}
	})
}

func TestCall(t *testing.T) {
	type text struct {
		Text string `json:"text"`
	}
	methods := []rpc.Method{
		rpc.New("echo", wire.RoleOperator, chela.ScopeRead,
			func(_ context.Context, _ rpc.Peer, p text) (text, error) { return p, nil }),
		rpc.New("hang", wire.RoleOperator, chela.ScopeRead, func(ctx context.Context, p rpc.Peer, _ wire.None) (text, error) {
			p.Yield()
			<-ctx.Done()
			return text{}, ctx.Err()
		}),
		rpc.New("twice", wire.RoleOperator, chela.ScopeRead, func(_ context.Context, p rpc.Peer, in text) (text, error) {
			p.Accept(wire.Accepted{RunID: in.Text, Status: wire.StatusAccepted})
			time.Sleep(time.Second)
			if in.Text == "bad" {
				return in, wire.Errorf(wire.Unavailable, "deliberate failure")
			}
			return in, nil
		}),
	}
	withGateway(t, func(t *testing.T, h *testGateway) {
		c := dial(t, h, client.Options{})
		defer c.Close()
		ctx := t.Context()

		var got text
		if err := c.Call(ctx, "echo", text{"hi"}, &got); err != nil || got.Text != "hi" {
			t.Errorf("echo = %+v, %v", got, err)
		}
		if err := c.Call(ctx, "echo", text{"hi"}, nil); err != nil {
			t.Errorf("echo with a nil result: %v", err)
		}

		err := c.Call(ctx, "echo", nil, nil)
		we, ok := errors.AsType[*wire.Error](err)
		if !ok || we.Code != wire.InvalidRequest ||
			err.Error() != "echo: invalid echo params: must have required property 'text'" {
			t.Errorf("echo without parameters: %v", err)
		}

		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := c.Call(short, "hang", wire.None{}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hang: %v, want the deadline", err)
		}
		if err := c.Call(ctx, "echo", text{"still there"}, &got); err != nil || got.Text != "still there" {
			t.Errorf("echo after an abandoned call = %+v, %v", got, err)
		}

		var first wire.Accepted
		if err := c.Call(ctx, "twice", text{"a"}, &first); err != nil || first.RunID != "a" {
			t.Errorf("Call takes %+v, %v; want the first answer", first, err)
		}
		accepted := ""
		err = c.Await(ctx, "twice", text{"b"}, func(a wire.Accepted) { accepted = a.RunID }, &got)
		if err != nil || accepted != "b" || got.Text != "b" {
			t.Errorf("Await: accepted %q, then %+v, %v", accepted, got, err)
		}
		if err := c.Await(ctx, "twice", text{"bad"}, nil, &got); err == nil || err.Error() != "twice: deliberate failure" {
			t.Errorf("Await of a run that fails: %v", err)
		}
	}, methods...)
}

func TestUnreadEvents(t *testing.T) {
	ping := rpc.New("ping", wire.RoleOperator, "",
		func(context.Context, rpc.Peer, wire.None) (wire.OK, error) { return wire.OK{OK: true}, nil })
	withGateway(t, func(t *testing.T, h *testGateway) {
		c := dial(t, h, client.Options{Buffer: 4})
		defer c.Close()
		for i := range 10 {
			h.bus.Publish(chela.Event{Run: chela.RunID(fmt.Sprint(i)), Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
		}
		var ok wire.OK
		if err := c.Call(t.Context(), "ping", nil, &ok); err != nil || !ok.OK {
			t.Fatalf("ping behind unread events: %v, %v", ok, err)
		}
		var seqs []int64
		for range 4 {
			seqs = append(seqs, (<-c.Events()).Seq)
		}
		if e := <-c.Events(); e.Name != client.EventReset {
			t.Errorf("after the buffered events: %s, want %s", e.Name, client.EventReset)
		}
		h.bus.Publish(chela.Event{Run: "last", Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
		seqs = append(seqs, (<-c.Events()).Seq)
		if got := fmt.Sprint(seqs); got != "[1 2 3 4 11]" {
			t.Errorf("sequence numbers %v, want [1 2 3 4 11]", got)
		}
	}, ping)
}

func TestEnd(t *testing.T) {
	hang := rpc.New("hang", wire.RoleOperator, "", func(ctx context.Context, p rpc.Peer, _ wire.None) (wire.OK, error) {
		<-ctx.Done()
		return wire.OK{}, ctx.Err()
	})
	t.Run("Close", func(t *testing.T) {
		withGateway(t, func(t *testing.T, h *testGateway) {
			c := dial(t, h, client.Options{})
			if err := c.Err(); err != nil {
				t.Errorf("Err of an open connection: %v", err)
			}
			failed := make(chan error, 1)
			go func() { failed <- c.Call(t.Context(), "hang", nil, nil) }()
			synctest.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := <-failed; !errors.Is(err, client.ErrClosed) {
				t.Errorf("pending call: %v, want %v", err, client.ErrClosed)
			}
			if _, open := <-c.Events(); open || !errors.Is(c.Err(), client.ErrClosed) {
				t.Errorf("events open: %v, Err: %v", open, c.Err())
			}
			if err := c.Call(t.Context(), "hang", nil, nil); !errors.Is(err, client.ErrClosed) {
				t.Errorf("a call after Close: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
		}, hang)
	})
	t.Run("the gateway stops", func(t *testing.T) {
		withGateway(t, func(t *testing.T, h *testGateway) {
			c := dial(t, h, client.Options{Once: true})
			if err := h.server.Shutdown(t.Context(), wire.Shutdown{Reason: "gateway stopping"}); err != nil {
				t.Fatal(err)
			}
			<-c.Done()
			ce, ok := errors.AsType[*client.CloseError](c.Err())
			if !ok || ce.Code != wire.CloseRestart || ce.Reason != "service restart" {
				t.Errorf("Err: %v", c.Err())
			}
		})
	})
	t.Run("refused", func(t *testing.T) {
		withGateway(t, func(t *testing.T, h *testGateway) {
			_, err := client.Dial(t.Context(), client.Options{Dial: h.pipe.Dial, Role: "guest"})
			if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.InvalidRequest {
				t.Errorf("Dial in an unknown role: %v", err)
			}
		})
	})
	t.Run("nobody listens", func(t *testing.T) {
		none := errors.New("no such socket")
		_, err := client.Dial(t.Context(), client.Options{Dial: func(context.Context) (net.Conn, error) { return nil, none }})
		if !errors.Is(err, none) {
			t.Errorf("Dial: %v, want %v", err, none)
		}
	})
}

func TestQuietGateway(t *testing.T) {
	withGateway(t, func(t *testing.T, h *testGateway) {
		c := dial(t, h, client.Options{})
		defer c.Close()
		time.Sleep(time.Hour) // only ticks happen
		if err := c.Err(); err != nil {
			t.Errorf("after an hour: %v", err)
		}
	})
}

func TestSilentGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := gateway.NewPipe()
		// testSilent simulates a gateway that sends its hello and
		// nothing more.
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer ws.CloseNow()
			say := func(s string) { ws.Write(context.Background(), websocket.MessageText, []byte(s)) }
			say(`{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}`)
			for {
				if _, _, err := ws.Read(context.Background()); err != nil {
					return
				}
				say(`{"type":"res","id":"connect","ok":true,"payload":{"policy":{"tickIntervalMs":30000}}}`)
			}
		})}
		go srv.Serve(pipe)
		defer srv.Close()
		c, err := client.Dial(t.Context(), client.Options{Dial: pipe.Dial, Once: true})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		<-c.Done()
		if took := time.Since(begin); took != time.Minute || !errors.Is(c.Err(), client.ErrSilent) {
			t.Errorf("after %v: %v; want %v after a minute", took, c.Err(), client.ErrSilent)
		}
	})
}
