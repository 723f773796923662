// Package leaseholder keeps a process the owner of its leases. A [Holder] renews the
// heartbeat of the process and reports whether it is certainly still valid. All parts
// that take leases or act under one share the process's Holder.
package leaseholder

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/store"
)

// Options configures a Holder.
type Options struct {
	Log   *slog.Logger
	Store store.Store
	ID    string // of this process, different after each start

	// TTL is how long the leases of this process last after it was stopped, for
	// example by SIGSTOP. It is set when several processes use the store. 0: no
	// other process uses the store, and all leases of others are void.
	TTL time.Duration

	// Held reports whether the process certainly still has the store, if another one can
	// take all of it over. nil: it has.
	Held func() bool

	// Step is called before each heartbeat. Tests stop the process in it. nil:
	// nothing is called.
	Step func(name string)
}

// Holder is a process that takes leases. It is safe for concurrent use.
type Holder struct {
	o    Options
	beat atomic.Pointer[beat] // the last one; nil if TTL is 0
}

// beat is a heartbeat. lapses is how many of the earlier ones expired before the next
// one was written.
type beat struct {
	lease.Beat
	lapses int
}

// New returns the Holder of this process after its first heartbeat.
func New(ctx context.Context, o Options) (*Holder, error) {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	h := &Holder{o: o}
	if o.TTL <= 0 {
		return h, nil
	}
	return h, h.send(ctx, o.TTL)
}

// ID returns the id of the process in its leases.
func (h *Holder) ID() string { return h.o.ID }

// Track returns a function that reports whether the process has certainly held its
// leases since the call of Track. That function is called before each action outside of
// the store: a model call, a tool, a message. The answer stays false after a lapse, when
// the process sends heartbeats again: another process may have taken over a lease.
func (h *Holder) Track() (alive func() bool) {
	switch {
	case h.o.TTL <= 0 && h.o.Held != nil:
		return h.o.Held
	case h.o.TTL <= 0:
		return func() bool { return true }
	}
	lapses := h.beat.Load().lapses
	return func() bool {
		b := h.beat.Load()
		return b.lapses == lapses && b.Valid(time.Now())
	}
}

// Tick returns a channel that receives at the interval of heartbeats until stop is
// called: another process may have ended since, or may have taken over a lease. The
// channel is nil if no other process uses the store.
func (h *Holder) Tick() (c <-chan time.Time, stop func()) {
	if h.o.TTL <= 0 {
		return nil, func() {}
	}
	t := time.NewTicker(h.o.TTL / 3)
	return t.C, t.Stop
}

// Run renews the heartbeat until ctx ends. It then declares the process dead, so that
// others can take over its leases at once. The caller ends ctx after all parts that use
// the Holder have ended.
func (h *Holder) Run(ctx context.Context) error {
	tick, stop := h.Tick()
	defer stop()
	for ctx.Err() == nil {
		select {
		case <-tick:
			if err := h.send(ctx, h.o.TTL); err != nil && ctx.Err() == nil {
				h.o.Log.Error("renew the leases of this process; retrying", "err", err)
			}
		case <-ctx.Done():
		}
	}
	if h.o.TTL <= 0 {
		return nil
	}
	return h.send(context.WithoutCancel(ctx), 0)
}

// send writes a heartbeat that is valid for ttl.
func (h *Holder) send(ctx context.Context, ttl time.Duration) error {
	h.o.Step("lease.beat")
	b := beat{Beat: lease.Beat{Sent: time.Now(), TTL: ttl}}
	err := h.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return tx.Leases().Beat(h.o.ID, ttl) })
	if err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	if last := h.beat.Load(); last != nil {
		b.lapses = last.lapses
		if !last.Valid(time.Now()) {
			b.lapses++
		}
	}
	h.beat.Store(&b)
	return nil
}
