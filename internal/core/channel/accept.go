package channel

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

// Accept calls pass, which passes a message to the sink, again and again until the message
// is accepted or refused for good (with [chela.CodeInvalid] or [chela.CodeForbidden]), and
// then returns nil; or until ctx ends, and then returns its error. The pauses grow from 1 s
// to 30 s, or are as long as the platform requests.
func Accept(ctx context.Context, log *slog.Logger, pass func(context.Context) error) error {
	pauses := backoff.Policy{First: time.Second, Max: 30 * time.Second, Jitter: 0.25}
	for attempt := 1; ; attempt++ {
		err := pass(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if Refused(err) {
			log.Debug("message refused", "err", err)
			return nil
		}
		pause := pauses.Delay(attempt, rand.Float64())
		if asked, ok := errors.AsType[*Error](err); ok {
			pause = max(pause, asked.RetryAfter)
		}
		log.Warn("message not accepted; trying again", "err", err, "pause", pause)
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Refused reports whether an error of a sink says that it will never accept the message.
func Refused(err error) bool {
	code := chela.CodeOf(err)
	return err != nil && (code == chela.CodeInvalid || code == chela.CodeForbidden)
}
