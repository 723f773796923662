package slack

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	maxQueue  = 128                     // events that wait for the worker; Slack repeats further ones
	kindTries = 4                       // to look up of which kind a conversation is
	ackTime   = 2500 * time.Millisecond // Slack waits for 3 s
)

// job is an event that waits for the worker.
type job struct {
	kind    string // events_api, interactive, slash_commands
	payload json.RawMessage
	arrived time.Time
	ack     func() // acknowledges the event; called at most once, within ackTime
}

// add queues an event. It reports false if too many wait.
func (b *bot) add(j job) bool {
	select {
	case b.queue <- j:
		return true
	default:
		b.env.Log.Warn("too many events wait; slack repeats this one")
		return false
	}
}

// work passes the queued events to the sink, one after the other.
func (b *bot) work(ctx context.Context, sink channel.Sink) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-b.queue:
			if b.pass(ctx, sink, j) && time.Since(j.arrived) <= ackTime {
				j.ack()
			}
		}
	}
}

// pass passes an event to the sink until it is accepted or finally refused. It reports
// false if ctx ended before.
func (b *bot) pass(ctx context.Context, sink channel.Sink, j job) bool {
	pauses := backoff.Policy{First: time.Second, Max: 30 * time.Second, Jitter: 0.25}
	in, err := b.inbound(ctx, j.kind, j.payload)
	for try := 1; errors.Is(err, errKind) && try <= kindTries &&
		backoff.Sleep(ctx, pauses.Delay(try, rand.Float64())) == nil; try++ {
		in, err = b.inbound(ctx, j.kind, j.payload)
	}
	if err != nil && !errors.Is(err, errKind) {
		if !errors.Is(err, errIgnored) {
			b.env.Log.Warn("an event cannot be read", "kind", j.kind, "err", err)
		}
		return ctx.Err() == nil
	}
	id := in.Address.Peer.ID + " " + in.ID
	if _, known := b.taken.Get(id); known {
		return true
	}
	log := b.env.Log.With("id", in.ID)
	return channel.Accept(ctx, log, func(ctx context.Context) error {
		err := sink(ctx, in)
		if err == nil {
			b.taken.Put(id, struct{}{})
		}
		return err
	}) == nil
}
