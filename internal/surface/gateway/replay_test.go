package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/wire"
)

// flakyNetwork is the network between a client and the testbed's gateway.
type flakyNetwork struct {
	pipe *gateway.Pipe

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func (w *flakyNetwork) dial(ctx context.Context) (net.Conn, error) {
	w.mu.Lock()
	down := w.down
	w.mu.Unlock()
	if down {
		return nil, errors.New("down")
	}
	c, err := w.pipe.Dial(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return c, nil
}

// cut closes the connections; down makes further dials fail.
func (w *flakyNetwork) cut(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// flakyClient connects a client over a network that can be cut.
func flakyClient(t *testing.T, tb *testbed, o client.Options) (*client.Client, *flakyNetwork) {
	t.Helper()
	w := &flakyNetwork{pipe: tb.pipe}
	o.Dial = w.dial
	if o.Delay == nil {
		o.Delay = func(int, error) time.Duration { return time.Second }
	}
	c, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, w
}

// drain returns the unread events. Deltas are concatenated by run and omitted,
// as are events about the gateway's state.
func drain(t *testing.T, c *client.Client, text map[string]string) []string {
	t.Helper()
	synctest.Wait()
	var out []string
	for len(c.Events()) > 0 {
		e := <-c.Events()
		var chat wire.Chat
		var agent wire.Agent
		switch e.Name {
		case wire.EventTick, wire.EventPresence, wire.EventHealth, wire.EventSessionsChanged:
			continue
		case wire.EventChat:
			if err := e.Decode(&chat); err != nil {
				t.Fatal(err)
			}
		case wire.EventAgent:
			if err := e.Decode(&agent); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case chat.State == wire.StateDelta && chat.Replace:
			text[chat.RunID] = chat.Delta
		case chat.State == wire.StateDelta:
			text[chat.RunID] += chat.Delta
		case agent.Stream == wire.StreamAssistant:
		default:
			out = append(out, e.Name+" "+string(e.Payload))
		}
	}
	return out
}

// TestReplay disconnects a client at random during runs and checks that it
// receives the same events as a client that stays connected, once and in the
// same order.
func TestReplay(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			tb := newTable(t, nil)
			o := client.Options{Caps: []string{wire.CapToolEvents}}
			steady := dialTestbed(t, tb, o)
			defer steady.Close()
			shaky, net := flakyClient(t, tb, o)
			for _, c := range []*client.Client{steady, shaky} {
				if err := c.Call(t.Context(), "sessions.messages.subscribe", wire.SessionKey{Key: string(mainSession)},
					nil); err != nil {
					t.Fatal(err)
				}
			}
			want, got := map[string]string{}, map[string]string{}
			var wantEvents, gotEvents []string
			cuts, ended := 0, map[chela.RunID]bool{}
			for i := range 60 {
				act(tb, rnd, i, ended)
				switch rnd.IntN(5) {
				case 0:
					time.Sleep(time.Duration(rnd.IntN(100)) * time.Millisecond)
				case 1:
					net.cut(rnd.IntN(2) == 0)
					cuts++
				case 2:
					net.cut(false)
					cuts++
					time.Sleep(3 * time.Second)
				}
				gotEvents = append(gotEvents, drain(t, shaky, got)...)
			}
			net.cut(false)
			time.Sleep(10 * time.Second)
			wantEvents = drain(t, steady, want)
			for _, e := range append(gotEvents, drain(t, shaky, got)...) {
				switch {
				case strings.HasPrefix(e, client.EventReset):
					t.Errorf("seed %d: %s", seed, e)
				case !strings.HasPrefix(e, "client."):
					wantEvents = match(t, seed, wantEvents, e)
				}
			}
			if len(wantEvents) > 0 {
				t.Errorf("seed %d: %d events are missing, the first is %s", seed, len(wantEvents), wantEvents[0])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("seed %d, %d cuts: text (-steady +shaky):\n%s", seed, cuts, diff)
			}
		})
	}
}

