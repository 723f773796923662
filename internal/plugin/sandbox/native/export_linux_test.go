package native

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// Settle waits until the next cage is ready.
func (b *Broker) Settle() { b.wg.Wait() }

// Forget ends the cages that are ready.
func (b *Broker) Forget() { b.forget() }

// Build builds a cage that is not used.
func (b *Broker) Build(ctx context.Context, rights sandbox.Rights) error {
	r, err := b.build(ctx, b.wants(rights, nil, rights.Workspace))
	if err == nil {
		r.end()
	}
	return err
}

// KillReady kills the launcher of the ready cage that was used last.
func (b *Broker) KillReady() {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.ready[len(b.ready)-1]
	_ = r.cmd.Process.Kill()
	_, _ = r.wire.Receive(&launch.Reply{}) // until it has ended
}

// SetReadyTime sets how long a cage is kept ready.
func (b *Broker) SetReadyTime(d time.Duration) { b.readyTime = d }

// Ready returns the number of ready cages.
func (b *Broker) Ready() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ready)
}

// SetWatchTime sets how often the workspace of a command is looked at.
func (b *Broker) SetWatchTime(d time.Duration) { b.watchTime = d }

// SetMaxFolders sets how many folders of a workspace are searched for private files.
func (b *Broker) SetMaxFolders(n int) { b.maxFolders = n }

// Slots returns the number of folders for layers that are in use.
func (b *Broker) Slots() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, used := range b.slots {
		n += len(used)
	}
	return n
}

// Believe makes a level the result of the trial.
func (b *Broker) Believe(l sandbox.Level) {
	b.trial.mu.Lock()
	defer b.trial.mu.Unlock()
	b.trial.found, b.trial.done, b.trial.at = l, true, time.Now()
}

// MaxReady is the number of cages that are kept ready.
const MaxReady = maxReady

// MaxUses is the number of commands of a cage.
const MaxUses = maxUses
