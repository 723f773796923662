// Package waittest has the one way in which tests wait for something that happens in
// real time: with so much patience that only a defect exceeds it. No test states how
// fast something is; benchmarks do.
//
// Where the order of two events can decide, a test compares the order instead of the
// time. Where everything that takes part can run in a testing/synctest bubble, a test
// uses one, and needs no patience. What remains calls [Until], [For] or [Context].
package waittest

import (
	"context"
	"testing"
	"time"
)

// interval is the pause between two looks of [Until].
const interval = 2 * time.Millisecond

// Until returns when ok reports true. It calls ok again and again, and fails the test
// after [Limit]; what says what was awaited. It must be called by the test's goroutine.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(Limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain: %s", Limit, what)
		}
		time.Sleep(interval)
	}
}

// For returns the next value of c, or its zero value once c is closed. It fails the test
// after [Limit]; what says what was awaited. It must be called by the test's goroutine.
func For[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatalf("waited %v in vain: %s", Limit, what)
		panic("unreachable")
	}
}

// Context returns a context that ends with the test, or after [Limit].
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Limit)
	t.Cleanup(cancel)
	return ctx
}
