//go:build unix

package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/gateway"
	"github.com/chela-ai/chela/internal/rpc"
)

// BenchmarkFanOut: 1,000 deltas of one answer to 200 clients that read. The
// metric is CPU time of gateway and clients together.
func BenchmarkFanOut(b *testing.B) {
	path := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	events := bus.New(slog.New(slog.DiscardHandler))
	s := gateway.New(gateway.Options{Log: slog.New(slog.DiscardHandler), Bus: events, Methods: rpc.NewSet(testMethods())})
	go s.Serve(l, s.Upgrade(gateway.Trust(chela.Owner("socket"))))
	defer s.Shutdown(context.Background())
	finals := make(chan struct{}, 200)
	for range 200 {
		watch(b, path, finals)
	}
	begin := cpu(b)
	b.ResetTimer()
	for i := range b.N {
		id := chela.RunID(fmt.Sprint("r", i))
		events.Publish(start(id))
		for range 1000 {
			events.Publish(delta(id, "word "))
			time.Sleep(time.Millisecond)
		}
		events.Publish(end(id, "done"))
		for range 200 {
			<-finals
		}
	}
	b.ReportMetric(float64((cpu(b)-begin).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// watch connects a client that reads and looks for finals only.
func watch(b *testing.B, path string, finals chan<- struct{}) {
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	ws, _, err := websocket.Dial(b.Context(), "ws://gateway/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: t}})
	if err != nil {
		b.Fatal(err)
	}
	ws.SetReadLimit(-1)
	hello := []byte(`{"type":"req","id":"c","method":"connect","params":{"minProtocol":4,"maxProtocol":4,"client":{"id":"cli","version":"1","platform":"linux","mode":"cli"}}}`)
	if err := ws.Write(b.Context(), websocket.MessageText, hello); err != nil {
		b.Fatal(err)
	}
	for range 2 { // challenge, hello
		if _, _, err := ws.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	go func() {
		for {
			_, f, err := ws.Read(context.Background())
			if err != nil {
				return
			}
			if bytes.Contains(f, []byte(`"state":"final"`)) {
				finals <- struct{}{}
			}
		}
	}()
}

// cpu returns the CPU time that the process used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
