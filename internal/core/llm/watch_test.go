package llm_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

var limits = llm.Timeouts{First: 30 * time.Second, Idle: 10 * time.Second, Total: 2 * time.Minute}

func slow(delay, gap time.Duration, f llmtest.Fault) llmtest.Step {
	s := llmtest.Say("one two three four five six seven eight")
	s.Chunk, s.Delay, s.Gap, s.Fault = 1, delay, gap, f
	return s
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		step  llmtest.Step
		after time.Duration
		class llm.Class // "": no error
	}{
		{"quick", slow(0, 0, llmtest.Fault{}), 0, ""},
		{"slow, within the limits", slow(29*time.Second, 2*time.Second, llmtest.Fault{}), (29 + 2*38) * time.Second, ""},
		{"no first event", slow(31*time.Second, 0, llmtest.Fault{}), limits.First, llm.ClassTimeout},
		{"no event ever", slow(0, 0, llmtest.Fault{Hang: llmtest.HangHeaders}), limits.First, llm.ClassTimeout},
		{"idle", slow(0, 11*time.Second, llmtest.Fault{}), limits.Idle, llm.ClassTimeout},
		{"idle in the middle", slow(0, 0, llmtest.Fault{Hang: llmtest.HangMiddle}), limits.Idle, llm.ClassTimeout},
		{"total", slow(0, 9*time.Second, llmtest.Fault{}), limits.Total, llm.ClassTimeout},
		{"an error of the provider", slow(0, 0, llmtest.Fault{Status: 429}), 0, llm.ClassRate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				c, err := llmtest.Collect(t.Context(), llm.Watch(llmtest.NewScript(tt.step), limits), llmtest.Ask("Hi"))
				if err != nil {
					t.Error(err)
				}
				if got := llm.ClassOf(c.Err); got != tt.class || (c.Err == nil) != (tt.class == "") {
					t.Errorf("ended with %v, want class %q", c.Err, tt.class)
				}
				if took := time.Since(started); took != tt.after {
					t.Errorf("took %v, want %v", took, tt.after)
				}
			})
		})
	}
}

func TestWatchCallerTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := llm.Watch(llmtest.NewScript(slow(0, 0, llmtest.Fault{})), llm.Timeouts{First: time.Second, Idle: time.Second})
		for _, err := range p.Stream(t.Context(), llmtest.Ask("Hi")) {
			if err != nil {
				t.Errorf("the caller's time was counted: %v", err)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestWatchCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := llm.Watch(llmtest.NewScript(slow(0, 0, llmtest.Fault{Hang: llmtest.HangBody})), limits)
		c, err := llmtest.Collect(ctx, p, llmtest.Ask("Hi"))
		if err != nil || !errors.Is(c.Err, context.DeadlineExceeded) {
			t.Errorf("ended with %v (%v), want the context's error", c.Err, err)
		}
	})
}

func TestWatchWithoutLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := llm.Watch(llmtest.NewScript(slow(time.Hour, time.Hour, llmtest.Fault{})), llm.Timeouts{})
		if c, err := llmtest.Collect(t.Context(), p, llmtest.Ask("Hi")); err != nil || c.Err != nil {
			t.Errorf("ended with %v, %v", c.Err, err)
		}
	})
}

// restart yields a delta and a Restart event and then hangs.
type restart struct{}

func (restart) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if !yield(llm.Event{Kind: llm.TextDelta, Text: "x"}, nil) || !yield(llm.Event{Kind: llm.Restart}, nil) {
			return
		}
		<-ctx.Done()
		yield(llm.Event{}, ctx.Err())
	}
}

func TestWatchRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		for _, err := range llm.Watch(restart{}, limits).Stream(t.Context(), llmtest.Ask("Hi")) {
			if err != nil && (llm.ClassOf(err) != llm.ClassTimeout || time.Since(started) != limits.First) {
				t.Errorf("after %v: %v; want a timeout after %v", time.Since(started), err, limits.First)
			}
		}
	})
}