// match removes e from the start of the expected events.
func match(t *testing.T, seed uint64, want []string, e string) []string {
	t.Helper()
	if len(want) == 0 || want[0] != e {
		t.Fatalf("seed %d: got %s, want %q", seed, e, append(want, "nothing")[0])
	}
	return want[1:]
}

// act advances one of three runs, unless it has ended.
func act(tb *testbed, rnd *rand.Rand, i int, ended map[chela.RunID]bool) {
	id := chela.RunID(fmt.Sprint("r", rnd.IntN(3), "-", i/20))
	if ended[id] {
		return
	}
	switch rnd.IntN(6) {
	case 0:
		tb.bus.Publish(start(id))
	case 1:
		tb.bus.Publish(chela.Event{Run: id, Session: mainSession, Stream: chela.StreamLifecycle, Phase: chela.PhaseModel})
	case 2:
		tb.bus.Publish(chela.Event{
			Run: id, Session: mainSession, Stream: chela.StreamMessage, Phase: "assistant",
			Data: session.Entry{
				ID:      fmt.Sprint("e", i),
				Seq:     int64(i),
				Kind:    session.KindMessage,
				Run:     id,
				Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("stored")}},
			},
		})
	case 3:
		if i%20 > 15 {
			tb.bus.Publish(end(id, "the end"))
			ended[id] = true
			return
		}
		fallthrough
	default:
		tb.bus.Publish(start(id)) // it may be active already
		tb.bus.Publish(delta(id, fmt.Sprint("w", i, " ")))
	}
}

// outcomes reads up to the event that reports the result of reconnecting.
func outcomes(c *client.Client) string {
	synctest.Wait()
	for len(c.Events()) > 0 {
		switch e := <-c.Events(); e.Name {
		case client.EventResumed, client.EventReset:
			return e.Name + " " + string(e.Payload)
		}
	}
	return ""
}

