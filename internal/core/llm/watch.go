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
	First     time.Duration // until the service sends anything
	Idle      time.Duration // without anything from the service, later
	KeepAlive time.Duration // without an event, while the service sends only keep-alives
	Total     time.Duration // of the whole answer
}

// aliveKey is the key of a context's function for [Alive].
type aliveKey struct{}

// withAlive returns a context whose function for [Alive] is f.
func withAlive(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, aliveKey{}, f)
}

// Alive returns a function that a provider calls, in [Provider.Stream], whenever it
// has received something from its service, even if that is no event, such as a
// keep-alive or a part of an event. A model that thinks for long is told from a
// service that hangs by this.
func Alive(ctx context.Context) func() {
	if f, ok := ctx.Value(aliveKey{}).(func()); ok {
		return f
	}
	return func() {}
}

// Watch returns a provider that ends an answer of p if it takes too long, with
// an *[Error] of class [ClassTimeout] that says which limit was exceeded, and closes
// its connection. The time that the caller spends on an event counts only towards
// Total. The error contains the result of p's method Name, if it has one.
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
		total := bound("there was no complete answer within %v", w.t.Total)
		defer total.Stop()
		first := bound("nothing was received for %v", w.t.First)
		defer first.Stop()
		idle := bound("nothing was received for %v", w.t.Idle)
		idle.Stop()
		defer idle.Stop()
		keepAlive := bound("only keep-alives were received for %v", w.t.KeepAlive)
		defer keepAlive.Stop()
		inner = withAlive(inner, func() {
			first.Stop()
			reset(idle, w.t.Idle)
		})

		for e, err := range w.Provider.Stream(inner, r) {
			first.Stop()
			idle.Stop()
			keepAlive.Stop()
			if why := late.Load(); err != nil && why != nil && ctx.Err() == nil {
				err = &Error{Class: ClassTimeout, Provider: w.name(), Model: r.Model, Message: *why}
			}
			if !yield(e, err) {
				return
			}
			reset(keepAlive, w.t.KeepAlive)
			if e.Kind == Restart {
				reset(first, w.t.First)
			} else {
				reset(idle, w.t.Idle)
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

// reset restarts a timer, unless d is 0.
func reset(t *time.Timer, d time.Duration) {
	if d > 0 {
		t.Reset(d)
	}
}

// name returns the provider's name, if it has one.
func (w watched) name() string {
	if n, ok := w.Provider.(interface{ Name() string }); ok {
		return n.Name()
	}
	return "model"
}
