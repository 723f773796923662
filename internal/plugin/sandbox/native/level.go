//go:build linux || darwin

package native

import (
	"context"
	"sync"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// trial keeps what was found when it was tried out what a program can do in a
// sandbox.
type trial struct {
	run func(context.Context) (sandbox.Level, []sandbox.Effect)

	mu    sync.Mutex
	done  bool
	found sandbox.Level
}

// Level tries out what a program in a sandbox can do. The result is kept.
func (t *trial) Level(ctx context.Context) sandbox.Level {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.done && ctx.Err() == nil {
		t.found, _ = t.run(context.WithoutCancel(ctx))
		t.done = true
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
		t.found, t.done = level, true
	}
	return level, effects
}