func TestResume(t *testing.T) {
	t.Run("more was missed than is retained", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, nil)
			c, net := flakyClient(t, tb, client.Options{})
			net.cut(true)
			synctest.Wait()
			for i := range 400 {
				id := chela.RunID(fmt.Sprint("r", i))
				tb.bus.Publish(start(id))
				tb.bus.Publish(end(id, strings.Repeat("x", 10_000)))
			}
			net.cut(false)
			time.Sleep(5 * time.Second)
			if got := outcomes(c); got != `client.reset {"reason":"old"}` {
				t.Errorf("reconnected with %s", got)
			}
		})
	})
	for name, change := range map[string]func(*chela.Principal){
		"fewer scopes are another identity":     func(p *chela.Principal) { p.Scopes = []chela.Scope{chela.ScopeApprovals} },
		"another device is another identity":    func(p *chela.Principal) { p.Credential = "device:other" },
		"another principal is another identity": func(p *chela.Principal) { p.ID = "guest" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tb := newTable(t, nil)
				who := chela.Owner("process")
				pipe := gateway.NewPipe()
				defer pipe.Close()
				go tb.server.Serve(pipe, tb.server.Upgrade(func(context.Context, access.Attempt) (access.Grant, error) {
					return access.Grant{Principal: who}, nil
				}))
				c, net := flakyClient(t, &testbed{pipe: pipe}, client.Options{})
				change(&who)
				tb.bus.Publish(start("r"))
				net.cut(true)
				tb.bus.Publish(end("r", "secret"))
				net.cut(false)
				time.Sleep(5 * time.Second)
				if got := outcomes(c); got != `client.reset {"reason":"gone"}` {
					t.Errorf("reconnected with %s", got)
				}
				for len(c.Events()) > 0 {
					if e := <-c.Events(); strings.Contains(string(e.Payload), "secret") {
						t.Errorf("received %s", e.Payload)
					}
				}
			})
		})
	}
	t.Run("the credential was revoked meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, nil)
			c, net := flakyClient(t, tb, client.Options{})
			net.cut(true)
			synctest.Wait()
			tb.server.Drop("process", nil)
			net.cut(false)
			time.Sleep(5 * time.Second)
			if got := outcomes(c); got != `client.reset {"reason":"gone"}` {
				t.Errorf("reconnected with %s", got)
			}
		})
	})
	t.Run("resuming replaces a connection that is still open on the server", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, nil)
			pipe := gateway.NewPipe()
			defer pipe.Close()
			l := vanishing{pipe, make(chan *vanished, 2)}
			go tb.server.Serve(l, tb.server.Upgrade(gateway.Trust(chela.Owner("process"))))
			c, net := flakyClient(t, &testbed{pipe: pipe}, client.Options{})
			(<-l.conns).vanish()
			tb.bus.Publish(start("r"))
			net.cut(false)
			time.Sleep(2 * time.Second)
			if got := outcomes(c); got != `client.resumed {"missed":1}` {
				t.Errorf("reconnected with %s", got)
			}
			if n := tb.server.Clients(); n != 1 {
				t.Errorf("%d clients, want 1", n)
			}
		})
	})
	t.Run("somebody else's connection is not replaced", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, nil)
			first := tb.dial("first")
			first.say(t, connectFrame(t, `{"caps":["event-cursor"]}`))
			synctest.Wait()
			tb.pipe = gateway.NewPipe()
			defer tb.pipe.Close()
			go tb.server.Serve(tb.pipe, tb.server.Upgrade(gateway.Trust(chela.Owner("device:other"))))
			second := tb.dial("second")
			from := first.hello
			second.say(t, connectFrame(t, fmt.Sprintf(`{"caps":["event-cursor"],"resume":{"bootId":%q,"connId":%q,"cursor":%d}}`,
				from.Server.BootID, from.Server.ConnID, from.Cursor)))
			synctest.Wait()
			if r := second.hello.Resumed; r == nil || r.Reset != wire.ResetGone || !tb.server.Connected("process", "") ||
				tb.server.Clients() != 2 {
				t.Errorf("resumed %+v, %d clients", r, tb.server.Clients())
			}
		})
	})
	t.Run("a slow client is disconnected and told that it missed events", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, func(o *gateway.Options) { o.MaxBuffered = 64 << 10 })
			gate := make(chan struct{})
			slow := true
			c, err := client.Dial(t.Context(), client.Options{
				Delay: func(int, error) time.Duration { return time.Second },
				Dial: func(ctx context.Context) (net.Conn, error) {
					conn, err := tb.pipe.Dial(ctx)
					if err == nil && slow {
						slow = false
						return &gated{Conn: conn, free: 1 << 14, gate: gate}, nil
					}
					return conn, err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for i := range 300 {
				id := chela.RunID(fmt.Sprint("r", i))
				tb.bus.Publish(start(id))
				tb.bus.Publish(end(id, strings.Repeat("x", 1000)))
			}
			time.Sleep(6 * time.Second)
			close(gate)
			time.Sleep(10 * time.Second)
			if got := outcomes(c); got != `client.reset {"reason":"old"}` {
				t.Errorf("reconnected with %s", got)
			}
			tb.bus.Publish(start("next"))
			synctest.Wait()
			if len(c.Events()) == 0 {
				t.Error("nothing is replayed after a reset")
			}
		})
	})
}

