// Package channels supervises the accounts of channels. It runs one instance of a channel
// per configured account. A change of the configuration restarts only the accounts whose
// section changed.
//
// The new instance of an account starts after Run and all calls of the old instance have
// returned. [Supervisor.Acquire] waits for that. A removed account is no longer found;
// its rows in the outbox wait until they expire.
//
// If several processes share a store, an account runs in the process that holds its
// lease. The others try to take the lease over, in case that process ends.
package channels

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/service"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
)

// Options configures a Supervisor.
type Options struct {
	Log       *slog.Logger
	Store     store.Store
	Owner     *leaseholder.Holder // this process
	Factories []channel.Factory
	HTTP      func() *http.Client // returns the client of an account; called when the account is created
	Dir       string              // directory of the files of the accounts
}

// Supervisor runs the accounts. It is safe for concurrent use.
type Supervisor struct {
	o Options

	mu       sync.Mutex
	ctx      context.Context // the context of Run; nil before Run
	sink     channel.Sink
	accounts map[key]*account
	removed  map[key]*account // removed accounts with calls in progress
	wg       sync.WaitGroup   // running accounts
}

// key identifies an account.
type key struct{ channel, account string }

// account is an instance of a channel.
type account struct {
	raw    json.RawMessage                 // its section of the configuration
	create func() (channel.Channel, error) // creates a further instance
	ch     channel.Channel                 // nil: it could not be created

	after  *account      // the instance that this one replaces; nil: none
	done   chan struct{} // closed when the instance is stopped and no call is in progress
	cancel context.CancelFunc

	// Guarded by Supervisor.mu.
	ready   chan struct{} // closed when it is known whether the instance may be used
	lease   lease.Lease   // zero: another process runs the account
	uses    int           // calls in progress
	stopped bool          // no new calls are allowed
	ended   bool          // Run has returned, or was never called
	err     error
}

// newAccount creates an instance of a channel, which is not started.
func newAccount(raw json.RawMessage, create func() (channel.Channel, error)) *account {
	a := &account{raw: raw, create: create, ready: make(chan struct{}), done: make(chan struct{})}
	if a.ch, a.err = create(); a.err != nil {
		a.ch = nil
	}
	return a
}

// New returns a Supervisor without accounts.
func New(o Options) *Supervisor {
	return &Supervisor{o: o, accounts: map[key]*account{}, removed: map[key]*account{}}
}

// Plan is a prepared change of the accounts.
type Plan struct {
	changed map[key]*account
	removed []key
}

