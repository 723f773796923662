package native

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// Settle waits until the next cage is ready.
func (b *Broker) Settle() { b.wg.Wait() }

// Forget ends the cage that is ready.
func (b *Broker) Forget() {
	b.mu.Lock()
	r := b.take()
	b.mu.Unlock()
	if r != nil {
		r.end()
	}
}

// Build builds a cage that is not used.
func (b *Broker) Build(ctx context.Context, rights sandbox.Rights) error {
	r, err := b.build(ctx, b.wants(rights, nil), nil)
	if err == nil {
		r.end()
	}
	return err
}

// KillReady kills the launcher of the ready cage.
func (b *Broker) KillReady() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.ready.cmd.Process.Kill()
	_, _ = b.ready.wire.Receive(&launch.Reply{}) // until it has ended
}

// SetReadyTime sets how long a cage is kept ready.
func (b *Broker) SetReadyTime(d time.Duration) { b.readyTime = d }

// Ready reports whether a cage is ready.
func (b *Broker) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready != nil
}

// SetWatchTime sets how often the workspace of a command is looked at.
func (b *Broker) SetWatchTime(d time.Duration) { b.watchTime = d }

// MaxUses is the number of commands of a cage.
const MaxUses = maxUses
