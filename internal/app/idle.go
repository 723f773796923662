package app

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
)

// restAfter is how long the engine is idle before it gives memory back.
const restAfter = 3 * time.Second

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
// in progress for a while. It returns when ctx ends.
func rest(ctx context.Context, b *bus.Bus) error {
	timer := time.AfterFunc(restAfter, func() {
		if len(b.Live("")) == 0 {
			debug.FreeOSMemory()
		}
	})
	defer timer.Stop()
	defer b.Subscribe(func(e chela.Event) {
		if e.End != nil {
			timer.Reset(restAfter)
		}
	})()
	<-ctx.Done()
	return nil
}
