package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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

// paused is a connection whose reads wait while its gate is empty. It records the
// most events that one read returned.
type paused struct {
	net.Conn
	gate chan struct{}
	most int
}

func (p *paused) Read(b []byte) (int, error) {
	<-p.gate
	p.gate <- struct{}{}
	n, err := p.Conn.Read(b)
	p.most = max(p.most, bytes.Count(b[:n], []byte(`"type":"event"`)))
	return n, err
}

// TestFramesTogether checks that frames that are queued while a client does not read
// are sent with one write, which one read of a pipe returns.
func TestFramesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		p := &paused{gate: make(chan struct{}, 1)}
		p.gate <- struct{}{}
		c, err := client.Dial(t.Context(), client.Options{Dial: func(ctx context.Context) (_ net.Conn, err error) {
			p.Conn, err = tb.pipe.Dial(ctx)
			return p, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		synctest.Wait()
		<-p.gate
		// The read that has begun returns the first, and the write of the second waits.
		for i := range 2 {
			tb.bus.Publish(start(chela.RunID(fmt.Sprint("before", i))))
			synctest.Wait()
		}
		for i := range 8 {
			tb.bus.Publish(start(chela.RunID(fmt.Sprint("r", i))))
		}
		synctest.Wait()
		p.gate <- struct{}{}
		synctest.Wait()
		if p.most != 8 {
			t.Errorf("one write had at most %d of 8 events", p.most)
		}
	})
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
				p.say(t, fmt.Sprintf(`{"type":"req","id":"r%d","method":"echo","params":{"text":"%s"}}`, i,
					strings.Repeat("x", size)))
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

// TestPipelined sends many requests behind a slow one. They are executed in order,
// and the gateway stops reading when it has queued enough of them.
func TestPipelined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		p := tb.dial("a")
		p.say(t, connectFrame(t, ""))
		p.say(t, `{"type":"req","id":"0","method":"slow","params":{"text":"0"}}`)
		const n = 100
		var sent atomic.Int64
		go func() {
			for i := range n {
				p.say(t, fmt.Sprintf(`{"type":"req","id":"%d","method":"echo","params":{"text":"%s"}}`, i+1,
					strings.Repeat("x", 2000)))
				sent.Add(1)
			}
		}()
		synctest.Wait()
		if got := sent.Load(); got < 32 || got > 34 { // one is read, one is being sent
			t.Errorf("the gateway read %d requests behind a slow one, want about 32", got)
		}
		p.take()
		time.Sleep(2 * time.Second)
		var ids []string
		for _, line := range p.take() {
			var f struct{ Type, ID string }
			unmarshal(t, strings.TrimPrefix(line, "< "), &f)
			if f.Type == "res" {
				ids = append(ids, f.ID)
			}
		}
		for i, id := range ids {
			if id != fmt.Sprint(i) {
				t.Fatalf("answer %d is that of request %s", i, id)
			}
		}
		if len(ids) != n+1 {
			t.Errorf("%d answers, want %d", len(ids), n+1)
		}
	})
}

