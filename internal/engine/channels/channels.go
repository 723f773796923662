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
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/service"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/notice"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

// Options configures a Supervisor.
type Options struct {
	Log       *slog.Logger
	Store     store.Store
	Owner     *leaseholder.Holder // this process
	Factories []channel.Factory
	Env       channel.Env       // for all accounts; each has a Log, a Dir and a Report of its own
	Dir       string            // directory of the files of the accounts
	Menu      []channel.Command // shown by platforms with menus
	Bus       *bus.Bus          // of notices; nil: there are none
	Notices   notice.Writer     // tells the owner about accounts that do not work

	// Moved is called when a platform has given a group of an account another id; nil: that
	// is ignored.
	Moved func(ctx context.Context, account chela.Address, from, to string)
}

// Supervisor runs the accounts. It is safe for concurrent use.
type Supervisor struct {
	o Options

	mu       sync.Mutex
	ctx      context.Context // the context of Run; nil before Run
	sink     channel.Sink
	accounts map[key]*account
	removed  map[key]*account  // removed accounts with calls in progress
	outages  map[key]*outage   // of accounts that do not work
	more     []channel.Factory // of the last plan, in addition to those of the options
	wg       sync.WaitGroup    // running accounts
}

// key identifies an account.
type key struct{ channel, account string }

// account is an instance of a channel.
type account struct {
	raw    json.RawMessage                         // its section of the configuration
	rev    string                                  // revision of its factory
	create func(*account) (channel.Channel, error) // creates a further instance
	ch     channel.Channel                         // nil: it could not be created

	after  *account      // the instance that this one replaces; nil: none
	done   chan struct{} // closed when the instance is stopped and no call is in progress
	cancel context.CancelFunc

	// Guarded by Supervisor.mu.
	ready   chan struct{} // closed when it is known whether the instance may be used
	lease   lease.Lease   // zero: another process runs the account
	uses    int           // calls in progress
	stopped bool          // no new calls are allowed
	ended   bool          // Run has returned, or was never called
	failed  int           // runs in a row that ended with an error
	worked  bool          // its connection was reported to work
	err     error         // why it ended or was not created
	lost    error         // why its connection is lost; nil: it is not, or was not reported
}

// newAccount creates an instance of a channel, which is not started.
func newAccount(raw json.RawMessage, create func(*account) (channel.Channel, error)) *account {
	a := &account{raw: raw, create: create, ready: make(chan struct{}), done: make(chan struct{})}
	if a.ch, a.err = create(a); a.err != nil {
		a.ch = nil
	}
	return a
}

// maker returns the function that creates the instances of an account.
func (s *Supervisor) maker(f *channel.Factory, id string, raw json.RawMessage) func(*account) (channel.Channel, error) {
	env := s.o.Env
	env.Log, env.Dir = s.o.Log.With("channel", f.Name), filepath.Join(s.o.Dir, f.Name)
	if !f.Internal {
		env.Log, env.Dir = env.Log.With("account", id), filepath.Join(env.Dir, cmp.Or(id, "default"))
	}
	return func(a *account) (channel.Channel, error) {
		own := env
		own.Report = func(err error) { s.report(key{f.Name, id}, a, err) }
		own.Moved = func(from, to string) { s.moved(key{f.Name, id}, from, to) }
		return f.New(own, id, raw)
	}
}

// moved passes on that a group has another id. It does not wait, because the account may be
// restarted.
func (s *Supervisor) moved(k key, from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Moved == nil || s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	s.wg.Go(func() {
		s.o.Moved(s.ctx, chela.Address{Channel: k.channel, Account: chela.AccountID(k.account)}, from, to)
	})
}

// New returns a Supervisor without accounts.
func New(o Options) *Supervisor {
	return &Supervisor{o: o, accounts: map[key]*account{}, removed: map[key]*account{}, outages: map[key]*outage{}}
}

// Plan is a prepared change of the accounts.
type Plan struct {
	more    []channel.Factory
	changed map[key]*account
	removed []key
}

