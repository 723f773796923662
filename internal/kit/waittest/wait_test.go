package waittest_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

// recorder is a testing.TB that keeps the message of Fatalf.
type recorder struct {
	testing.TB
	message string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fatal returns the message with which f ends a test, or "".
func fatal(t *testing.T, f func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
	return r.message
}

func TestWaits(t *testing.T) {
	want := fmt.Sprintf("waited %v in vain: the light", waittest.Limit)
	for name, f := range map[string]func(testing.TB){
		"until": func(t testing.TB) { waittest.Until(t, "the light", func() bool { return false }) },
		"for":   func(t testing.TB) { waittest.For(t, "the light", make(chan int)) },
	} {
		t.Run(name+" fails after the limit", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				if got := fatal(t, f); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if took := time.Since(start); took < waittest.Limit || took > waittest.Limit+time.Second {
					t.Errorf("took %v, want %v", took, waittest.Limit)
				}
			})
		})
	}
	t.Run("what comes shortly before the limit is in time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := make(chan int)
			start := time.Now()
			go func() { time.Sleep(waittest.Limit - time.Second); c <- 7 }()
			if got := waittest.For(t, "a number", c); got != 7 {
				t.Errorf("got %d, want 7", got)
			}
			go func() { <-waittest.Context(t).Done(); c <- int(time.Since(start) / waittest.Limit) }()
			waittest.Until(t, "half the time", func() bool { return time.Since(start) > waittest.Limit+waittest.Limit/2 })
			if got := waittest.For(t, "the end of the context", c); got != 1 {
				t.Errorf("the context ended after %d limits, want 1", got)
			}
		})
	})
}