// TestNothingAfterTheEnd checks that requests of a client that may not send any
// more are not executed, even if they are queued.
func TestNothingAfterTheEnd(t *testing.T) {
	const slow, mark = `{"type":"req","id":"1","method":"slow","params":{"text":"x"}}`,
		`{"type":"req","id":"2","method":"mark"}`
	for name, act := range map[string]func(*testbed, *testClient){
		"the credential was revoked": func(tb *testbed, p *testClient) {
			p.say(tb.t, slow)
			p.say(tb.t, mark)
			synctest.Wait()
			p.pause() // so that it is not closed yet
			tb.server.Drop("process", nil)
			time.Sleep(2 * time.Second)
			p.resume()
		},
		"too many calls in the wrong role": func(tb *testbed, p *testClient) {
			p.say(tb.t, slow)
			for range 11 {
				p.say(tb.t, `{"type":"req","id":"3","method":"nodes.only"}`)
			}
			p.say(tb.t, mark)
			p.pause() // so that it is not closed yet
			time.Sleep(2 * time.Second)
			p.resume()
		},
		"the credential was revoked during the handshake": func(tb *testbed, p *testClient) {
			p.ws.CloseNow()
			tb.pipe = gateway.NewPipe()
			defer tb.pipe.Close()
			go tb.server.Serve(tb.pipe, tb.server.Upgrade(func(context.Context, access.Attempt) (access.Grant, error) {
				return access.Grant{Principal: chela.Owner("device:x"),
					Check: func(context.Context) error { return errors.New("revoked") }}, nil
			}))
			q := tb.dial("b")
			q.pause() // so that it is not closed yet
			q.say(tb.t, connectFrame(tb.t, ""))
			q.say(tb.t, mark)
			time.Sleep(2 * time.Second)
			q.resume()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				executed := false
				tb := newTable(t, func(o *gateway.Options) {
					o.Methods = rpc.NewSet(append(testMethods(), rpc.New("mark", wire.RoleOperator, "",
						func(context.Context, rpc.Peer, wire.None) (wire.OK, error) {
							executed = true
							return wire.OK{}, nil
						})))
				})
				p := tb.dial("a")
				p.say(t, connectFrame(t, ""))
				act(tb, p)
				synctest.Wait()
				if executed {
					t.Error("a request was executed")
				}
				if n := tb.server.Clients(); n != 0 {
					t.Errorf("%d clients, want none", n)
				}
			})
		})
	}
}

// TestDrop checks whom revoking a credential disconnects.
func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		pipe := gateway.NewPipe()
		defer pipe.Close()
		go tb.server.Serve(pipe, tb.server.Upgrade(gateway.Trust(chela.Owner("other"))))
		for range 2 {
			tb.dial("process").say(t, connectFrame(t, ""))
		}
		other, err := client.Dial(t.Context(), client.Options{Dial: pipe.Dial})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		synctest.Wait()
		connected := func() string {
			var got []string
			for _, credential := range []string{"process", "other", "third"} {
				for _, role := range []string{"", wire.RoleOperator, wire.RoleNode} {
					if tb.server.Connected(credential, role) {
						got = append(got, credential+" "+role)
					}
				}
			}
			return strings.Join(got, ", ")
		}
		if got, want := connected(), "process , process operator, other , other operator"; got != want {
			t.Errorf("connected: %s, want %s", got, want)
		}
		before := 0
		tb.server.Drop("process", func() { before = len(tb.clients[0].take()) })
		synctest.Wait()
		if got, want := connected(), "other , other operator"; got != want {
			t.Errorf("connected after the drop: %s, want %s", got, want)
		}
		for i, p := range tb.clients {
			if got := p.take(); before == 0 || len(got) == 0 || got[len(got)-1] != "! 4001 gateway auth changed" {
				t.Errorf("client %d received %q", i, got)
			}
		}
	})
}

// TestHealth checks the health in the hello, and that clients get it when it
// changes.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		health := wire.Health{OK: true}
		calls, broken := 0, false
		var mu sync.Mutex
		tb := newTable(t, func(o *gateway.Options) {
			o.Health = func(context.Context) (wire.Health, error) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				health.Time, health.DurationMs = wire.At(time.Now()), int64(calls)
				if broken {
					return wire.Health{}, errors.New("no health")
				}
				return health, nil
			}
		})
		time.Sleep(3*time.Minute + 30*time.Second)
		synctest.Wait()
		if calls != 0 {
			t.Errorf("health was checked %d times without a client", calls)
		}
		c := dialTestbed(t, tb, client.Options{})
		defer c.Close()
		if got := string(c.Hello().Snapshot.Health); !strings.Contains(got, `"ok":true`) {
			t.Errorf("the hello has the health %s", got)
		}
		received := func() (got []string) {
			time.Sleep(time.Minute)
			for len(c.Events()) > 0 {
				if e := <-c.Events(); e.Name == wire.EventHealth {
					var h wire.Health
					if err := e.Decode(&h); err != nil || e.State == nil {
						t.Fatalf("%+v: %v", e, err)
					}
					got = append(got, fmt.Sprint(h.OK, " ", e.State.Health))
				}
			}
			return got
		}
		first := c.Hello().Snapshot.State.Health
		for i, step := range []struct {
			change func()
			want   []string
		}{
			{func() {}, []string{fmt.Sprint("true ", first+1)}},
			{func() {}, nil},
			{func() { broken = true }, nil},
			{func() { broken = false }, nil},
			{func() { health.OK = false }, []string{fmt.Sprint("false ", first+2)}},
			{func() {}, nil},
		} {
			mu.Lock()
			step.change()
			mu.Unlock()
			if diff := cmp.Diff(step.want, received()); diff != "" {
				t.Errorf("minute %d (-want +got):\n%s", i, diff)
			}
		}
	})
}

