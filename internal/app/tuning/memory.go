// Package tuning adapts the process to its load: it returns memory to the system
// while no run is in progress, and sets the number of processors.
package tuning

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
)

const (
	releaseAfter = 3 * time.Second // without a run: the heap's free memory is returned
	unloadAfter  = 5 * time.Minute // without a run: the program's code is unloaded, too
)

// ReleaseMemory returns memory to the system when no run has been in progress
// for a while. After the start and after a long idle time it also unloads the
// program's code: most of it is needed by the start only, and the part that a
// turn needs is loaded again within the turn. It returns when ctx ends.
func ReleaseMemory(ctx context.Context, b *bus.Bus) error {
	idle := func() bool { return len(b.Live("")) == 0 }
	var started sync.Once
	heap := time.AfterFunc(releaseAfter, func() {
		if idle() {
			debug.FreeOSMemory()
			started.Do(unload)
		}
	})
	defer heap.Stop()
	code := time.AfterFunc(unloadAfter, func() {
		if idle() {
			unload()
		}
	})
	defer code.Stop()
	defer b.Subscribe(func(e chela.Event) {
		if e.End != nil {
			heap.Reset(releaseAfter)
			code.Reset(unloadAfter)
		}
	})()
	<-ctx.Done()
	return nil
}
