package maintenance

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
)

// releaseAfter is how long no run must be in progress before memory is returned.
const releaseAfter = 3 * time.Second

// ReleaseMemory calls rest, collects garbage and returns the free memory to the system
// when no run has been in progress for a while, because an idle process collects nothing.
// It returns when ctx ends.
func ReleaseMemory(ctx context.Context, b *bus.Bus, rest func()) error {
	idle := time.AfterFunc(releaseAfter, func() {
		if len(b.Live("")) == 0 {
			rest()
			debug.FreeOSMemory()
		}
	})
	defer idle.Stop()
	defer b.Subscribe(func(e chela.Event) {
		if e.End != nil {
			idle.Reset(releaseAfter)
		}
	})()
	<-ctx.Done()
	return nil
}