// TestRoster checks that the presence list has the newest clients.
func TestRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		for i := range 70 {
			tb.dial(fmt.Sprint("c", i)).say(t, connectFrame(t, fmt.Sprintf(`{"client":{"id":"cli","version":"%d","platform":"linux","mode":"cli","displayName":"d","deviceFamily":"f","instanceId":"i"}}`, i)))
			synctest.Wait()
		}
		list := tb.server.Roster()
		if n := len(list); n != 64 || list[0].Mode != "gateway" || list[1].Version != "7" || list[63].Version != "69" {
			t.Fatalf("%d entries, from %+v to %+v", n, list[1], list[n-1])
		}
		got := list[63]
		want := wire.Presence{
			Host:     "d",
			Version:  "69",
			Platform: "linux",
			Family:   "f",
			Mode:     "cli",
			Reason:   "connect",
			Text:     "cli",
			Time:     got.Time,
			Instance: "i",
			Roles:    []string{wire.RoleOperator},

			Scopes: []string{wire.ScopeAdmin, wire.ScopeRead, wire.ScopeWrite, wire.ScopeApprovals, wire.ScopePairing},
		}
		if diff := cmp.Diff(want, got); diff != "" || got.Time != wire.At(time.Now()) {
			t.Error(diff)
		}
	})
}

// TestShutdownCalls checks that a call in progress gets its answer when the gateway
// stops, unless it takes too long.
func TestShutdownCalls(t *testing.T) {
	for _, tt := range []struct {
		takes    time.Duration
		answered bool
	}{{100 * time.Millisecond, true}, {time.Minute, false}} {
		t.Run(tt.takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tb := newTable(t, func(o *gateway.Options) {
					o.Methods = rpc.NewSet([]rpc.Method{rpc.New("wait", wire.RoleOperator, "",
						func(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.OK, error) {
							select {
							case <-time.After(tt.takes):
							case <-ctx.Done():
							}
							return wire.OK{OK: true}, nil
						})})
				})
				p := tb.dial("a")
				p.say(t, connectFrame(t, ""))
				p.say(t, `{"type":"req","id":"1","method":"wait"}`)
				synctest.Wait()
				p.take()
				begin := time.Now()
				if err := tb.server.Shutdown(t.Context(), wire.Shutdown{Reason: "gateway stopping"}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				got := strings.Join(p.take(), "\n")
				if strings.Contains(got, `"ok":true`) != tt.answered || !strings.Contains(got, `"event":"shutdown"`) ||
					!strings.HasSuffix(got, "! 1012 service restart") {
					t.Errorf("received %s; want an answer: %v", got, tt.answered)
				}
				if took := time.Since(begin); took > min(tt.takes, 200*time.Millisecond)+50*time.Millisecond {
					t.Errorf("Shutdown took %v", took)
				}
			})
		})
	}
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
		{[]chela.Scope{chela.ScopeAdmin}, []string{wire.ScopeRead, wire.ScopeWrite},
			[]chela.Scope{chela.ScopeRead, chela.ScopeWrite}},
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
			return access.Grant{Principal: chela.Owner("device:x"),
				Check: func(context.Context) error { return errors.New("revoked") }}, nil
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
