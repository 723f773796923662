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