// Prepare creates the new and changed accounts of a configuration without starting them.
// section returns the JSON at a path of the configuration. more are channels in addition
// to those of the options, whose names differ; they exist until the next plan is applied.
// Prepare returns an error if an account cannot be created.
func (s *Supervisor) Prepare(section func(path string) json.RawMessage, more ...channel.Factory) (*Plan, error) {
	p := &Plan{more: more, changed: map[key]*account{}}
	wanted := map[key]bool{}
	var errs []error
	factories := slices.Concat(s.o.Factories, more)
	for i := range factories {
		f := &factories[i]
		if f.Internal {
			continue
		}
		sections, err := f.AccountSections(section("channels." + f.Name))
		if err != nil {
			errs = append(errs, fmt.Errorf("configuration, channels.%s: %w", f.Name, err))
			continue
		}
		errs = append(errs, checkDistinct(f, sections))
		for _, id := range slices.Sorted(maps.Keys(sections)) {
			k := key{f.Name, id}
			wanted[k] = true
			if old := s.lookup(k); old != nil && old.ch != nil && bytes.Equal(old.raw, sections[id]) && old.rev == f.Revision {
				continue
			}
			raw := sections[id]
			a := newAccount(raw, s.maker(f, id, raw))
			a.rev = f.Revision
			if a.err != nil {
				errs = append(errs, fmt.Errorf("channel %s: %w", k, a.err))
			}
			p.changed[k] = a
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.accounts {
		if !wanted[k] && !s.internalLocked(k.channel) {
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
		s.endOutageLocked(k)
		delete(s.accounts, k)
		if s.ctx != nil {
			s.removed[k] = a
			s.wg.Go(func() { s.release(k, a) })
		}
	}
	s.more = p.more
	for k, a := range p.changed {
		old := s.accounts[k]
		if old != nil && old.rev == a.rev && old.reload(s.o.Log, a.raw) {
			old.raw, old.create = a.raw, a.create
			continue
		}
		s.endOutageLocked(k)
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
			if m, ok := channel.As[channel.Menuer](a.ch); ok && len(s.o.Menu) > 0 {
				s.wg.Go(func() { s.menu(ctx, k, m) })
			}
			err = s.runs(ctx, k, a)
		}
		s.mu.Lock()
		a.ended = true
		a.closeReadyLocked() // of an instance that was stopped before it had the lease
		again := a.failLocked(err)
		if err != nil && !a.stopped {
			s.outageLocked(k, err, !again)
		}
		a.closeDoneLocked()
		s.mu.Unlock()
		switch {
		case again:
			s.again(ctx, k, a, err)
		case err != nil:
			s.o.Log.Error("channel ended", "channel", k.String(), "err", err)
		}
	})
}

// menuTries is how often a menu is sent until the platform accepts it.
const menuTries = 5

// menu shows people the commands.
func (s *Supervisor) menu(ctx context.Context, k key, m channel.Menuer) {
	pauses := backoff.Policy{First: 5 * time.Second, Max: 5 * time.Minute, Jitter: 0.3}
	for try := 1; ; try++ {
		within, cancel := context.WithTimeout(ctx, time.Minute)
		err := m.Menu(within, s.o.Menu)
		cancel()
		refused, _ := errors.AsType[*channel.Error](err)
		switch {
		case err == nil || ctx.Err() != nil:
			return
		case try == menuTries || refused != nil && refused.Permanent:
			s.o.Log.Warn("the platform did not accept the menu of commands", "channel", k.String(), "err", err)
			return
		}
		pause := pauses.Delay(try, rand.Float64())
		if refused != nil {
			pause = max(pause, refused.RetryAfter)
		}
		_ = backoff.Sleep(ctx, pause)
	}
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
		if a == nil && s.internalLocked(name) {
			a = s.startInternalLocked(name)
		}
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

// startInternalLocked creates the account of an internal channel. It starts at once if the
// Supervisor runs.
func (s *Supervisor) startInternalLocked(name string) *account {
	f, k := s.factoryLocked(name), key{name, ""}
	a := newAccount(nil, s.maker(f, "", nil))
	s.accounts[k] = a
	if s.ctx != nil {
		s.startLocked(k, a)
	}
	return a
}

// internalLocked reports whether a channel is an internal one.
func (s *Supervisor) internalLocked(name string) bool {
	f := s.factoryLocked(name)
	return f != nil && f.Internal
}

// Has reports whether an account of a channel is configured. An empty id stands for the
// only account, or the one that serves all.
func (s *Supervisor) Has(name string, id chela.AccountID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findLocked(name, string(id)) != nil && !s.internalLocked(name)
}

// Settled reports whether it is known of every account whether it can be used.
func (s *Supervisor) Settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		select {
		case <-a.ready:
		default:
			if a.ch != nil && !a.stopped {
				return false
			}
		}
	}
	return true
}

