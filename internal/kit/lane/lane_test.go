package lane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// track counts how much work overlaps.
type track struct {
	mu    sync.Mutex
	now   int
	peak  int
	order []string
}

func (tr *track) work(name string, d time.Duration) func(context.Context) error {
	return func(context.Context) error {
		tr.mu.Lock()
		tr.now++
		tr.peak = max(tr.peak, tr.now)
		tr.order = append(tr.order, name)
		tr.mu.Unlock()
		time.Sleep(d)
		tr.mu.Lock()
		tr.now--
		tr.mu.Unlock()
		return nil
	}
}

func (tr *track) running() int {
	synctest.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.now
}

func TestLanes(t *testing.T) {
	for width, want := range map[int]int{0: 1, 1: 1, 2: 2} {
		t.Run(fmt.Sprintf("two keys, %d at once", width), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l Lanes
				l.Set("main", width)
				var tr track
				var wg sync.WaitGroup
				for _, key := range []string{"a", "b"} {
					wg.Go(func() { _ = l.Do(t.Context(), "main", key, tr.work(key, time.Second)) })
				}
				wg.Wait()
				if tr.peak != want {
					t.Errorf("%d ran at once, want %d", tr.peak, want)
				}
			})
		})
	}
	t.Run("LANE-09 lanes are independent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Lanes
			var cron, chat track
			var wg sync.WaitGroup
			wg.Go(func() { _ = l.Do(t.Context(), "cron", "job", cron.work("", time.Hour)) })
			synctest.Wait()
			wg.Go(func() { _ = l.Do(t.Context(), "main", "session", chat.work("", time.Second)) })
			if n := chat.running(); n != 1 {
				t.Error("a chat message waits for a cron job")
			}
			wg.Wait()
		})
	})
	t.Run("LANE-12 the default limit is one, in order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Lanes
			var tr track
			var wg sync.WaitGroup
			for i := range 5 {
				wg.Go(func() { _ = l.Do(t.Context(), "x", "", tr.work(fmt.Sprint(i), time.Second)) })
				synctest.Wait()
			}
			wg.Wait()
			if tr.peak != 1 || strings.Join(tr.order, "") != "01234" {
				t.Errorf("got %d at once in order %v", tr.peak, tr.order)
			}
		})
	})
	t.Run("LANE-12 a limit of three, then of one, while work runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Lanes
			var tr track
			var wg sync.WaitGroup
			for i := range 5 {
				wg.Go(func() { _ = l.Do(t.Context(), "x", "", tr.work(fmt.Sprint(i), time.Second)) })
				synctest.Wait()
			}
			l.Set("x", 3)
			if n := tr.running(); n != 3 {
				t.Errorf("%d run after Set(3), want 3", n)
			}
			l.Set("x", 1)
			if n := tr.running(); n != 3 {
				t.Errorf("%d run after Set(1), want 3", n)
			}
			time.Sleep(1500 * time.Millisecond)
			if n := tr.running(); n != 1 {
				t.Errorf("%d run later, want 1", n)
			}
			wg.Wait()
		})
	})
	t.Run("work with one key never overlaps", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Lanes
			l.Set("main", 4)
			var a, all track
			var wg sync.WaitGroup
			for i := range 3 {
				wg.Go(func() { _ = l.Do(t.Context(), "main", "s", a.work(fmt.Sprint(i), time.Second)) })
				wg.Go(func() { _ = l.Do(t.Context(), "main", fmt.Sprint(i), all.work("", time.Second)) })
				synctest.Wait()
			}
			if n, m := a.running(), all.running(); n != 1 || m != 3 { // work that waits for its key takes no room in the lane
				t.Errorf("%d of the key and %d others run, want 1 and 3", n, m)
			}
			wg.Wait()
			if a.peak != 1 || strings.Join(a.order, "") != "012" {
				t.Errorf("got %d of a key at once in order %v", a.peak, a.order)
			}
			if len(l.keys) != 0 {
				t.Errorf("%d keys are left", len(l.keys))
			}
		})
	})
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lanes
		var tr track
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Do(t.Context(), "x", "k", tr.work("a", time.Minute)) })
		synctest.Wait()
		for _, key := range []string{"k", "", "other"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := l.Do(ctx, "x", key, tr.work("never", 0))
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("key %q: got %v", key, err)
			}
		}
		wg.Go(func() { _ = l.Do(t.Context(), "x", "k", tr.work("b", 0)) })
		wg.Wait()
		if !slices.Equal(tr.order, []string{"a", "b"}) {
			t.Errorf("order %v", tr.order)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Do(ended, "x", "k", tr.work("c", 0)); !errors.Is(err, context.Canceled) {
			t.Errorf("ended context: got %v", err)
		}
		live, stop := context.WithCancel(t.Context())
		_ = l.Do(live, "x", "k", func(ctx context.Context) error {
			if stop(); ctx.Err() == nil {
				t.Error("work does not get the context of Do")
			}
			return nil
		})
		if len(l.keys) != 0 || l.lanes["x"].used != 0 {
			t.Errorf("keys %v and lane %+v are left", l.keys, l.lanes["x"])
		}
	})
}

