package channels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/test/power"
)

const ttl = 30 * time.Second

// process is a Supervisor in one of several processes that share a store.
type process struct {
	*Supervisor
	events eventLog
	change func(conf)
	end    func() // ends the process
	pause  func() // stops its heartbeats and its watches, as SIGSTOP does
	resume func()
}

// launch starts a process on the store.
func launch(t *testing.T, st store.Store, id string) *process {
	t.Helper()
	p := &process{}
	pausing := &pausing{Store: st}
	h, err := leaseholder.New(t.Context(),
		leaseholder.Options{Log: slog.New(slog.DiscardHandler), Store: pausing, ID: id, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() { _ = h.Run(ctx) })
	var stop func()
	p.Supervisor, p.change, stop = startOn(t, `{"key": "1"}`, pausing, h, &p.events)
	p.end = sync.OnceFunc(func() { stop(); cancel(); beats.Wait() })
	p.pause, p.resume = pausing.pause, pausing.resume
	t.Cleanup(p.end)
	return p
}

// pausing is the store of a process that can be stopped.
type pausing struct {
	store.Store
	stopped atomic.Pointer[chan struct{}] // nil: the process is not stopped
}

func (p *pausing) pause() {
	c := make(chan struct{})
	p.stopped.Store(&c)
}

func (p *pausing) resume() { close(*p.stopped.Swap(nil)) }

func (p *pausing) wait() {
	if c := p.stopped.Load(); c != nil {
		<-*c
	}
}

func (p *pausing) View(ctx context.Context, f func(store.Reader) error) error {
	p.wait()
	return p.Store.View(ctx, f)
}

func (p *pausing) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	p.wait()
	return p.Store.Update(ctx, s, f)
}

// TestLease runs an account in one of two processes.
func TestLease(t *testing.T) {
	both := func(name string, f func(t *testing.T, a, b *process)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := power.New(t).Open(t)
				a, b := launch(t, st, "a"), launch(t, st, "b")
				defer b.end()
				defer a.end()
				time.Sleep(2 * ttl)
				a.expect(t, "run default1")
				b.expect(t)
				if _, err := b.Acquire(t.Context(), "line", ""); !errors.Is(err, chela.ErrFenced) || !b.Elsewhere("line", "") {
					t.Errorf("the account in the other process: %v, elsewhere %t", err, b.Elsewhere("line", ""))
				}
				f(t, a, b)
			})
		})
	}
	both("it moves when its process ends", func(t *testing.T, a, b *process) {
		a.end()
		a.expect(t, "end default1")
		time.Sleep(ttl / 2)
		b.expect(t, "run default1")
		in, err := b.Acquire(t.Context(), "line", "")
		if err != nil || in.Lease.Owner != "b" {
			t.Fatalf("the lease is %+v, %v", in.Lease, err)
		}
		in.Release()
	})
	both("it moves when the heartbeat of its process expires, and ends there", func(t *testing.T, a, b *process) {
		a.pause()
		time.Sleep(ttl / 2)
		b.expect(t)
		time.Sleep(ttl)
		b.expect(t, "run default1")
		a.resume()
		time.Sleep(ttl)
		a.expect(t, "end default1")
		b.end()
		time.Sleep(ttl)
		a.expect(t, "run default1")
	})
	both("it moves when it is removed in its process, after its last call", func(t *testing.T, a, b *process) {
		in, err := a.Acquire(t.Context(), "line", "")
		if err != nil {
			t.Fatal(err)
		}
		a.change("")
		time.Sleep(ttl)
		a.expect(t, "end default1")
		b.expect(t)
		in.Release()
		time.Sleep(ttl)
		b.expect(t, "run default1")
	})
	both("after a change that was applied in place, a further instance has the new configuration",
		func(t *testing.T, a, b *process) {
			a.change(`{"key": "2", "live": true}`)
			a.change(`{"key": "3", "live": true}`)
			time.Sleep(ttl)
			a.expect(t, "end default1", "run default2", "reload 3")
			a.pause()
			time.Sleep(2 * ttl)
			b.expect(t, "run default1")
			a.resume()
			time.Sleep(ttl)
			b.end()
			time.Sleep(ttl)
			a.expect(t, "end default2", "run default3")
		})
	both("it stays when its configuration changes", func(t *testing.T, a, b *process) {
		a.change(`{"key": "2"}`)
		time.Sleep(ttl)
		a.expect(t, "end default1", "run default2")
		b.expect(t)
	})
}

// connecting is a channel that calls a function when it is run.
type connecting struct {
	line
	run func()
}

func (c connecting) Run(ctx context.Context, _ channel.Sink) error {
	c.run()
	<-ctx.Done()
	return ctx.Err()
}

// TestPower cuts the power after every commit of an account that one process runs and
// another takes over. Before the account connects, the disk says which process has it.
func TestPower(t *testing.T) {
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		for _, id := range []string{"a", "b"} {
			h, err := leaseholder.New(t.Context(), leaseholder.Options{Store: s, ID: id})
			if err != nil {
				t.Fatal(err)
			}
			connected := make(chan struct{})
			v := New(Options{
				Log: slog.New(slog.DiscardHandler), Store: s, Owner: h,
				Factories: []channel.Factory{
					{Name: "line", New: func(channel.Env, string, json.RawMessage) (channel.Channel, error) {
						return connecting{run: func() {
							report(func(r store.Reader) error {
								l, err := r.Leases().Get(lease.Channel("line", "default"))
								if err == nil && l.Owner < id { // a later process may have it
									err = fmt.Errorf("%q has the lease, and %s connected", l.Owner, id)
								}
								return err
							})
							close(connected)
						}}, nil
					}}},
			})
			plan, err := v.Prepare(conf(`{"key": "1"}`).section)
			if err != nil {
				t.Fatal(err)
			}
			v.Apply(plan)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); _ = v.Run(ctx, nil) }()
			waittest.For(t, "the connection of the account of "+id, connected)
			cancel()
			<-done
		}
	})
}

// TestRemovedAndAdded adds an account again while a call of its removed instance is in
// progress.
func TestRemovedAndAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, events, change, stop := start(t, `{"key": "1"}`)
		defer stop()
		in, err := s.Acquire(t.Context(), "line", "")
		if err != nil {
			t.Fatal(err)
		}
		change("")
		change(`{"key": "2"}`)
		if got, want := events.take(), []string{"run default1", "end default1"}; !slices.Equal(got, want) {
			t.Errorf("while a call is in progress: %q, want %q", got, want)
		}
		in.Release()
		synctest.Wait()
		if got, want := events.take(), []string{"run default2"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// expect compares the events of the process since the last call.
func (p *process) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := p.events.take(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
