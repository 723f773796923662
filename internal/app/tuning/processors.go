package tuning

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
)

// singleAfter is how long at most one run must be in progress before the process
// is limited to one processor.
const singleAfter = time.Second

// Processors limits the process to one processor while at most one run is in
// progress, and uses all processors while several are. The steps of a run are
// sequential and pass from goroutine to goroutine; with more processors, each
// step wakes a thread that looks for work and finds none, which costs an eighth
// of a turn's CPU time and a twentieth of its duration. It returns when ctx ends.
func Processors(ctx context.Context, b *bus.Bus) error {
	var mu sync.Mutex
	running, one := map[chela.RunID]bool{}, true
	runtime.GOMAXPROCS(1)
	defer runtime.SetDefaultGOMAXPROCS()
	single := time.AfterFunc(singleAfter, func() {
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
			single.Reset(singleAfter)
		}
		if one && len(running) > 1 {
			one = false
			runtime.SetDefaultGOMAXPROCS()
		}
	})()
	<-ctx.Done()
	mu.Lock() // the timer's function has returned, or sees that ctx has ended
	defer mu.Unlock()
	single.Stop()
	return nil
}