// TestCancelAtTurn ends the context of work at the moment when its turn comes: its
// place, in the lane or of its key, becomes free again.
func TestCancelAtTurn(t *testing.T) {
	for _, busy := range []string{"lane", "key"} {
		t.Run(busy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l Lanes
				var first *gate
				if l.Try("x", map[string]string{"key": "k"}[busy]); busy == "lane" {
					first = l.lanes["x"]
				} else {
					l.leaveLane("x")
					first = l.keys["k"]
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- l.Do(ctx, "x", "k", func(context.Context) error { return nil }) }()
				synctest.Wait()
				l.mu.Lock() // both happen before the waiting work looks again
				cancel()
				first.leave()
				l.mu.Unlock()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("the cancelled work: %v", err)
				}
				if leave := l.Try("x", "k"); leave == nil {
					t.Errorf("no place is free: lane %+v, keys %v", l.lanes["x"], l.keys)
				}
			})
		})
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	var l Lanes
	func() {
		defer func() { _ = recover() }()
		_ = l.Do(t.Context(), "x", "k", func(context.Context) error { panic("boom") })
	}()
	done := errors.New("ran")
	if err := l.Do(t.Context(), "x", "k", func(context.Context) error { return done }); !errors.Is(err, done) {
		t.Errorf("after a panic: got %v", err)
	}
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		l := Lanes{Slow: func(lane, key string, d time.Duration) {
			said = append(said, fmt.Sprintf("%s %s %v", lane, key, d))
		}}
		var tr track
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Do(t.Context(), "x", "a", tr.work("", 2*time.Second)) })
		synctest.Wait()
		wg.Go(func() { _ = l.Do(t.Context(), "x", "b", tr.work("", time.Second)) })
		synctest.Wait()
		wg.Go(func() { _ = l.Do(t.Context(), "x", "c", tr.work("", 0)) })
		wg.Wait()
		if !slices.Equal(said, []string{"x c 3s"}) {
			t.Errorf("got %q", said)
		}
	})
}

func BenchmarkDo(b *testing.B) {
	var l Lanes
	f := func(context.Context) error { return nil }
	for b.Loop() {
		_ = l.Do(b.Context(), "main", "key", f)
	}
}

func TestTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lanes
		l.Set("main", 2)
		leave := l.Try("main", "a")
		if leave == nil {
			t.Fatal("Try failed on a free lane")
		}
		if l.Try("main", "a") != nil {
			t.Error("Try entered twice with one key")
		}
		var tr track
		var wg sync.WaitGroup
		wg.Go(func() { _ = l.Do(t.Context(), "main", "b", tr.work("b", time.Second)) })
		wg.Go(func() { _ = l.Do(t.Context(), "main", "a", tr.work("a", time.Second)) })
		if n := tr.running(); n != 1 {
			t.Errorf("%d run, want 1: the key of the other is in use", n)
		}
		if l.Try("main", "c") != nil {
			t.Error("Try entered a full lane")
		}
		leave()
		if n := tr.running(); n != 2 {
			t.Errorf("%d run after leave, want 2", n)
		}
		wg.Wait()
		if len(l.keys) != 0 || l.lanes["main"].used != 0 {
			t.Errorf("%d keys and %d in the lane are left", len(l.keys), l.lanes["main"].used)
		}
	})
}

func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lanes
		l.Set("main", 1)
		l.Set("cron", 3)
		release := make(chan struct{})
		var wg sync.WaitGroup
		for _, key := range []string{"a", "a", "b"} {
			wg.Go(func() {
				_ = l.Do(t.Context(), "main", key, func(context.Context) error {
					<-release
					return nil
				})
			})
			synctest.Wait()
		}
		states, keys := l.States()
		if want := []State{{"cron", 3, 0, 0}, {"main", 1, 1, 1}}; !slices.Equal(states, want) {
			t.Errorf("lanes: %+v, want %+v", states, want)
		}
		if want := (Keys{Keys: 2, Active: 2, Queued: 1, Behind: 1}); keys != want {
			t.Errorf("keys: %+v, want %+v", keys, want)
		}
		close(release)
		wg.Wait()
		if _, keys := l.States(); keys != (Keys{}) {
			t.Errorf("keys at the end: %+v", keys)
		}
	})
}
