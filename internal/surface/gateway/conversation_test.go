package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

var update = flag.Bool("update", false, "rewrite the conversations in testdata")

// TestConversations plays the files of testdata. Each line of a conversation
// that starts with a verb is executed. The lines below it, which start with the
// name of a client and "<" or "!", are what the clients received: frames, and
// the code with which the connection was closed.
//
//	dial NAME            open a connection
//	NAME> TEXT           send a text frame
//	hello NAME [JSON]    open a connection and connect; JSON is merged into the parameters
//	close NAME
//	publish JSON         publish an event on the bus
//	store ROLE TEXT      publish that a message was stored
//	ask ID, decide ID    publish that an approval was requested, resolved
//	sleep DURATION
//	shutdown
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { playFile(t, file) })
	}
}

func playFile(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range ar.Files {
		t.Run(f.Name, func(t *testing.T) {
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(f.Data)) })
			if *update {
				ar.Files[i].Data = []byte(got)
				return
			}
			if diff := cmp.Diff(string(f.Data), got); diff != "" {
				t.Errorf("conversation (-want +got); -update rewrites it:\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// testbed is a gateway with clients.
type testbed struct {
	t       *testing.T
	bus     *bus.Bus
	server  *gateway.Server
	pipe    *gateway.Pipe
	clients []*testClient
	seq     int64
}

// testClient is a client that records what it receives.
type testClient struct {
	name string
	ws   *websocket.Conn
	gate chan struct{} // empty: the client does not read

	mu    sync.Mutex
	got   []string
	hello wire.Hello // as received
}

func newTable(t *testing.T, change func(*gateway.Options)) *testbed {
	tb := &testbed{t: t, bus: bus.New(slog.New(slog.DiscardHandler)), pipe: gateway.NewPipe()}
	o := gateway.Options{
		Log: slog.New(slog.DiscardHandler), Version: "1.2.3", Bus: tb.bus, Methods: rpc.NewSet(testMethods()),
		Defaults: func() wire.SessionDefaults {
			return wire.SessionDefaults{
				Agent:      "main",
				MainKey:    "main",
				MainSess:   "agent:main:main",
				Scope:      "per-sender",
				Configured: true,
			}
		},
		Session: func(_ context.Context, key chela.SessionKey) (*wire.Session, error) {
			row := &wire.Session{Key: string(key), Kind: "direct", Runs: []string{}}
			if key == "agent:main:busy" {
				row.Active, row.Runs = true, []string{"b1"}
			}
			return row, nil
		},
		ConfigPath: "/state/chela.json", StateDir: "/state",
	}
	if change != nil {
		change(&o)
	}
	tb.server = gateway.New(o)
	served := make(chan error, 1)
	go func() { served <- tb.server.Serve(tb.pipe, tb.server.Upgrade(gateway.Trust(chela.Owner("process")))) }()
	t.Cleanup(func() {
		for _, p := range tb.clients {
			p.ws.CloseNow()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := tb.server.Shutdown(ctx, wire.Shutdown{Reason: "gateway stopping"}); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil && !errors.Is(err, chela.ErrClosed) { // a short test may shut down before Serve begins
			t.Errorf("Serve: %v", err)
		}
	})
	return tb
}

type echo struct {
	Text  string `json:"text"`
	Times int    `json:"times,omitempty"`
}

// testMethods are methods with different behavior.
func testMethods() []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New("echo", op, chela.ScopeRead, func(_ context.Context, _ rpc.Peer, p echo) (echo, error) { return p, nil }),
		rpc.New("write", op, chela.ScopeWrite,
			func(context.Context, rpc.Peer, wire.None) (wire.OK, error) { return wire.OK{OK: true}, nil }),
		rpc.New("nodes.only", wire.RoleNode, "",
			func(context.Context, rpc.Peer, wire.None) (wire.OK, error) { return wire.OK{}, nil }),
		rpc.New("start", op, chela.ScopeWrite, func(_ context.Context, p rpc.Peer, in echo) (wire.OK, error) {
			p.TrackRun(chela.RunID(in.Text))
			time.Sleep(time.Duration(in.Times) * time.Second)
			return wire.OK{OK: true}, nil
		}),
		rpc.New("slow", op, chela.ScopeRead, func(_ context.Context, _ rpc.Peer, in echo) (echo, error) {
			time.Sleep(time.Second)
			return in, nil
		}),
		rpc.New("twice", op, chela.ScopeRead, func(_ context.Context, p rpc.Peer, in echo) (echo, error) {
			p.Accept(wire.Accepted{RunID: in.Text, Status: wire.StatusAccepted})
			time.Sleep(time.Second)
			return in, nil
		}),
		rpc.New("fail", op, chela.ScopeRead, func(_ context.Context, _ rpc.Peer, in echo) (any, error) {
			switch in.Text {
			case "conflict":
				return nil, chela.Errorf(chela.CodeConflict, "changed since it was read")
			case "unavailable":
				return nil, &chela.Error{Code: chela.CodeUnavailable, Message: "not now", Hint: "chela doctor"}
			case "both":
				return echo{Text: "not for clients"}, chela.Errorf(chela.CodeConflict, "changed meanwhile")
			case "payload":
				return nil, &rpc.PayloadError{Payload: echo{Text: "what there is"}, Err: wire.Errorf(wire.Unavailable,
					"it went wrong")}
			}
			panic("programming error")
		}),
		rpc.New("sessions.subscribe", op, chela.ScopeRead,
			func(_ context.Context, p rpc.Peer, _ wire.None) (wire.Subscribed, error) {
				p.Subscribe("", true)
				return wire.Subscribed{Subscribed: true}, nil
			}),
		rpc.New("sessions.messages.subscribe", op, chela.ScopeRead,
			func(_ context.Context, p rpc.Peer, in wire.SessionKey) (wire.Subscribed, error) {
				p.Subscribe(chela.SessionKey(in.Key), true)
				return wire.Subscribed{Subscribed: true, Key: in.Key}, nil
			}),
		rpc.New("sessions.messages.unsubscribe", op, chela.ScopeRead,
			func(_ context.Context, p rpc.Peer, in wire.SessionKey) (wire.Subscribed, error) {
				p.Subscribe(chela.SessionKey(in.Key), false)
				return wire.Subscribed{Key: in.Key}, nil
			}),
	}
}

// play executes a script and returns it with the frames received.
func play(t *testing.T, script string) string {
	tb := newTable(t, nil)
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if heard.MatchString(line) {
			continue
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		tb.do(line)
		synctest.Wait()
		for _, p := range tb.clients {
			for _, s := range p.take() {
				fmt.Fprintln(&out, p.name+s)
			}
		}
	}
	return out.String()
}

var heard = regexp.MustCompile(`^\w+[<!] `)

func (tb *testbed) do(line string) {
	tb.t.Helper()
	if name, text, ok := strings.Cut(line, "> "); ok && !strings.Contains(name, " ") {
		tb.client(name).say(tb.t, text)
		return
	}
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "dial":
		tb.dial(rest)
	case "hello":
		name, more, _ := strings.Cut(rest, " ")
		tb.dial(name).say(tb.t, connectFrame(tb.t, more))
	case "close":
		tb.client(rest).ws.Close(websocket.StatusNormalClosure, "")
	case "publish":
		var e struct {
			chela.Event
			Data      chela.ModelRef  `json:"data"`
			Operation chela.Operation `json:"operation"`
		}
		unmarshal(tb.t, rest, &e)
		switch {
		case e.Data != "":
			e.Event.Data = e.Data
		case e.Operation.ID != "":
			e.Event.Data = e.Operation
		}
		tb.bus.Publish(e.Event)
	case "store":
		role, text, _ := strings.Cut(rest, " ")
		tb.seq++
		tb.bus.Publish(chela.Event{
			Run: "r1", Session: "agent:main:main", Stream: chela.StreamMessage, Phase: chela.Phase(role),
			Data: session.Entry{
				ID: fmt.Sprintf("e%d", tb.seq), Seq: tb.seq, Kind: session.KindMessage, Time: time.Now(), Run: "r1", ItemID: "r1",
				Message: &llm.Message{Role: llm.Role(role), Parts: []llm.Part{llm.Text(text)}},
			},
		})
	case "ask", "decide":
		r := approval.Request{
			ID: rest, Session: "agent:main:main", Run: "r1", Tool: "exec", Text: "rm -r build", Reason: "it deletes",
			Created: time.Now(), Expires: time.Now().Add(approval.Lifetime),
		}
		e := chela.Event{Session: r.Session, Stream: chela.StreamApproval, Phase: chela.PhaseRequested, Data: r}
		if verb == "decide" {
			r.Decision, r.By, r.Decided = approval.AllowOnce, "owner", time.Now()
			e.Phase, e.Data = chela.PhaseResolved, r
		}
		tb.bus.Publish(e)
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			tb.t.Fatal(err)
		}
		time.Sleep(d)
	case "shutdown":
		if err := tb.server.Shutdown(context.Background(), wire.Shutdown{Reason: "gateway stopping"}); err != nil {
			tb.t.Errorf("Shutdown: %v", err)
		}
	default:
		tb.t.Fatalf("unknown verb in %q", line)
	}
}