// Poster returns the running account that receives what its platform posts to a path; nil:
// none does.
func (s *Supervisor) Poster(path string) http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(s.accounts), func(a, b key) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range keys {
		a := s.accounts[k]
		if p, ok := channel.As[channel.Poster](a.ch); ok && !a.stopped && a.lease.Owner != "" &&
			p.Path() == path && path != "" {
			return p
		}
	}
	return nil
}

// Fetch gets the content of an attachment of a message that an account received.
func (s *Supervisor) Fetch(ctx context.Context, from chela.Address, m chela.Media, most int) (chela.Media, error) {
	in, err := s.Acquire(ctx, from.Channel, from.Account)
	if err != nil {
		return m, err
	}
	defer in.Release()
	f, ok := channel.As[channel.Fetcher](in.Channel)
	if !ok {
		return m, fmt.Errorf("channel %s cannot download attachments", from.Channel)
	}
	return f.Fetch(ctx, m, most)
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
	f := s.factoryLocked(name)
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

// factoryLocked returns the factory of a channel, or nil if there is none.
func (s *Supervisor) factoryLocked(name string) *channel.Factory {
	if f := channel.Find(s.o.Factories, name); f != nil {
		return f
	}
	return channel.Find(s.more, name)
}

func (s *Supervisor) lookup(k key) *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accounts[k]
}

// Limits returns the limits of the platform of a channel.
func (s *Supervisor) Limits(name string) channel.Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.factoryLocked(name); f != nil {
		return f.Limits
	}
	return channel.Limits{}
}

// States returns, by channel and account id, the error that ended an account, prevented
// its creation or keeps it from reaching its platform, or nil if the account is running,
// here or in another process.
func (s *Supervisor) States() map[string]map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]map[string]error{}
	for k, a := range s.accounts {
		if s.internalLocked(k.channel) {
			continue
		}
		if out[k.channel] == nil {
			out[k.channel] = map[string]error{}
		}
		out[k.channel][k.account] = cmp.Or(a.err, a.lost)
	}
	return out
}

// Accounts returns the configured accounts, ordered by channel and id.
func (s *Supervisor) Accounts() []channel.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []channel.Account
	ids := map[string][]string{}
	for _, k := range slices.SortedFunc(maps.Keys(s.accounts), func(a, b key) int {
		return cmp.Or(cmp.Compare(a.channel, b.channel), cmp.Compare(a.account, b.account))
	}) {
		f, a := s.factoryLocked(k.channel), s.accounts[k]
		if f == nil || f.Internal {
			continue
		}
		ids[k.channel] = append(ids[k.channel], k.account)
		can := f.Can
		if a.ch != nil {
			can = a.ch
		}
		out = append(out, channel.Account{
			Channel: k.channel,
			Aliases: f.Aliases,
			ID:      chela.AccountID(k.account),
			Section: a.raw,
			Limits:  f.Limits,
			Can:     can,
			Err:     cmp.Or(a.err, a.lost),
			Up:      a.worked && a.lost == nil && !a.ended,
		})
	}
	for i := range out {
		out[i].Usual = string(out[i].ID) == usual(ids[out[i].Channel], out[i].Section)
	}
	return out
}

// usual returns the account of a channel that is used when none is named: defaultAccount of
// its section, or "default", or the only one; "": none.
func usual(ids []string, section json.RawMessage) string {
	var o struct {
		Account string `json:"defaultAccount"`
	}
	_ = json.Unmarshal(section, &o) // the channel reports errors
	for _, id := range []string{o.Account, "default"} {
		if id != "" && slices.Contains(ids, id) {
			return id
		}
	}
	if len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// Ready reports whether the account of an address is running, here or in another process.
func (s *Supervisor) Ready(to chela.Address) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.findLocked(to.Channel, string(to.Account))
	return a != nil && a.err == nil
}

// String returns "channel/account", or only the channel if there is no account id.
func (k key) String() string {
	if k.account == "" {
		return k.channel
	}
	return k.channel + "/" + k.account
}
