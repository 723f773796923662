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
	ended := make(chan struct{}, 1)
	defer b.Subscribe(func(e chela.Event) {
		if e.End == nil {
			return
		}
		select {
		case ended <- struct{}{}:
		default:
		}
	})()
	timer := time.NewTimer(restAfter)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			timer.Reset(restAfter)
		case <-timer.C:
			if len(b.Live("")) == 0 {
				debug.FreeOSMemory()
			}
		}
	}
}
