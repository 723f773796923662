package app

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
)

const (
	restAfter  = 3 * time.Second // without a run: the memory that runs needed goes back
	sleepAfter = 5 * time.Minute // without a run: the program's own code, too
)

// garbage is how much of it may pile up before it is collected, in percent of
// what is held. A turn leaves little and holds little, so that the runtime's own
// 100 collects all the time; what piles up goes when the engine rests.
const garbage = 200

// pile lets garbage pile up, from before the start on: the first collection
// would come in the middle of it.
func pile() {
	if was := debug.SetGCPercent(garbage); was != 100 { // somebody has set it: GOGC
		debug.SetGCPercent(was)
	}
}

// rest gives the memory that runs needed back to the system when none has been
// in progress for a while. After the start and after a long while the program
// itself goes, too: most of it is needed by the start alone, and a turn's part
// is back within the turn. It returns when ctx ends.
func rest(ctx context.Context, b *bus.Bus) error {
	idle := func() bool { return len(b.Live("")) == 0 }
	var started sync.Once
	heap := time.AfterFunc(restAfter, func() {
		if idle() {
			debug.FreeOSMemory()
			started.Do(unload)
		}
	})
	defer heap.Stop()
	code := time.AfterFunc(sleepAfter, func() {
		if idle() {
			unload()
		}
	})
	defer code.Stop()
	defer b.Subscribe(func(e chela.Event) {
		if e.End != nil {
			heap.Reset(restAfter)
			code.Reset(sleepAfter)
		}
	})()
	<-ctx.Done()
	return nil
}