func (tb *testbed) client(name string) *testClient {
	i := slices.IndexFunc(tb.clients, func(p *testClient) bool { return p.name == name })
	if i < 0 {
		tb.t.Fatalf("no client %q", name)
	}
	return tb.clients[i]
}

// dial opens a connection and records what it receives.
func (tb *testbed) dial(name string) *testClient {
	tb.t.Helper()
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return tb.pipe.Dial(ctx)
	}}
	ws, _, err := websocket.Dial(context.Background(), "ws://gateway/",
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: t}})
	if err != nil {
		tb.t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	p := &testClient{name: name, ws: ws, gate: make(chan struct{}, 1)}
	p.resume()
	tb.clients = append(tb.clients, p)
	go func() {
		for {
			<-p.gate
			p.gate <- struct{}{}
			_, b, err := ws.Read(context.Background())
			if err != nil {
				note := "! lost"
				if ce, ok := errors.AsType[websocket.CloseError](err); ok {
					note = strings.TrimSpace(fmt.Sprintf("! %d %s", ce.Code, ce.Reason))
				}
				p.note(note)
				return
			}
			if bytes.Contains(b, []byte(`"type":"hello-ok"`)) {
				p.greet(b)
			}
			p.note("< " + string(normal(b)))
		}
	}()
	return p
}

