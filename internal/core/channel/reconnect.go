package channel

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/chela-ai/chela/internal/kit/backoff"
)

// stable is how long a connection has to last for the next pause to be a short one.
const stable = time.Minute

// Reconnect calls connect again and again, until ctx ends or connect returns a permanent
// *[Error], which Reconnect returns. connect makes a connection, calls up when it works,
// and returns when it is lost. The pauses grow from 2 s to 30 s, or are as long as the
// platform requests, and are random by a quarter, so that many accounts do not reconnect
// at the same time. Reconnect reports the state of the connection to env.
func Reconnect(ctx context.Context, env Env, connect func(ctx context.Context, up func()) error) error {
	pauses := backoff.Policy{First: 2 * time.Second, Max: 30 * time.Second, Jitter: 0.25}
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := connect(ctx, func() { began = time.Now(); env.Report(nil) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			err = errors.New("the platform closed the connection")
		}
		env.Report(err)
		refused, _ := errors.AsType[*Error](err)
		if refused != nil && refused.Permanent {
			return err
		}
		if time.Since(began) >= stable {
			attempt = 1
		}
		pause := pauses.Delay(attempt, rand.Float64())
		if refused != nil {
			pause = max(pause, refused.RetryAfter)
		}
		env.Log.Warn("connection lost; reconnecting", "err", err, "pause", pause)
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
