package worker

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPool(t *testing.T) {
	t.Run("an idle goroutine is reused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, before := New(), runtime.NumGoroutine()
			defer p.Close()
			var wg sync.WaitGroup
			for range 3 {
				wg.Add(2)
				for range 2 {
					p.Go(func() { defer wg.Done(); time.Sleep(time.Millisecond) })
				}
				wg.Wait()
				synctest.Wait()
				if n := runtime.NumGoroutine() - before; n != 2 {
					t.Errorf("%d goroutines after two at once, want 2", n)
				}
				time.Sleep(linger - time.Millisecond)
			}
		})
	})
	t.Run("idle goroutines end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, before := New(), runtime.NumGoroutine()
			for range 100 {
				p.Go(func() {})
			}
			time.Sleep(2 * linger)
			synctest.Wait()
			if n := runtime.NumGoroutine() - before; n != 0 {
				t.Errorf("%d goroutines %v after the last work, want none", n, 2*linger)
			}
		})
	})
	t.Run("a function that ends its goroutine", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := New()
			defer p.Close()
			p.Go(runtime.Goexit)
			done := false
			p.Go(func() { done = true })
			synctest.Wait()
			if !done {
				t.Error("the next did not run")
			}
		})
	})
}
