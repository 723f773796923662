package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

const mainSession chela.SessionKey = "agent:main:main"

func start(id chela.RunID) chela.Event {
	return chela.Event{Run: id, Session: mainSession, Stream: chela.StreamLifecycle, Phase: chela.PhaseStart}
}

func delta(id chela.RunID, s string) chela.Event {
	return chela.Event{Run: id, Session: mainSession, Stream: chela.StreamAssistant, Delta: s}
}

func end(id chela.RunID, text string) chela.Event {
	return chela.Event{
		Run: id, Session: mainSession, Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd,
		End: &chela.EndEvent{Outcome: "ok", Text: text},
	}
}

// dialTestbed connects a client to the testbed's gateway.
func dialTestbed(t *testing.T, tb *testbed, o client.Options) *client.Client {
	t.Helper()
	o.Dial = tb.pipe.Dial
	c, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMergedText checks that the deltas add up to the complete text, however it
// is split and timed, with at most one delta per 50 ms.
func TestMergedText(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			tb := newTable(t, nil)
			c := dialTestbed(t, tb, client.Options{})
			defer c.Close()
			begin := time.Now()
			tb.bus.Publish(start("r"))
			var want strings.Builder
			for range rnd.IntN(300) {
				s := fmt.Sprint(rnd.IntN(1000), " ")
				want.WriteString(s)
				tb.bus.Publish(delta("r", s))
				time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
			}
			tb.bus.Publish(end("r", want.String()))
			synctest.Wait()

			var text string
			deltas, finals := 0, 0
			for len(c.Events()) > 0 {
				e := <-c.Events()
				if e.Name != wire.EventChat {
					continue
				}
				var chat wire.Chat
				if err := e.Decode(&chat); err != nil {
					t.Fatal(err)
				}
				switch chat.State {
				case wire.StateDelta:
					deltas++
					text += chat.Delta
					if got := chat.Message.Text(); got != text {
						t.Fatalf("message %q, deltas %q", got, text)
					}
				case wire.StateFinal:
					finals++
				}
			}
			if text != want.String() || finals != 1 {
				t.Errorf("seed %d: %d finals and the text\n%q, want\n%q", seed, finals, text, want.String())
			}
			if most := int(time.Since(begin)/gateway.Merge) + 2; deltas > most {
				t.Errorf("seed %d: %d deltas, want at most %d", seed, deltas, most)
			}
		})
	}
}

// TestNothingIsLeft publishes from two goroutines, one of them in a batch, and
// checks that every queued event is sent without a further event.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		c := dialTestbed(t, tb, client.Options{})
		defer c.Close()
		synctest.Wait()
		const sides = 8
		for n := range 300 {
			var wg sync.WaitGroup
			for i := range sides {
				id := chela.RunID(fmt.Sprint(n, ".", i))
				wg.Go(func() { tb.bus.Publish(start(id)); tb.bus.Publish(end(id, "so")) })
				wg.Go(func() {
					tb.server.Broadcast(chela.ScopeRead, wire.EventConfigChanged, wire.ConfigChanged{Hash: string(id)})
				})
			}
			wg.Wait()
			synctest.Wait()
			finals, changes := 0, 0
			for len(c.Events()) > 0 {
				switch e := <-c.Events(); e.Name {
				case wire.EventConfigChanged:
					changes++
				case wire.EventChat:
					finals++
				}
			}
			if finals != sides || changes != sides {
				t.Fatalf("round %d: %d ends and %d changes came, want %d of each", n, finals, changes, sides)
			}
		}
	})
}

