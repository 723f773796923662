package llm

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
)

// Timeouts limit the duration of an answer. A zero field sets no limit.
type Timeouts struct {
	First time.Duration // until the first event
	Idle  time.Duration // between two events
	Total time.Duration // of the whole answer
}

// Watch returns a provider that ends an answer of p if it takes too long, with
// an *[Error] of class [ClassTimeout], and closes its connection. Only events
// count as progress, keep-alives do not. The time that the caller spends on an
// event counts only towards Total. The error contains the result of p's method
// Name, if it has one.
func Watch(p Provider, t Timeouts) Provider { return watched{p, t} }

type watched struct {
	Provider
	t Timeouts
}

// Stream implements Provider.
func (w watched) Stream(ctx context.Context, r *Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		var late atomic.Pointer[string] // the exceeded limit
		bound := func(what string, d time.Duration) *time.Timer {
			return timer(d, func() {
				why := fmt.Sprintf(what, d)
				late.CompareAndSwap(nil, &why)
				cancel()
			})
		}
		total := bound("no complete answer within %v", w.t.Total)
		defer total.Stop()
		first := bound("no answer within %v", w.t.First)
		defer first.Stop()
		idle := bound("no progress for %v", w.t.Idle)
		idle.Stop()
		defer idle.Stop()

		for e, err := range w.Provider.Stream(inner, r) {
			first.Stop()
			idle.Stop()
			if why := late.Load(); err != nil && why != nil && ctx.Err() == nil {
				err = &Error{Class: ClassTimeout, Provider: w.name(), Model: r.Model, Message: *why}
			}
			if !yield(e, err) {
				return
			}
			switch {
			case e.Kind == Restart && w.t.First > 0:
				first.Reset(w.t.First)
			case e.Kind != Restart && w.t.Idle > 0:
				idle.Reset(w.t.Idle)
			}
		}
	}
}

// timer returns a timer that calls f after d, or never if d is 0.
func timer(d time.Duration, f func()) *time.Timer {
	if d <= 0 {
		t := time.NewTimer(0)
		t.Stop()
		return t
	}
	return time.AfterFunc(d, f)
}

// name returns the provider's name, if it has one.
func (w watched) name() string {
	if n, ok := w.Provider.(interface{ Name() string }); ok {
		return n.Name()
	}
	return "model"
}
