package channels

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

// retryAfter is how long an account waits after the store refused a write.
const retryAfter = time.Second

// lease returns the name of the account's lease.
func (k key) lease() string { return lease.Channel(k.channel, chela.AccountID(k.account)) }

// hold waits until this process has the lease of the account. It reports false if ctx
// ends first.
func (s *Supervisor) hold(ctx context.Context, k key, a *account) bool {
	tick, stop := s.o.Owner.Tick()
	defer stop()
	for ctx.Err() == nil {
		l, err := s.take(ctx, k)
		if err != nil && !errors.Is(err, chela.ErrFenced) {
			if ctx.Err() == nil {
				s.o.Log.Error("take the lease of an account; retrying", "channel", k.String(), "err", err)
			}
			_ = backoff.Sleep(ctx, retryAfter)
			continue
		}
		s.mu.Lock()
		a.lease = l
		a.closeReadyLocked()
		s.mu.Unlock()
		if err == nil {
			return true
		}
		select {
		case <-tick:
			s.mu.Lock()
			a.ready = make(chan struct{}) // rows of the outbox that the next commit wakes wait for its outcome
			s.mu.Unlock()
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// take acquires the lease of an account, and wakes the delivery of its messages. The
// error is chela.ErrFenced if another process that is alive has the lease.
func (s *Supervisor) take(ctx context.Context, k key) (l lease.Lease, err error) {
	err = s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		got, ok, err := tx.Leases().Acquire(k.lease(), s.o.Owner.ID())
		if err == nil && !ok {
			err = fmt.Errorf("%s: %w", k.lease(), chela.ErrFenced)
		}
		l = got
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return err
	})
	if err != nil {
		l = lease.Lease{}
	}
	return l, err
}

// watch replaces the instance of an account when another process has taken its lease,
// because this one was stopped for too long. The new instance waits for the lease.
func (s *Supervisor) watch(ctx context.Context, k key, a *account) {
	tick, stop := s.o.Owner.Tick()
	defer stop()
	for tick != nil {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		have, err := store.Get(ctx, s.o.Store, func(r store.Reader) (lease.Lease, error) { return r.Leases().Get(k.lease()) })
		if err != nil || have == a.lease {
			continue
		}
		s.o.Log.Warn("another process runs the account now", "channel", k.String())
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.accounts[k] == a {
			next := newAccount(a.raw, a.create)
			next.rev = a.rev
			s.replaceLocked(k, next)
		}
		return
	}
}

// release frees the lease of a removed account after its last call, for other processes
// that still have the account.
func (s *Supervisor) release(k key, a *account) {
	select {
	case <-a.done:
	case <-s.ctx.Done():
		return // the lease ends with this process
	}
	s.mu.Lock()
	if s.removed[k] == a {
		delete(s.removed, k)
	}
	s.mu.Unlock()
	if a.lease.Owner == "" {
		return
	}
	err := s.o.Store.Update(s.ctx, store.Ordered, func(tx store.Tx) error { return tx.Leases().Release(a.lease) })
	if err != nil && s.ctx.Err() == nil {
		s.o.Log.Error("free the lease of a removed account", "lease", a.lease.Name, "err", err)
	}
}