func TestSlowConsumer(t *testing.T) {
	t.Run("dropped deltas leave gaps in the sequence numbers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, func(o *gateway.Options) { o.MaxBuffered = 4 << 10 })
			p := tb.dial("slow")
			p.say(t, connectFrame(t, ""))
			synctest.Wait()
			p.take()

			p.pause()
			tb.bus.Publish(start("r"))
			for i := range 200 {
				tb.bus.Publish(delta("r", fmt.Sprintf("word%d ", i)))
				time.Sleep(gateway.Merge)
			}
			p.resume()
			synctest.Wait()
			tb.bus.Publish(end("r", "done"))
			synctest.Wait()

			var seqs []int64
			last := ""
			for _, line := range p.take() {
				var e wire.Event
				unmarshal(t, strings.TrimPrefix(line, "< "), &e)
				seqs = append(seqs, e.Seq)
				last = string(e.Payload)
			}
			if n := seqs[len(seqs)-1]; int(n) <= len(seqs) {
				t.Errorf("%d frames with numbers up to %d: nothing was dropped", len(seqs), n)
			}
			if !strings.Contains(last, `"state":"final"`) {
				t.Errorf("the last frame is %s, want the final", last)
			}
		})
	})
	t.Run("a frame that must not be dropped ends the connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, func(o *gateway.Options) { o.MaxBuffered = 4 << 10 })
			p := tb.dial("slow")
			p.say(t, connectFrame(t, ""))
			synctest.Wait()
			p.take()

			p.pause()
			for i := range 100 {
				id := chela.RunID(fmt.Sprint("r", i))
				tb.bus.Publish(start(id))
				tb.bus.Publish(end(id, "an answer"))
			}
			p.resume()
			synctest.Wait()
			got := p.take()
			if want := "! 1008 slow consumer"; len(got) == 0 || got[len(got)-1] != want {
				t.Errorf("the connection ended with %q, want %q", got[max(0, len(got)-1):], want)
			}
		})
	})
}

// TestSlowConsumerLoses checks that a client that reads slowly gets every final
// event and every response, in order and with consecutive numbers, up to the point
// where the connection is closed as too slow. No length of a frame is an exception.
func TestSlowConsumerLoses(t *testing.T) {
	const buffered = 512 << 10
	for _, size := range []int{4 << 10, 63 << 10, 65 << 10, 200 << 10} {
		for name, sent := range map[string]func(t *testing.T, tb *testbed, p *testClient, i int){
			"finals": func(_ *testing.T, tb *testbed, _ *testClient, i int) {
				id := chela.RunID(fmt.Sprint("r", i))
				tb.bus.Publish(start(id))
				tb.bus.Publish(end(id, strings.Repeat("x", size)))
			},
			"responses": func(t *testing.T, _ *testbed, p *testClient, i int) {
				p.say(t, fmt.Sprintf(`{"type":"req","id":"r%d","method":"echo","params":{"text":"%s"}}`, i, strings.Repeat("x", size)))
			},
		} {
			// many: more than is queued
			for _, many := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s of %d KiB, too many: %v", name, size>>10, many), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						tb := newTable(t, func(o *gateway.Options) { o.MaxBuffered = buffered })
						p := tb.dial("slow")
						p.say(t, connectFrame(t, ""))
						synctest.Wait()
						p.take()

						n := buffered / (2*size + 4<<10) // a final is two events
						if many {
							n = 2*buffered/size + 2
						}
						n = max(n, 1)
						p.pause()
						for i := range n {
							sent(t, tb, p, i)
							synctest.Wait()
						}
						p.resume()
						synctest.Wait()

						got := p.take()
						closed := len(got) > 0 && got[len(got)-1] == "! 1008 slow consumer"
						if closed {
							got = got[:len(got)-1]
						}
						answers, seq := 0, int64(0)
						for _, line := range got {
							var f struct {
								Type    string `json:"type"`
								ID      string `json:"id"`
								Seq     int64  `json:"seq"`
								Event   string `json:"event"`
								Payload struct {
									RunID string `json:"runId"`
									State string `json:"state"`
								} `json:"payload"`
							}
							unmarshal(t, strings.TrimPrefix(line, "< "), &f)
							if f.Type == "event" {
								if seq != 0 && f.Seq != seq+1 && f.Seq != 0 {
									t.Errorf("event %d follows event %d", f.Seq, seq)
								}
								seq = max(seq, f.Seq)
							}
							if id := f.ID + f.Payload.RunID; f.Type == "res" || f.Payload.State == wire.StateFinal {
								if id != fmt.Sprint("r", answers) {
									t.Errorf("got %s %s, want that of r%d", f.Type, id, answers)
								}
								answers++
							}
						}
						switch {
						case closed && !many:
							t.Errorf("closed after %d of %d answers, which fit in the queue", answers, n)
						case !closed && answers != n:
							t.Errorf("got %d of %d answers, and the connection is open: %.300q", answers, n, got)
						case !closed && many:
							t.Errorf("got all %d answers of %d bytes: nothing was slow", n, size)
						}
					})
				})
			}
		}
	}
}