// Prepare creates the new and changed accounts of a configuration without starting them.
// section returns the JSON at a path of the configuration. Prepare returns an error if an
// account cannot be created.
func (s *Supervisor) Prepare(section func(path string) json.RawMessage) (*Plan, error) {
	p := &Plan{changed: map[key]*account{}}
	wanted := map[key]bool{}
	var errs []error
	for i := range s.o.Factories {
		f := &s.o.Factories[i]
		sections, err := f.AccountSections(section("channels." + f.Name))
		if err != nil {
			errs = append(errs, fmt.Errorf("configuration, channels.%s: %w", f.Name, err))
			continue
		}
		errs = append(errs, checkDistinct(f, sections))
		for _, id := range slices.Sorted(maps.Keys(sections)) {
			k := key{f.Name, id}
			wanted[k] = true
			if old := s.lookup(k); old != nil && old.ch != nil && bytes.Equal(old.raw, sections[id]) {
				continue
			}
			raw := sections[id]
			env := channel.Env{Log: s.o.Log.With("channel", f.Name, "account", id), HTTP: s.o.HTTP(), Dir: filepath.Join(s.o.Dir, f.Name, cmp.Or(id, "default"))}
			a := newAccount(raw, func() (channel.Channel, error) { return f.New(env, id, raw) })
			if a.err != nil {
				errs = append(errs, fmt.Errorf("channel %s: %w", k, a.err))
			}
			p.changed[k] = a
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.accounts {
		if !wanted[k] {
			p.removed = append(p.removed, k)
		}
	}
	return p, errors.Join(errs...)
}

// checkDistinct returns an error if two accounts have the same identity.
func checkDistinct(f *channel.Factory, sections map[string]json.RawMessage) error {
	if f.Identity == nil {
		return nil
	}
	first := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(sections)) {
		who := f.Identity(sections[id])
		if other, taken := first[who]; taken && who != "" {
			return fmt.Errorf("configuration, channels.%s: the accounts %s and %s are the same", f.Name, other, id)
		}
		first[who] = id
	}
	return nil
}

// Apply applies a plan. It does not wait: an instance that replaces another one starts
// after the other one has stopped.
func (s *Supervisor) Apply(p *Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range p.removed {
		a := s.accounts[k]
		a.stopLocked()
		delete(s.accounts, k)
		if s.ctx != nil {
			s.removed[k] = a
			s.wg.Go(func() { s.release(k, a) })
		}
	}
	for k, a := range p.changed {
		old := s.accounts[k]
		if old != nil && old.reload(s.o.Log, a.raw) {
			old.raw, old.create = a.raw, a.create
			continue
		}
		s.replaceLocked(k, a)
	}
}

// replaceLocked makes a the instance of an account, and stops the former one.
func (s *Supervisor) replaceLocked(k key, a *account) {
	a.after = s.removed[k]
	delete(s.removed, k)
	if old := s.accounts[k]; old != nil {
		a.after = old
		old.stopLocked()
	}
	s.accounts[k] = a
	if s.ctx != nil {
		s.startLocked(k, a)
	}
}

// reload passes a new section to the running instance and reports whether the instance
// applied it.
func (a *account) reload(log *slog.Logger, raw json.RawMessage) bool {
	r, ok := a.ch.(service.Reloader)
	if !ok || a.ended {
		return false
	}
	applied, err := r.Reload(raw)
	if err != nil {
		log.Warn("channel refused its new configuration; restarting it", "err", err)
		return false
	}
	return applied
}

// Run runs the accounts until ctx ends and Run of every account has returned. sink
// receives the messages of all accounts. The accounts can still send messages after Run
// has returned.
func (s *Supervisor) Run(ctx context.Context, sink channel.Sink) error {
	s.mu.Lock()
	s.ctx, s.sink = ctx, sink
	for k, a := range s.accounts {
		s.startLocked(k, a)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.wg.Wait()
	return nil
}

// startLocked starts an account after the instance that it replaces is done.
func (s *Supervisor) startLocked(k key, a *account) {
	ctx, cancel := context.WithCancel(s.ctx)
	a.cancel = cancel
	after := a.after
	a.after = nil // release the old instance
	s.wg.Go(func() {
		defer cancel()
		if after != nil {
			select {
			case <-after.done:
			case <-ctx.Done():
			}
		}
		var err error
		if a.ch != nil && s.hold(ctx, k, a) {
			s.wg.Go(func() { s.watch(ctx, k, a) })
			err = a.ch.Run(ctx, s.sink)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		a.ended = true
		a.closeReadyLocked() // of an instance that was stopped before it had the lease
		if err != nil && !errors.Is(err, context.Canceled) {
			a.err = err
			s.o.Log.Error("channel ended", "channel", k.String(), "err", err)
		}
		a.closeDoneLocked()
	})
}

// stopLocked ends Run of an account and prevents new calls.
func (a *account) stopLocked() {
	a.stopped = true
	if a.cancel != nil {
		a.cancel()
	} else {
		a.ended = true
	}
	a.closeDoneLocked()
}

// closeReadyLocked closes ready. Acquire then looks at the instance again.
func (a *account) closeReadyLocked() {
	select {
	case <-a.ready:
	default:
		close(a.ready)
	}
}

// closeDoneLocked closes done if the account is stopped and nothing is in progress.
func (a *account) closeDoneLocked() {
	if a.stopped && a.ended && a.uses == 0 {
		select {
		case <-a.done:
		default:
			close(a.done)
		}
	}
}

// Acquire returns the instance of an account for a few calls. It waits while the account
// is being restarted. The chain of its error contains chela.ErrFenced if another process
// runs the account, and chela.ErrNotFound if there is no such account or it could not be
// created.
func (s *Supervisor) Acquire(ctx context.Context, name string, id chela.AccountID) (channel.Instance, error) {
	for {
		s.mu.Lock()
		a := s.findLocked(name, string(id))
		if a == nil || a.ch == nil {
			s.mu.Unlock()
			return channel.Instance{}, fmt.Errorf("channel %s: %w", key{name, string(id)}, chela.ErrNotFound)
		}
		ready := a.ready
		select {
		case <-ready:
			in, err := a.useLocked()
			s.mu.Unlock()
			switch {
			case err != nil:
				return in, fmt.Errorf("channel %s: %w", key{name, string(id)}, err)
			case in.Channel == nil:
				continue // the instance was replaced
			}
			in.Release = sync.OnceFunc(func() { s.endUse(a) })
			return in, nil
		default:
		}
		s.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return channel.Instance{}, ctx.Err()
		}
	}
}

// Elsewhere reports whether another process runs the account.
func (s *Supervisor) Elsewhere(name string, id chela.AccountID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.findLocked(name, string(id))
	if a == nil || a.ch == nil || a.stopped {
		return false
	}
	select {
	case <-a.ready:
		return a.lease.Owner == ""
	default:
		return false
	}
}

// useLocked counts a use of a ready instance. The Instance is empty if it is stopped.
func (a *account) useLocked() (channel.Instance, error) {
	switch {
	case a.stopped:
		return channel.Instance{}, nil
	case a.lease.Owner == "":
		return channel.Instance{}, chela.ErrFenced
	}
	a.uses++
	return channel.Instance{Channel: a.ch, Lease: a.lease}, nil
}

func (s *Supervisor) endUse(a *account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.uses--
	a.closeDoneLocked()
}

// findLocked returns the instance for an account id: the account itself; or the instance
// that serves every account; or, if id is empty, the only account of the channel.
func (s *Supervisor) findLocked(name, id string) *account {
	f := s.factory(name)
	if f == nil {
		return nil
	}
	if a := s.accounts[key{f.Name, id}]; a != nil {
		return a
	}
	if a := s.accounts[key{f.Name, ""}]; a != nil || id != "" {
		return a
	}
	var only *account
	for k, a := range s.accounts {
		if k.channel == f.Name && only != nil {
			return nil
		}
		if k.channel == f.Name {
			only = a
		}
	}
	return only
}

// factory returns the factory of a channel, or nil if there is none.
func (s *Supervisor) factory(name string) *channel.Factory {
	i := slices.IndexFunc(s.o.Factories, func(f channel.Factory) bool { return f.Named(name) })
	if i < 0 {
		return nil
	}
	return &s.o.Factories[i]
}

func (s *Supervisor) lookup(k key) *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts[k]
}

// Limits returns the limits of the platform of a channel.
func (s *Supervisor) Limits(name string) channel.Limits {
	if f := s.factory(name); f != nil {
		return f.Limits
	}
	return channel.Limits{}
}

// States returns, by channel and account id, the error that ended an account or prevented
// its creation, or nil if the account is running, here or in another process.
func (s *Supervisor) States() map[string]map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]map[string]error{}
	for k, a := range s.accounts {
		if out[k.channel] == nil {
			out[k.channel] = map[string]error{}
		}
		out[k.channel][k.account] = a.err
	}
	return out
}

// String returns "channel/account", or only the channel if there is no account id.
func (k key) String() string {
	if k.account == "" {
		return k.channel
	}
	return k.channel + "/" + k.account
}
