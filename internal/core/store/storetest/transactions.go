package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

func set(name, value string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.SetSetting(name, value) }
}

func setting(t *testing.T, s store.Store, name string) string {
	t.Helper()
	return get(t, s, func(r store.Reader) (string, error) { return r.Setting(name) })
}

// hold blocks the store with a commit until release is called, so that the commits
// of other callers are batched.
func hold(t *testing.T, s store.Store) (release func()) {
	t.Helper()
	started, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		ended <- s.Update(context.Background(), store.Ordered, func(store.Tx) error {
			once.Do(func() { close(started) })
			<-proceed
			return nil
		})
	}()
	<-started
	return func() {
		close(proceed)
		if err := <-ended; err != nil {
			t.Errorf("the blocking commit: %v", err)
		}
	}
}

func testTransactions(t *testing.T, s store.Store) {
	t.Run("an error is returned unchanged and rolls back", func(t *testing.T) {
		err := s.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			if err := tx.SetSetting("rolled", "back"); err != nil {
				return err
			}
			return errBoom
		})
		same(t, "error", errors.Is(err, errBoom), true)
		same(t, "value", setting(t, s, "rolled"), "")
	})
	t.Run("a panic fails only its caller", func(t *testing.T) {
		err := s.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			if err := tx.SetSetting("panic", "1"); err != nil {
				return err
			}
			panic("oh")
		})
		if err == nil {
			t.Error("no error")
		}
		same(t, "value", setting(t, s, "panic"), "")
		update(t, s, set("after", "1"))
	})
	t.Run("a function that ends its goroutine", func(t *testing.T) { testGoexit(t, s) })
	t.Run("one of several batched updates fails alone", func(t *testing.T) { testJoined(t, s) })
	t.Run("a function may run twice", func(t *testing.T) {
		n := 0
		update(t, s, func(tx store.Tx) error {
			v, err := tx.Setting("twice")
			if err != nil {
				return err
			}
			n, _ = strconv.Atoi(v)
			n++
			return tx.SetSetting("twice", strconv.Itoa(n))
		})
		same(t, "value", setting(t, s, "twice"), strconv.Itoa(n))
		same(t, "count", n, 1)
	})
	t.Run("a transaction sees its own writes, others do not yet", func(t *testing.T) { testOwnWrites(t, s) })
	t.Run("a view is a consistent snapshot", func(t *testing.T) {
		update(t, s, set("state", "1"))
		view(t, s, func(r store.Reader) error {
			first, err := r.Setting("state")
			if err != nil {
				return err
			}
			update(t, s, set("state", "2"))
			second, err := r.Setting("state")
			same(t, "second read", second, first)
			return err
		})
		same(t, "another view", setting(t, s, "state"), "2")
	})
	t.Run("an ended context", func(t *testing.T) { testEnded(t, s) })
}

func testGoexit(t *testing.T, s store.Store) {
	done := make(chan error, 1)
	go func() {
		err := errBoom // stays if the store ends the goroutine of the caller
		defer func() { done <- err }()
		err = s.Update(context.Background(), store.Ordered, func(tx store.Tx) error {
			if err := tx.SetSetting("goexit", "1"); err != nil {
				return err
			}
			runtime.Goexit()
			return nil
		})
	}()
	if err := <-done; err == nil {
		t.Error("no error")
	}
	same(t, "value", setting(t, s, "goexit"), "")
	update(t, s, set("after", "2"))
}

func testJoined(t *testing.T, s store.Store) {
	release := hold(t, s)
	var wg sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.Update(context.Background(), store.Sync(i%2 == 0), func(tx store.Tx) error {
				if err := tx.SetSetting(fmt.Sprintf("joined-%d", i), "1"); err != nil {
					return err
				}
				switch i {
				case 2:
					return errBoom
				case 3:
					panic("oh")
				}
				return nil
			})
		})
	}
	time.Sleep(10 * time.Millisecond) // lets the updates join one batch; the test holds without that too
	release()
	wg.Wait()
	for i, want := range []string{"1", "1", "", "", "1"} {
		same(t, fmt.Sprintf("value %d", i), setting(t, s, fmt.Sprintf("joined-%d", i)), want)
		same(t, fmt.Sprintf("error %d", i), errs[i] == nil, want == "1")
	}
	same(t, "the error is unchanged", errors.Is(errs[2], errBoom), true)
}

func testOwnWrites(t *testing.T, s store.Store) {
	update(t, s, set("seen", "old"))
	started, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		ended <- s.Update(context.Background(), store.Ordered, func(tx store.Tx) error {
			if err := tx.SetSetting("seen", "new"); err != nil {
				return err
			}
			v, err := tx.Setting("seen")
			if v != "new" {
				err = fmt.Errorf("own write: have %q", v)
			}
			once.Do(func() { close(started) })
			<-proceed
			return err
		})
	}()
	<-started
	same(t, "by another reader", setting(t, s, "seen"), "old") // does not wait for the update
	close(proceed)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	same(t, "after the commit", setting(t, s, "seen"), "new")
}