// TestFrameLimits checks the maximum length of a frame before and after the
// hello.
func TestFrameLimits(t *testing.T) {
	pad := func(t *testing.T, frame func(pad string) string, size int) string {
		t.Helper()
		out := frame(strings.Repeat("x", size-len(frame(""))))
		if len(out) != size {
			t.Fatalf("the frame has %d bytes, want %d", len(out), size)
		}
		return out
	}
	connect := func(pad string) string { return connectFrame(t, `{"locale":"`+pad+`"}`) }
	echo := func(pad string) string {
		return `{"type":"req","id":"1","method":"echo","params":{"text":"` + pad + `"}}`
	}
	for _, tt := range []struct {
		name  string
		frame func(string) string
		size  int
		ok    bool
	}{
		{"before the hello, one less", connect, wire.MaxHandshake - 1, true},
		{"before the hello, the limit", connect, wire.MaxHandshake, true},
		{"before the hello, one more", connect, wire.MaxHandshake + 1, false},
		{"after the hello, one less", echo, wire.MaxPayload - 1, true},
		{"after the hello, the limit", echo, wire.MaxPayload, true},
		{"after the hello, one more", echo, wire.MaxPayload + 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newTable(t, nil).dial("a")
				synctest.Wait()
				if tt.size > wire.MaxHandshake+1 {
					p.say(t, connectFrame(t, ""))
					synctest.Wait()
				}
				p.take()
				p.say(t, pad(t, tt.frame, tt.size))
				synctest.Wait()
				got := p.take()
				if len(got) != 1 || strings.Contains(got[0], `"ok":true`) != tt.ok || strings.HasPrefix(got[0], "! 1009") == tt.ok {
					t.Errorf("got %.200q, want it accepted: %v", got, tt.ok)
				}
			})
		})
	}
}

func TestCallEndsWithItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		wait := rpc.New("wait", wire.RoleOperator, "", func(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.OK, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return wire.OK{}, ctx.Err()
		})
		tb := newTable(t, func(o *gateway.Options) { o.Methods = rpc.NewSet([]rpc.Method{wait}) })
		p := tb.dial("a")
		p.say(t, connectFrame(t, ""))
		p.say(t, `{"type":"req","id":"1","method":"wait"}`)
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("the call ended while its client was connected")
		}
		p.ws.CloseNow()
		synctest.Wait()
		if len(ended) == 0 {
			t.Error("the call continues without its client")
		}
	})
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New(slog.New(slog.DiscardHandler))
	s := gateway.New(gateway.Options{Log: slog.New(slog.DiscardHandler), Bus: b, Methods: rpc.NewSet(testMethods())})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, s.Upgrade(gateway.Trust(chela.Owner("socket")))) }()
	c, err := client.Dial(t.Context(), client.Options{Once: true, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Hello().Auth; got.Method != "socket" || !cmp.Equal(got.Scopes, []string{
		wire.ScopeAdmin, wire.ScopeRead, wire.ScopeWrite, wire.ScopeApprovals, wire.ScopePairing,
	}) {
		t.Errorf("accepted as %+v", got)
	}
	var got echo
	if err := c.Call(t.Context(), "echo", echo{Text: "over a socket"}, &got); err != nil || got.Text != "over a socket" {
		t.Errorf("echo = %+v, %v", got, err)
	}
	b.Publish(start("r"))
	b.Publish(delta("r", "Hello"))
	b.Publish(end("r", "Hello"))
	var states []string
	for len(states) == 0 || states[len(states)-1] != wire.StateFinal {
		e := <-c.Events()
		if e.Name == wire.EventChat {
			var chat wire.Chat
			if err := e.Decode(&chat); err != nil {
				t.Fatal(err)
			}
			states = append(states, chat.State)
		}
	}
	if diff := cmp.Diff([]string{wire.StateDelta, wire.StateFinal}, states); diff != "" {
		t.Error(diff)
	}
	if err := s.Shutdown(t.Context(), wire.Shutdown{Reason: "gateway stopping"}); err != nil {
		t.Error(err)
	}
	<-c.Done()
	ce, ok := errors.AsType[*client.CloseError](c.Err())
	if !ok || ce.Code != wire.CloseRestart {
		t.Errorf("Err() = %v, want close code %d", c.Err(), wire.CloseRestart)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func TestShutdownSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		p := tb.dial("a")
		p.say(t, connectFrame(t, ""))
		synctest.Wait()
		p.pause()
		defer p.resume()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := tb.server.Shutdown(ctx, wire.Shutdown{Reason: "gateway stopping"}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("Shutdown took %v, want 2s", took)
		}
	})
}

func TestServeAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		synctest.Wait()
		if err := tb.server.Shutdown(t.Context(), wire.Shutdown{Reason: "gateway stopping"}); err != nil {
			t.Fatal(err)
		}
		l := gateway.NewPipe()
		if err := tb.server.Serve(l, tb.server.Upgrade(gateway.Trust(chela.Owner("x")))); !errors.Is(err, chela.ErrClosed) {
			t.Errorf("Serve after Shutdown: %v, want %v", err, chela.ErrClosed)
		}
		if _, err := l.Dial(t.Context()); !errors.Is(err, chela.ErrClosed) {
			t.Errorf("Dial: %v, want %v", err, chela.ErrClosed)
		}
	})
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		have  []chela.Scope
		asked []string
		want  []chela.Scope
	}{
		{[]chela.Scope{chela.ScopeAdmin}, nil, []chela.Scope{chela.ScopeAdmin}},
		{[]chela.Scope{chela.ScopeAdmin}, []string{}, []chela.Scope{}},
		{[]chela.Scope{chela.ScopeAdmin}, []string{wire.ScopeRead, wire.ScopeWrite}, []chela.Scope{chela.ScopeRead, chela.ScopeWrite}},
		{[]chela.Scope{chela.ScopeRead}, []string{wire.ScopeAdmin, wire.ScopeRead}, []chela.Scope{chela.ScopeRead}},
		{[]chela.Scope{chela.ScopeWrite}, []string{wire.ScopeRead}, []chela.Scope{chela.ScopeRead}},
		{nil, []string{wire.ScopeRead}, []chela.Scope{}},
	} {
		got := gateway.Narrow(chela.Principal{ID: "p", Scopes: tc.have}, tc.asked)
		if diff := cmp.Diff(tc.want, got.Scopes); diff != "" {
			t.Errorf("Narrow(%v, %v) (-want +got):\n%s", tc.have, tc.asked, diff)
		}
	}
}

// TestGrantRevoked checks that revoking a grant during the handshake ends the
// connection, which Drop cannot find yet.
func TestGrantRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		pipe := gateway.NewPipe()
		defer pipe.Close()
		auth := func(context.Context, access.Attempt) (access.Grant, error) {
			return access.Grant{Principal: chela.Owner("device:x"), Check: func(context.Context) error { return errors.New("revoked") }}, nil
		}
		go tb.server.Serve(pipe, tb.server.Upgrade(auth))
		c, err := client.Dial(t.Context(), client.Options{Dial: pipe.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		select {
		case <-c.Done():
		case <-time.After(time.Second):
		}
		if ce, ok := errors.AsType[*client.CloseError](c.Err()); !ok || ce.Code != wire.CloseAuth {
			t.Errorf("the connection ended with %v, want code %d", c.Err(), wire.CloseAuth)
		}
	})
}
