//go:build linux

package native

import (
	"context"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// trial keeps what was found when it was tried out what a program can do in a
// sandbox.
type trial struct {
	run func(context.Context) (sandbox.Level, []sandbox.Effect)

	mu    sync.Mutex
	done  bool
	found sandbox.Level
	at    time.Time // of the trial
}

// retryTime is how long it is taken for true that there is no sandbox. The system
// may have been short of something, such as user namespaces.
const retryTime = time.Minute

// Level tries out what a program in a sandbox can do. The result is kept; that
// there is no sandbox, for a minute.
func (t *trial) Level(ctx context.Context) sandbox.Level {
	t.mu.Lock()
	defer t.mu.Unlock()
	if (!t.done || !t.found.Complete && time.Since(t.at) > retryTime) && ctx.Err() == nil {
		t.found, _ = t.run(context.WithoutCancel(ctx))
		t.done, t.at = true, time.Now()
	}
	return t.found
}

// Reset makes Level try again.
func (t *trial) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = false
}

// Try tries again what a program in a sandbox can do.
func (t *trial) Try(ctx context.Context, _ *sandbox.Session) (sandbox.Level, []sandbox.Effect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	level, effects := t.run(ctx)
	if ctx.Err() == nil {
		t.found, t.done, t.at = level, true, time.Now()
	}
	return level, effects
}
