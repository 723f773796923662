//go:build unix

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// serveSocket serves a gateway on a unix socket and returns a function that
// connects to it.
func serveSocket(tb testing.TB, o gateway.Options) (*gateway.Server, func() *websocket.Conn) {
	path := filepath.Join(tb.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		tb.Fatal(err)
	}
	o.Log, o.Methods = slog.New(slog.DiscardHandler), rpc.NewSet(testMethods())
	s := gateway.New(o)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, s.Upgrade(gateway.Trust(chela.Owner("socket")))) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
		defer cancel()
		s.Shutdown(ctx, wire.Shutdown{Reason: "gateway stopping"}) // drops clients that do not read
		if err := <-served; err != nil {
			tb.Error(err)
		}
	})
	dial := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	return s, func() *websocket.Conn {
		ws, _, err := websocket.Dial(tb.Context(), "ws://gateway/",
			&websocket.DialOptions{HTTPClient: &http.Client{Transport: dial}})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { ws.CloseNow() })
		ws.SetReadLimit(-1)
		hello := []byte(`{"type":"req","id":"c","method":"connect","params":{"minProtocol":4,"maxProtocol":4,"client":{"id":"cli","version":"1","platform":"linux","mode":"cli"}}}`)
		if err := ws.Write(tb.Context(), websocket.MessageText, hello); err != nil {
			tb.Fatal(err)
		}
		for range 2 { // challenge, hello
			if _, _, err := ws.Read(tb.Context()); err != nil {
				tb.Fatal(err)
			}
		}
		return ws
	}
}

// TestSocketIsFull checks that a client that does not read blocks no publisher
// and later receives everything in order.
func TestSocketIsFull(t *testing.T) {
	t.Parallel()
	const n = 4000
	events := bus.New(slog.New(slog.DiscardHandler))
	_, dial := serveSocket(t, gateway.Options{Bus: events})
	slow, quick := dial(), dial()
	go readAll(quick)
	text := strings.Repeat("x", 300)
	events.Publish(start("r"))
	for i := range n { // it would wait for ever for the client that reads below
		events.Publish(chela.Event{Run: "r", Session: mainSession, Stream: chela.StreamNotice, Text: fmt.Sprint(i, text)})
	}
	// The pong is sent between two frames.
	pong := make(chan error, 1)
	go func() { pong <- slow.Ping(t.Context()) }()
	time.Sleep(10 * time.Millisecond)
	for want := int64(2); want <= n; {
		_, b, err := slow.Read(t.Context())
		if err != nil {
			t.Fatalf("after event %d: %v", want-1, err)
		}
		var e wire.Event
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatalf("after event %d: %v: %.80q", want-1, err, b)
		}
		if e.Name != wire.EventAgent {
			continue // presence
		}
		var step wire.Agent
		if err := e.Decode(&step); err != nil {
			t.Fatal(err)
		}
		if step.Seq < want { // lifecycle start
			continue
		}
		if step.Seq != want || !strings.Contains(string(step.Data), fmt.Sprint(want-2, "x")) {
			t.Fatalf("%s, want event %d", b, want)
		}
		want++
	}
	go readAll(slow)
	if err := <-pong; err != nil {
		t.Error(err)
	}
}

// readAll reads until the connection ends.
func readAll(ws *websocket.Conn) {
	for {
		if _, _, err := ws.Read(context.Background()); err != nil {
			return
		}
	}
}

// TestFrameLengths checks texts around the lengths at which the header changes.
func TestFrameLengths(t *testing.T) {
	t.Parallel()
	_, dial := serveSocket(t, gateway.Options{Bus: bus.New(slog.New(slog.DiscardHandler))})
	ws := dial()
	const around = len(`{"type":"res","id":"1","ok":true,"payload":{"text":""}}`)
	for _, n := range []int{around, 125, 126, 127, 65535, 65536, 65537, 1 << 20} {
		text := strings.Repeat("y", n-around)
		req, err := json.Marshal(map[string]any{
			"type":   "req",
			"id":     "1",
			"method": "echo",
			"params": map[string]string{"text": text},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := ws.Write(t.Context(), websocket.MessageText, req); err != nil {
			t.Fatal(err)
		}
		for {
			_, b, err := ws.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(string(b), `{"type":"event"`) {
				continue
			}
			if len(b) != n || !strings.Contains(string(b), `"`+text+`"`) {
				t.Errorf("%d bytes %.80q, want %d", len(b), b, n)
			}
			break
		}
	}
}
