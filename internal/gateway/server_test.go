package gateway_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/gateway"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bus.New(slog.Default())
		echo := rpc.New("echo", wire.RoleOperator, chela.ScopeRead, func(_ context.Context, _ rpc.Peer, p wire.Tick) (wire.Tick, error) { return p, nil })
		s := gateway.New(gateway.Options{Log: slog.Default(), Bus: b, Methods: rpc.NewSet([]rpc.Method{echo})})
		p := gateway.NewPipe()
		go s.Serve(p, gateway.Trust(chela.Owner("process")))
		c, err := client.Dial(t.Context(), client.Options{Dial: p.Dial})
		if err != nil {
			t.Fatal(err)
		}
		var got wire.Tick
		if err := c.Call(t.Context(), "echo", wire.Tick{Time: 7}, &got); err != nil || got.Time != 7 {
			t.Fatal(got, err)
		}
		time.Sleep(31 * time.Second)
		e := <-c.Events()
		t.Log(e.Name, string(e.Payload), e.Seq)
		b.Publish(chela.Event{Run: "r", Session: "agent:main:main", Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
		b.Publish(chela.Event{Run: "r", Session: "agent:main:main", Stream: chela.StreamAssistant, Delta: "Hel"})
		b.Publish(chela.Event{Run: "r", Session: "agent:main:main", Stream: chela.StreamAssistant, Delta: "lo"})
		b.Publish(chela.Event{Run: "r", Session: "agent:main:main", Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd, End: &chela.EndEvent{Outcome: "ok", Text: "Hello"}})
		go s.Shutdown(t.Context())
		for e := range c.Events() {
			t.Log(e.Name, string(e.Payload), e.Seq)
		}
		t.Log(c.Err())
		synctest.Wait()
	})
}
