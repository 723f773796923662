//go:build conformance

package conformance

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// frame is a frame sent by the gateway: a response or an event.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
	Error   *wire.Error     `json:"error"`

	raw []byte
}

// line is a connection that records every frame.
type line struct {
	t  testing.TB
	ws *websocket.Conn

	mu     sync.Mutex
	frames []frame
	more   chan struct{} // closed and replaced with each frame
	closed error
	next   int // id of the next request
}

// dial connects without a hello. The connection is closed at the end of the
// test.
func (s *gateway) dial(t testing.TB) *line {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	l := &line{t: t, ws: ws, more: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.read()
	}()
	t.Cleanup(func() {
		ws.CloseNow()
		<-done
	})
	return l
}

func (l *line) read() {
	for {
		_, b, err := l.ws.Read(context.Background())
		f := frame{raw: b}
		if err == nil {
			err = json.Unmarshal(b, &f)
		}
		l.mu.Lock()
		if err != nil {
			l.closed = err
		} else {
			l.frames = append(l.frames, f)
		}
		close(l.more)
		l.more = make(chan struct{})
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Frames returns the frames received so far.
func (l *line) Frames() []frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.frames)
}

// Await returns the first frame, from index n, that f accepts.
func (l *line) Await(what string, n int, f func(frame) bool) frame {
	l.t.Helper()
	limit := time.After(waittest.Limit)
	for {
		l.mu.Lock()
		frames, more, closed := l.frames, l.more, l.closed
		l.mu.Unlock()
		for ; n < len(frames); n++ {
			if f(frames[n]) {
				return frames[n]
			}
		}
		if closed != nil {
			l.t.Fatalf("%s: the connection was closed: %v", what, closed)
		}
		select {
		case <-more:
		case <-limit:
			l.t.Fatalf("%s did not arrive", what)
		}
	}
}

// Event waits for an event, from frame n on.
func (l *line) Event(name string, n int) frame {
	l.t.Helper()
	return l.Await(name, n, func(f frame) bool { return f.Event == name })
}

// Ended waits for the last chat event of a run.
func (l *line) Ended(run string) wire.Chat {
	l.t.Helper()
	var c wire.Chat
	l.Await("the end of "+run, 0, func(f frame) bool {
		c = wire.Chat{}
		return f.Event == wire.EventChat && json.Unmarshal(f.Payload, &c) == nil && c.RunID == run &&
			(c.State == wire.StateFinal || c.State == wire.StateAborted || c.State == wire.StateError)
	})
	return c
}

// Ask sends a request and returns the response; if there are two, the last one.
func (l *line) Ask(method string, params any) frame {
	l.t.Helper()
	id := l.send(method, params)
	return l.Await("the response to "+method, 0, func(f frame) bool {
		// which precedes the result
		return f.ID == id && (method != wire.MethodAgent || !strings.Contains(string(f.Payload), `"status":"accepted"`))
	})
}

// Must is like Ask, but the request must succeed. It stores the result in out
// unless that is nil.
func (l *line) Must(method string, params, out any) {
	l.t.Helper()
	f := l.Ask(method, params)
	if !f.OK {
		l.t.Fatalf("%s: %v", method, f.Error)
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(f.Payload, out); err != nil {
		l.t.Fatalf("%s: %v", method, err)
	}
}

func (l *line) send(method string, params any) (id string) {
	l.t.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.next++
	id = fmt.Sprintf("%d:%s", l.next, method)
	l.mu.Unlock()
	b, err := json.Marshal(wire.Request{Type: wire.TypeRequest, ID: id, Method: method, Params: raw})
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.ws.Write(l.t.Context(), websocket.MessageText, b); err != nil {
		l.t.Fatalf("%s: %v", method, err)
	}
	return id
}

// hello returns the parameters of a client of the owner on this machine.
func hello(scopes ...string) wire.Connect {
	return wire.Connect{
		MinProtocol: wire.Version, MaxProtocol: wire.Version, Role: wire.RoleOperator, Scopes: scopes,
		Client: wire.ClientInfo{ID: "cli", Version: "1", Platform: "linux", Mode: wire.ModeCLI},
		Caps:   []string{wire.CapToolEvents, wire.CapPluginApprovals}, Auth: &wire.Auth{Token: token},
	}
}

// operator connects as the owner, with all rights or with the given scopes.
func (s *gateway) operator(t testing.TB, scopes ...string) *line {
	t.Helper()
	if len(scopes) == 0 {
		scopes = []string{wire.ScopeAdmin}
	}
	return s.connect(t, hello(scopes...))
}

// connect connects with the parameters.
func (s *gateway) connect(t testing.TB, p wire.Connect) *line {
	t.Helper()
	l := s.dial(t)
	l.Event(wire.EventChallenge, 0)
	l.Must(wire.MethodConnect, p, nil)
	return l
}

// asNode returns the parameters of a node of the owner on this machine.
func asNode() wire.Connect {
	p := hello()
	p.Role, p.Client.Mode, p.Client.ID = wire.RoleNode, wire.ModeNode, "node-host"
	p.Caps, p.Commands = []string{"camera"}, []string{"camera.snap"}
	return p
}

// device is a client with its own key.
type device struct {
	ID     string
	public string
	key    ed25519.PrivateKey
}

func newDevice(t testing.TB) device {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(pub)
	return device{ID: hex.EncodeToString(sum[:]), public: base64.RawURLEncoding.EncodeToString(pub), key: key}
}

// Sign signs the parameters for a challenge as the device.
func (d device) Sign(p wire.Connect, c wire.Challenge) wire.Connect {
	text := strings.Join([]string{
		"v3", d.ID, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","), fmt.Sprint(int64(c.Time)),
		p.Auth.Token, c.Nonce, p.Client.Platform, strings.ToLower(p.Client.Family),
	}, "|")
	p.Device = &wire.Device{
		ID: d.ID, PublicKey: d.public, SignedAt: c.Time, Nonce: c.Nonce,
		Signature: base64.RawURLEncoding.EncodeToString(ed25519.Sign(d.key, []byte(text))),
	}
	return p
}

// Connect connects as the device and returns the answer.
func (d device) Connect(t testing.TB, s *gateway, p wire.Connect) (*line, frame) {
	t.Helper()
	l := s.dial(t)
	var c wire.Challenge
	if err := json.Unmarshal(l.Event(wire.EventChallenge, 0).Payload, &c); err != nil {
		t.Fatal(err)
	}
	return l, l.Ask(wire.MethodConnect, d.Sign(p, c))
}
