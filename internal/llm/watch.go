package llm

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
)

// Timeouts bound how long an answer may take. A field that is zero sets no
// bound.
type Timeouts struct {
	First time.Duration // until the first event
	Idle  time.Duration // between two events
	Total time.Duration // of the whole answer
}

// Watch returns a provider that ends an answer of p when it takes too long,
// with an *[Error] of class [ClassTimeout], and lets its connection go. Only
// events count as progress: keep-alives do not. The time that the caller takes
// over an event counts for the total alone. The error names the provider by
// p's method Name, if it has one.
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
		var late atomic.Pointer[string] // what took too long
		bound := func(what string, d time.Duration) *time.Timer {
			return timer(d, func() {
				why := fmt.Sprintf(what, d)
				late.CompareAndSwap(nil, &why)
				cancel()
			})
		}
		total := bound("no whole answer within %v", w.t.Total)
		defer total.Stop()
		first := bound("no answer within %v", w.t.First)
		defer first.Stop()
		idle := bound("nothing new for %v", w.t.Idle)
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

// timer returns a timer that calls f after d; one that never does for 0.
func timer(d time.Duration, f func()) *time.Timer {
	if d <= 0 {
		t := time.NewTimer(0)
		t.Stop()
		return t
	}
	return time.AfterFunc(d, f)
}

// name returns the provider's id, if it tells.
func (w watched) name() string {
	if n, ok := w.Provider.(interface{ Name() string }); ok {
		return n.Name()
	}
	return "model"
}
