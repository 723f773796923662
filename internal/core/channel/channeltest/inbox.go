package channeltest

import (
	"context"
	"sync"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Inbox collects the messages of a channel. Its Sink can be made to fail. It is safe for
// concurrent use.
type Inbox struct {
	mu    sync.Mutex
	got   []chela.Inbound
	fail  []error
	calls int
}

// NewInbox returns an Inbox whose first messages fail with the errors; nil: it is accepted.
func NewInbox(errs ...error) *Inbox { return &Inbox{fail: errs} }

// Fail replaces the errors of the next messages; nil: it is accepted.
func (b *Inbox) Fail(errs ...error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = errs
}

// Sink is a channel.Sink.
func (b *Inbox) Sink(ctx context.Context, in chela.Inbound) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(b.fail) > 0 {
		err := b.fail[0]
		b.fail = b.fail[1:]
		if err != nil {
			return err
		}
	}
	b.got = append(b.got, in)
	return nil
}

// Take returns the accepted messages since the last call.
func (b *Inbox) Take() []chela.Inbound {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.got
	b.got = nil
	return got
}

// Calls returns how often Sink was called.
func (b *Inbox) Calls() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// Run runs a channel until stop is called, which returns its error.
func Run(ctx context.Context, c channel.Channel, sink channel.Sink) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, sink) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}
