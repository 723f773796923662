package channel_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

func TestAccept(t *testing.T) {
	full := errors.New("the queue is full")
	limited := &channel.Error{RetryAfter: time.Minute, Err: errors.New("slow down")}
	for name, c := range map[string]struct {
		answers []error // of the sink
		least   time.Duration
		most    time.Duration
	}{
		"at once":                      {[]error{nil}, 0, 0},
		"after two pauses":             {[]error{full, full, nil}, 2 * time.Second, 3 * time.Second},
		"as the platform asks":         {[]error{limited, nil}, time.Minute, time.Minute},
		"refused for good":             {[]error{chela.Errorf(chela.CodeForbidden, "a stranger")}, 0, 0},
		"refused for good after a try": {[]error{full, chela.Errorf(chela.CodeInvalid, "no text")}, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				err := channel.Accept(t.Context(), slog.New(slog.DiscardHandler),
					func(context.Context) error { calls++; return c.answers[calls-1] })
				took := time.Since(start)
				if err != nil || calls != len(c.answers) || took < c.least || took > c.most {
					t.Errorf("error %v after %d calls and %s", err, calls, took)
				}
			})
		})
	}
	t.Run("until the context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			calls := 0
			err := channel.Accept(ctx, slog.New(slog.DiscardHandler), func(context.Context) error { calls++; return full })
			if !errors.Is(err, context.DeadlineExceeded) || calls < 20 || calls > 40 {
				t.Errorf("error %v after %d calls", err, calls)
			}
		})
	})
}
