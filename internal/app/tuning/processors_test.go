package tuning

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
)

func TestProcessors(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	if all < 2 {
		t.Skip("there is one processor")
	}
	defer runtime.GOMAXPROCS(all)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		events := bus.New(slog.New(slog.DiscardHandler))
		go Processors(ctx, events)
		want := func(n int, when string) {
			t.Helper()
			synctest.Wait()
			if got := runtime.GOMAXPROCS(0); got != n {
				t.Errorf("%d processors %s, want %d", got, when, n)
			}
		}
		phase := func(id chela.RunID, phase chela.Phase) {
			events.Publish(chela.Event{Run: id, Session: "agent:main:main", Stream: chela.StreamLifecycle, Phase: phase})
		}
		want(1, "after the start")
		phase("a", chela.PhaseStart)
		phase("a", chela.PhaseModel)
		want(1, "in a run")
		phase("b", chela.PhaseStart)
		want(all, "in two runs")
		phase("a", chela.PhaseEnd)
		want(all, "just after one of two ended")
		time.Sleep(singleAfter / 2)
		phase("c", chela.PhaseStart)
		time.Sleep(2 * singleAfter)
		want(all, "in two runs again")
		phase("b", chela.PhaseSuspended)
		time.Sleep(singleAfter)
		want(1, "in a run, when another waits for somebody")
		phase("b", chela.PhaseResume)
		want(all, "when it goes on")
		phase("b", chela.PhaseError)
		phase("c", chela.PhaseEnd)
		time.Sleep(singleAfter)
		want(1, "when idle")
		stop()
		want(all, "at the end")
		time.Sleep(2 * singleAfter)
		want(all, "after the end")
	})
}
