//go:build unix

package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/surface/gateway"
)

// BenchmarkFanOut sends 1,000 deltas of one answer to 200 clients. The metric
// is the CPU time of the gateway and the clients together.
func BenchmarkFanOut(b *testing.B) {
	events := bus.New(slog.New(slog.DiscardHandler))
	_, dial := serveSocket(b, gateway.Options{Bus: events})
	finals := make(chan struct{}, 200)
	for range 200 {
		go waitFor(dial(), map[string]chan<- struct{}{`"state":"final"`: finals})
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

// BenchmarkTurn measures the gateway's part of a turn of one client: a request,
// its answer, and the events of a short run. The CPU time includes the
// client's.
func BenchmarkTurn(b *testing.B) {
	events := bus.New(slog.New(slog.DiscardHandler))
	_, dial := serveSocket(b, gateway.Options{Bus: events})
	ws := dial()
	answers, finals := make(chan struct{}), make(chan struct{})
	go waitFor(ws, map[string]chan<- struct{}{`"type":"res"`: answers, `"state":"final"`: finals})
	req := []byte(`{"type":"req","id":"12","method":"echo","params":{"text":"Hello, what is new today?"}}`)
	b.ReportAllocs()
	begun, begin := goroutines(), cpu(b)
	i := 0
	for ; b.Loop(); i++ {
		if err := ws.Write(b.Context(), websocket.MessageText, req); err != nil {
			b.Fatal(err)
		}
		<-answers
		id := chela.RunID(fmt.Sprint("run-of-a-client-", i))
		step := chela.Event{Run: id, Session: mainSession}
		events.Publish(start(id))
		step.Stream, step.Data = chela.StreamMessage,
			session.Entry{ID: "1", Kind: session.KindMessage, Message: llm.User("Hello")}
		events.Publish(step)
		step.Stream, step.Phase, step.Data = chela.StreamLifecycle, chela.PhaseModel, chela.ModelRef("provider/model")
		events.Publish(step)
		events.Publish(delta(id, "Nothing "))
		events.Publish(delta(id, "much."))
		events.Publish(end(id, "Nothing much."))
		<-finals
	}
	b.ReportMetric(float64(goroutines()-begun)/float64(i), "goroutines/op")
	b.ReportMetric(float64((cpu(b)-begin).Microseconds())/float64(i), "cpu-us/op")
}

// waitFor reads frames and reports when one contains each text.
func waitFor(ws *websocket.Conn, found map[string]chan<- struct{}) {
	for {
		_, f, err := ws.Read(context.Background())
		if err != nil {
			return
		}
		for text, c := range found {
			if bytes.Contains(f, []byte(text)) {
				c <- struct{}{}
			}
		}
	}
}

// goroutines returns the number of goroutines created.
func goroutines() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// cpu returns the CPU time used by the process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