func testEnded(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := false
	err := s.Update(ctx, store.Ordered, func(store.Tx) error { ran = true; return nil })
	fails(t, "update", err, context.Canceled)
	fails(t, "view", s.View(ctx, func(store.Reader) error { ran = true; return nil }), context.Canceled)
	same(t, "ran", ran, false)

	// The update waits for another one, and its context ends meanwhile.
	release := hold(t, s)
	ctx, cancel = context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Update(ctx, store.Ordered, set("late", "1")) }()
	time.Sleep(10 * time.Millisecond)
	cancel()
	release()
	fails(t, "update that waited", <-ended, context.Canceled)
	same(t, "value", setting(t, s, "late"), "")

	// Once started, an update runs to completion.
	ctx, cancel = context.WithCancel(t.Context())
	if err := s.Update(ctx, store.Synced, func(tx store.Tx) error {
		cancel()
		return tx.SetSetting("begun", "1")
	}); err != nil {
		t.Errorf("started: %v", err)
	}
	same(t, "value", setting(t, s, "begun"), "1")
}

// testConcurrency has 64 sessions write and read concurrently. Each sees its own
// commits immediately and in order, and no reader sees a partial commit.
func testConcurrency(t *testing.T, s store.Store) {
	const writers, rounds = 64, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			id := fmt.Sprintf("t-%d", w)
			for n := range rounds {
				err := s.Update(t.Context(), store.Sync(n%4 == 0), func(tx store.Tx) error {
					if err := tx.Sessions().Append(id,
						&session.Entry{ID: fmt.Sprint(n, "u"), Kind: session.KindMessage, Message: llm.User("q")},
						&session.Entry{ID: fmt.Sprint(n, "a"), Kind: session.KindMessage, Message: llm.User("a")}); err != nil {
						return err
					}
					v, err := tx.Setting("total")
					if err != nil {
						return err
					}
					total, _ := strconv.Atoi(v)
					return tx.SetSetting("total", strconv.Itoa(total+1))
				})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				err = s.View(t.Context(), func(r store.Reader) error {
					if have, err := r.Sessions().Count(id); err != nil || have != 2*(n+1) {
						t.Errorf("writer %d, round %d: %d entries, %v", w, n, have, err)
					}
					other, err := r.Sessions().Count(fmt.Sprintf("t-%d", (w+1)%writers))
					if other%2 != 0 {
						t.Errorf("partial commit: %d entries", other)
					}
					return err
				})
				if err != nil {
					t.Errorf("reader %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	same(t, "no update is lost", setting(t, s, "total"), strconv.Itoa(writers*rounds))
}

func testWakes(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wakes := s.Wakes(ctx, store.TopicQueue)
	topic := func(key chela.SessionKey) store.Topic { return store.Topic{Kind: store.TopicQueue, Session: key} }

	var committed atomic.Bool
	if err := s.Update(ctx, store.Ordered, func(tx store.Tx) error { tx.Wake(topic("failed")); return errBoom }); err ==
		nil {
		t.Fatal("no error")
	}
	update(t, s, func(tx store.Tx) error {
		tx.Wake(topic(keyA))
		return tx.SetSetting("woken", "1")
	})
	committed.Store(true)
	got := next(t, wakes)
	same(t, "wake of the successful commit only", got, topic(keyA))
	same(t, "its rows are visible", setting(t, s, "woken"), "1")

	t.Run("a slow reader gets the last wake of each topic", func(t *testing.T) {
		for range 1000 {
			update(t, s, func(tx store.Tx) error { tx.Wake(topic(keyA)); tx.Wake(topic(keyB)); return nil })
		}
		update(t, s, func(tx store.Tx) error { tx.Wake(topic("last")); return nil })
		have := map[store.Topic]int{}
		for n := 0; have[topic("last")] == 0; n++ {
			have[next(t, wakes)]++
			if n > 100 {
				t.Fatal("pending wakes are not coalesced")
			}
		}
		if have[topic(keyA)] == 0 || have[topic(keyB)] == 0 {
			t.Errorf("missing: %v", have)
		}
	})
	t.Run("every reader gets the wakes", func(t *testing.T) {
		other := s.Wakes(ctx, store.TopicQueue)
		update(t, s, func(tx store.Tx) error { tx.Wake(topic("c")); return nil })
		for _, c := range []<-chan store.Topic{wakes, other} {
			for got := next(t, c); got != topic("c"); got = next(t, c) {
			}
		}
	})
	t.Run("a reader gets only its kind", func(t *testing.T) {
		outbox := s.Wakes(ctx, store.TopicOutbox)
		update(t, s, func(tx store.Tx) error {
			tx.Wake(topic(keyA))
			tx.Wake(store.Topic{Kind: store.TopicOutbox})
			return nil
		})
		same(t, "wake", next(t, outbox), store.Topic{Kind: store.TopicOutbox})
	})
	t.Run("the end of the context closes the channel", func(t *testing.T) {
		cancel()
		waittest.Until(t, "the end of the wakes", func() bool {
			select {
			case _, ok := <-wakes:
				return !ok
			default:
				return false
			}
		})
	})
}

func next(t *testing.T, c <-chan store.Topic) store.Topic {
	t.Helper()
	got := waittest.For(t, "a wake", c)
	if got == (store.Topic{}) {
		t.Fatal("wakes are closed")
	}
	return got
}
