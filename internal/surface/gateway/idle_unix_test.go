//go:build unix

package gateway_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// BenchmarkIdleClients measures the memory per idle client with 1,000 clients,
// including the client's end of the connection: one reading goroutine.
func BenchmarkIdleClients(b *testing.B) {
	const n = 1000
	path := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	s := gateway.New(gateway.Options{Log: slog.New(slog.DiscardHandler), Bus: bus.New(slog.New(slog.DiscardHandler)),
		Methods: rpc.NewSet(testMethods())})
	go s.Serve(l, s.Upgrade(gateway.Trust(chela.Owner("socket"))))
	defer s.Shutdown(context.Background(), wire.Shutdown{Reason: "gateway stopping"})
	for b.Loop() {
		before := used()
		conns := make([]net.Conn, n)
		for i := range conns {
			conns[i] = bare(b, path)
		}
		time.Sleep(12 * time.Second) // until the presence was broadcast
		b.ReportMetric(float64(used()-before)/n/1024, "KB/client")
		for _, c := range conns {
			c.Close()
		}
	}
	b.ReportMetric(0, "ns/op")
}

// used returns the bytes of the heap and the stacks.
func used() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// bare connects a client with a minimal memory footprint that discards what it
// receives.
func bare(b *testing.B, path string) net.Conn {
	c, err := net.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	hello := `{"type":"req","id":"c","method":"connect","params":{"minProtocol":4,"maxProtocol":4,"client":{"id":"cli","version":"1","platform":"linux","mode":"cli"}}}`
	frame := binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(hello)))
	frame = append(append(frame, 0, 0, 0, 0), hello...) // masked with zeros
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(c)
	for line := ""; line != "\r\n"; {
		if line, err = r.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.Write(frame); err != nil {
		b.Fatal(err)
	}
	var got strings.Builder
	for !strings.Contains(got.String(), "hello-ok") {
		p, err := r.ReadByte()
		if err != nil {
			b.Fatal(err)
		}
		got.WriteByte(p)
	}
	go io.Copy(discard{}, only{c})
	return c
}

// discard discards data with a small buffer.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// ReadFrom reads with a small buffer.
func (discard) ReadFrom(r io.Reader) (int64, error) {
	var p [256]byte
	for {
		if _, err := r.Read(p[:]); err != nil {
			return 0, err
		}
	}
}

type only struct{ io.Reader }