// TestResumeRequests checks which requests to resume a connection succeed, and what
// is missed and restored.
func TestResumeRequests(t *testing.T) {
	const caps = `"caps":["event-cursor","tool-events"]`
	again := func(tb *testbed, name, more string, from wire.Hello) *testClient {
		p := tb.dial(name)
		p.say(tb.t, connectFrame(tb.t, fmt.Sprintf(`{%s,"resume":{"bootId":%q,"connId":%q,"cursor":%d}}`, more,
			from.Server.BootID, from.Server.ConnID, from.Cursor)))
		synctest.Wait()
		return p
	}
	for _, tt := range []struct {
		name string
		more string // "": caps
		act  func(tb *testbed, first *wire.Hello)
		want string
	}{
		{"streamed text is missed once", "", func(tb *testbed, _ *wire.Hello) {
			for range 5 {
				tb.bus.Publish(delta("r", "word "))
				time.Sleep(gateway.Merge)
			}
		}, `resumed 2`}, // as steps and as chat
		{"text on both sides of a tool", "", func(tb *testbed, _ *wire.Hello) {
			tb.bus.Publish(delta("r", "before"))
			tb.bus.Publish(chela.Event{
				Run:     "r",
				Session: mainSession,
				Stream:  chela.StreamTool,
				Phase:   chela.PhaseStart,
				Tool:    &chela.ToolEvent{ID: "t"},
			})
			tb.bus.Publish(chela.Event{Run: "r", Session: mainSession, Stream: chela.StreamLifecycle, Phase: chela.PhaseModel})
			time.Sleep(gateway.Merge)
			tb.bus.Publish(delta("r", "after"))
		}, `resumed 6`},
		{"just in time", "", func(*testbed, *wire.Hello) { time.Sleep(2*time.Minute - time.Second) }, `resumed 0`},
		{"something missed, just in time", "", func(tb *testbed, _ *wire.Hello) {
			tb.bus.Publish(chela.Event{Run: "r", Session: mainSession, Stream: chela.StreamNotice, Text: "meanwhile"})
			time.Sleep(2*time.Minute - time.Second)
		}, `resumed 1`},
		{"too late", "", func(*testbed, *wire.Hello) { time.Sleep(2 * time.Minute) }, `reset gone`},
		{"the gateway was restarted", "", func(_ *testbed, first *wire.Hello) { first.Server.BootID = "other" },
			`reset boot`},
		{"an unknown connection", "", func(_ *testbed, first *wire.Hello) { first.Server.ConnID = "other" }, `reset gone`},
		{"no connection", "", func(_ *testbed, first *wire.Hello) { first.Server.ConnID = "" }, `reset gone`},
		{"a cursor of the future", "", func(_ *testbed, first *wire.Hello) { first.Cursor++ }, `reset old`},
		{"other capabilities", `"caps":["event-cursor"]`, func(*testbed, *wire.Hello) {}, `reset gone`},
		{"another role", caps + `,"role":"node"`, func(*testbed, *wire.Hello) {}, `reset gone`},
		{"a client that cannot resume", `"caps":["tool-events"]`, func(*testbed, *wire.Hello) {}, `nothing`},
		{"an old client", caps + `,"minProtocol":3,"maxProtocol":3`, func(*testbed, *wire.Hello) {}, `nothing`},
		{"as much as a slow client could take", "", func(tb *testbed, _ *wire.Hello) {
			tb.bus.Publish(chela.Event{Run: "r", Session: mainSession, Stream: chela.StreamNotice,
				Text: strings.Repeat("x", 31<<10)})
		}, `resumed 1`},
		{"more than a slow client could take", "", func(tb *testbed, _ *wire.Hello) {
			tb.bus.Publish(chela.Event{Run: "r", Session: mainSession, Stream: chela.StreamNotice,
				Text: strings.Repeat("x", 32<<10)})
		}, `reset old`},
		{"the hello of the last attempt was lost", "", func(tb *testbed, first *wire.Hello) {
			p := again(tb, "lost", caps, *first)
			if p.hello.Resumed == nil || p.hello.Resumed.Reset != "" {
				tb.t.Errorf("first attempt: %+v", p.hello.Resumed)
			}
			tb.bus.Publish(chela.Event{Run: "r", Session: mainSession, Stream: chela.StreamNotice, Text: "meanwhile"})
			p.ws.CloseNow()
			synctest.Wait()
		}, `resumed 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tb := newTable(t, func(o *gateway.Options) { o.MaxBuffered = 64 << 10 })
				p := tb.dial("first")
				p.say(t, connectFrame(t, "{"+caps+"}"))
				p.say(t, `{"type":"req","id":"1","method":"start","params":{"text":"r"}}`)
				p.say(t, `{"type":"req","id":"2","method":"sessions.messages.subscribe","params":{"key":"agent:main:other"}}`)
				synctest.Wait()
				p.ws.CloseNow()
				synctest.Wait()
				tb.bus.Publish(start("r"))
				first := p.hello
				first.Cursor++ // it has seen the start
				tt.act(tb, &first)
				if tt.more == "" {
					tt.more = caps
				}
				q := again(tb, "again", tt.more, first)
				got := "nothing"
				switch r := q.hello.Resumed; {
				case r != nil && r.Reset != "":
					got = "reset " + r.Reset
				case r != nil:
					got = fmt.Sprint("resumed ", r.Missed)
				}
				if got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				q.take()
				tb.bus.Publish(chela.Event{
					Run:     "r",
					Session: mainSession,
					Stream:  chela.StreamTool,
					Phase:   chela.PhaseStart,
					Tool:    &chela.ToolEvent{ID: "t"},
				})
				tb.bus.Publish(chela.Event{Session: "agent:main:other", Stream: chela.StreamSession, Phase: chela.PhasePatched})
				synctest.Wait()
				events := strings.Join(q.take(), "\n")
				resumed := strings.HasPrefix(tt.want, "resumed")
				if tool := strings.Contains(events, `"stream":"tool"`); tool != resumed {
					t.Errorf("receives the tools of its run: %v, want %v", tool, resumed)
				}
				if changed := strings.Contains(events, `"sessions.changed"`); changed != resumed {
					t.Errorf("receives the changes of its session: %v, want %v", changed, resumed)
				}
			})
		})
	}
}

// gated is a connection that stops being read after a number of bytes until the
// gate opens.
type gated struct {
	net.Conn
	free int
	gate chan struct{}
}

func (g *gated) Read(p []byte) (int, error) {
	if g.free <= 0 {
		<-g.gate
	}
	n, err := g.Conn.Read(p)
	g.free -= n
	return n, err
}

// vanished is the server's end of a connection whose other end vanished: writes
// are discarded, and reads block.
type vanished struct {
	net.Conn
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	gone   bool
}

func (v *vanished) vanish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone = true
}

func (v *vanished) isGone() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gone
}

func (v *vanished) Write(p []byte) (int, error) {
	if v.isGone() {
		return len(p), nil
	}
	return v.Conn.Write(p)
}

func (v *vanished) Read(p []byte) (int, error) {
	n, err := v.Conn.Read(p)
	if err != nil && v.isGone() {
		<-v.closed
	}
	return n, err
}

func (v *vanished) Close() error {
	v.once.Do(func() { close(v.closed) })
	return v.Conn.Close()
}

// vanishing is a listener whose connections can vanish.
type vanishing struct {
	net.Listener
	conns chan *vanished
}

func (l vanishing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &vanished{Conn: c, closed: make(chan struct{})}
	l.conns <- v
	return v, nil
}

// TestHalfOpen checks that a vanished client is removed from the presence list
// and that a silent one is not.
func TestHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		pipe := gateway.NewPipe()
		defer pipe.Close()
		l := vanishing{pipe, make(chan *vanished, 1)}
		go tb.server.Serve(l, tb.server.Upgrade(gateway.Trust(chela.Owner("process"))))
		quiet := dialTestbed(t, tb, client.Options{})
		defer quiet.Close()
		lost, err := client.Dial(t.Context(), client.Options{Dial: pipe.Dial, Once: true})
		if err != nil {
			t.Fatal(err)
		}
		defer lost.Close()
		time.Sleep(time.Hour)
		if n := tb.server.Clients(); n != 2 {
			t.Fatalf("%d clients after a quiet hour, want 2", n)
		}
		(<-l.conns).vanish()
		time.Sleep(2*wire.TickInterval + 16*time.Second)
		if n := tb.server.Clients(); n != 1 {
			t.Errorf("%d clients, want 1: the other one vanished", n)
		}
		if quiet.Err() != nil {
			t.Errorf("silent client: %v", quiet.Err())
		}
	})
	t.Run("writes block", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tb := newTable(t, nil)
			p := tb.dial("p")
			p.say(t, connectFrame(t, ""))
			synctest.Wait()
			p.pause()
			defer p.resume()
			time.Sleep((3 + 3) * wire.TickInterval)
			if n := tb.server.Clients(); n != 0 {
				t.Errorf("%d clients, want none", n)
			}
		})
	})
}
