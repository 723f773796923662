package app

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
)

// calmAfter is how long at most one run is in progress before all processors
// but one are given up.
const calmAfter = time.Second

// processors has the process work on one processor while at most one run is in
// progress, and on all there are while several are. A run is one thing after
// another, handed from goroutine to goroutine; with more processors each hand
// wakes a thread that looks for work and finds none, which is an eighth of a
// turn's CPU and a twentieth of its time. It returns when ctx ends.
func processors(ctx context.Context, b *bus.Bus) error {
	var mu sync.Mutex
	running, one := map[chela.RunID]bool{}, true
	runtime.GOMAXPROCS(1)
	defer runtime.SetDefaultGOMAXPROCS()
	calm := time.AfterFunc(calmAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if !one && len(running) <= 1 && ctx.Err() == nil {
			one = true
			runtime.GOMAXPROCS(1)
		}
	})
	defer b.Subscribe(func(e chela.Event) {
		if e.Stream != chela.StreamLifecycle {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		switch e.Phase {
		case chela.PhaseStart, chela.PhaseResume:
			running[e.Run] = true
		case chela.PhaseSuspended, chela.PhaseEnd, chela.PhaseError:
			delete(running, e.Run)
			calm.Reset(calmAfter)
		}
		if one && len(running) > 1 {
			one = false
			runtime.SetDefaultGOMAXPROCS()
		}
	})()
	<-ctx.Done()
	mu.Lock() // the timer's function is over, or finds the end
	defer mu.Unlock()
	calm.Stop()
	return nil
}