func (p *testClient) say(t *testing.T, text string) {
	t.Helper()
	if err := p.ws.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// pause stops reading after the next frame, until resume.
func (p *testClient) pause()  { <-p.gate }
func (p *testClient) resume() { p.gate <- struct{}{} }

func (p *testClient) note(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, s)
}

// greet stores the hello in a response.
func (p *testClient) greet(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.Unmarshal(b, &struct {
		Payload *wire.Hello `json:"payload"`
	}{&p.hello}) // what is missing is noticed by the test
}

func (p *testClient) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

// connectFrame returns a connect request with more merged into its parameters.
func connectFrame(t *testing.T, more string) string {
	t.Helper()
	p := map[string]any{
		"minProtocol": 4, "maxProtocol": 4,
		"client": map[string]any{"id": "cli", "version": "1", "platform": "linux", "mode": "cli"},
	}
	if more != "" {
		unmarshal(t, more, &p)
	}
	b, err := json.Marshal(map[string]any{"type": "req", "id": "c", "method": "connect", "params": p})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func unmarshal(t *testing.T, s string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
}

// normal replaces values that differ between runs.
func normal(b []byte) []byte {
	b = random.ReplaceAll(b, []byte(`"$1":"…"`))
	return bytes.ReplaceAll(b, []byte(hostname()), []byte("HOST"))
}

var random = regexp.MustCompile(`"(nonce|connId|bootId|instanceId)":"[^"]*"`)

func hostname() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "\x00"
	}
	return h
}
