package maintenance_test

import (
	"context"
	"log/slog"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/maintenance"
)

func TestReleaseMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		events := bus.New(slog.New(slog.DiscardHandler))
		publish := func(id chela.RunID, phase chela.Phase) {
			e := chela.Event{Run: id, Session: "agent:main:main", Stream: chela.StreamLifecycle, Phase: phase}
			if phase == chela.PhaseEnd {
				e.End = &chela.EndEvent{}
			}
			events.Publish(e)
		}
		collections := func(d time.Duration) uint64 {
			before := forced()
			time.Sleep(d)
			synctest.Wait()
			return forced() - before
		}
		var rests atomic.Int32
		done := make(chan error)
		go func() { done <- maintenance.ReleaseMemory(ctx, events, func() { rests.Add(1) }) }()
		if n := collections(time.Minute); n != 1 {
			t.Errorf("%d collections after the start, want 1", n)
		}
		publish("one", chela.PhaseStart)
		publish("two", chela.PhaseStart)
		publish("one", chela.PhaseEnd)
		if n := collections(time.Minute); n != 0 {
			t.Errorf("%d collections while a run is in progress, want 0", n)
		}
		publish("two", chela.PhaseEnd)
		if n := collections(2 * time.Second); n != 0 {
			t.Errorf("%d collections soon after a run, want 0", n)
		}
		if n := collections(time.Minute); n != 1 {
			t.Errorf("%d collections long after a run, want 1", n)
		}
		if n := rests.Load(); n != 2 {
			t.Errorf("%d rests, want one before each collection", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// forced returns the number of collections that the program asked for.
func forced() uint64 {
	s := []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
