package channels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	maxRestarts = 10               // in a row
	stable      = 10 * time.Minute // a run that lasts as long was a success
	outageAfter = 10 * time.Minute // without a connection, the owner is told
)

// restarts are the pauses before an account that has ended with an error is started again.
var restarts = backoff.Policy{First: 5 * time.Second, Max: 5 * time.Minute, Jitter: 0.25}

// runs runs an account until it ends. A panic is an error.
func (s *Supervisor) runs(ctx context.Context, k key, a *account) (err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the channel panicked: %v", p)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if time.Since(began) >= stable {
			a.failed = 0
		}
	}()
	err = a.ch.Run(ctx, s.sink)
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		return errors.New("the channel ended")
	}
	return err
}

// failLocked records why an account has ended. It reports whether it is started again.
func (a *account) failLocked(err error) (again bool) {
	if err == nil || a.stopped {
		return false
	}
	refused, _ := errors.AsType[*channel.Error](err)
	a.failed++
	switch {
	case refused != nil && refused.Permanent:
		a.err = err
	case a.failed > maxRestarts:
		a.err = fmt.Errorf("it was started %d times and ended each time: %w", a.failed, err)
	default:
		a.lost = err
		return true
	}
	return false
}

// again starts an account that has ended once more, after a pause.
func (s *Supervisor) again(ctx context.Context, k key, a *account, why error) {
	pause := restarts.Delay(a.failed, rand.Float64())
	s.o.Log.Error("channel ended; starting it again", "channel", k.String(), "err", why, "pause", pause)
	if backoff.Sleep(ctx, pause) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accounts[k] != a {
		return
	}
	next := newAccount(a.raw, a.create)
	next.failed = a.failed
	s.replaceLocked(k, next)
}

// report records whether the connection of an account works.
func (s *Supervisor) report(k key, a *account, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := err == nil && !a.worked
	a.lost, a.worked = err, a.worked || err == nil
	switch {
	case a.stopped:
	case err != nil:
		s.outageLocked(k, err, false)
	case s.outages[k] != nil:
		s.outages[k].end(true)
		delete(s.outages, k)
	case first:
		s.wg.Go(func() { s.tellWorks(k) }) // the owner may have been told by an earlier process
	}
}

// outage is the time in which an account does not work.
type outage struct {
	final chan struct{} // closed when the account was given up
	over  chan bool     // cap 1: the account works again, or else is not used any more
	err   error         // the last one
}

func (o *outage) end(works bool) {
	select {
	case o.over <- works:
	default:
	}
}

// outageLocked records that an account does not work. The owner is told after a while, or
// at once if the account was given up.
func (s *Supervisor) outageLocked(k key, err error, final bool) {
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	o := s.outages[k]
	if o == nil {
		o = &outage{final: make(chan struct{}), over: make(chan bool, 1)}
		s.outages[k] = o
		s.wg.Go(func() { s.watchOutage(k, o) })
	}
	o.err = err
	if final {
		select {
		case <-o.final:
		default:
			close(o.final)
		}
	}
}

// endOutageLocked forgets an outage, because the account is removed or changed.
func (s *Supervisor) endOutageLocked(k key) {
	if o := s.outages[k]; o != nil {
		o.end(false)
		delete(s.outages, k)
	}
}

// watchOutage tells the owner about an outage, and about its end.
func (s *Supervisor) watchOutage(k key, o *outage) {
	t := time.NewTimer(outageAfter)
	defer t.Stop()
	final := false
	select {
	case <-t.C:
	case <-o.final:
		final = true
	case works := <-o.over:
		if works {
			s.tellWorks(k)
		}
		return
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	err := o.err
	// it was started again, and does not report its connection
	if a := s.accounts[k]; a != nil && cmp.Or(a.err, a.lost) == nil {
		if s.outages[k] == o {
			delete(s.outages, k)
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	text := fmt.Sprintf("📡 %s has not been connected for %d minutes: %v. I keep trying.", k,
		int(outageAfter.Minutes()), err)
	if final {
		text = fmt.Sprintf("📡 %s has stopped: %v (chela channels status)", k, err)
	}
	s.tell(k, text, err.Error())
	select {
	case works := <-o.over:
		if works {
			s.tellWorks(k)
		}
	case <-s.ctx.Done():
	}
}

// tellWorks tells the owner that an account works again, if they were told that it does
// not.
func (s *Supervisor) tellWorks(k key) {
	s.tell(k, fmt.Sprintf("📡 %s works again.", k), "")
}

// tell tells the owner about an account, in a chat of another one, unless they know: problem
// is what is wrong; "": nothing. What the owner knows is stored, so that a restart does not
// repeat it.
func (s *Supervisor) tell(k key, text, problem string) {
	if s.o.Bus == nil {
		return
	}
	var told *chela.Event
	err := s.o.Store.Update(s.ctx, store.Synced, func(tx store.Tx) error {
		told = nil
		name := "outage " + k.String()
		known, err := tx.Setting(name)
		if err != nil || (known == "") == (problem == "") {
			return err
		}
		if err := tx.SetSetting(name, problem); err != nil {
			return err
		}
		now := time.Now()
		place, err := s.o.Notices.Owner(tx, chela.DefaultAgent, func(a chela.Address) bool { return s.keyOf(a) != k })
		if err != nil {
			return err
		}
		e, err := s.o.Notices.Write(tx, place, "outage", text, now)
		told = &e
		return err
	})
	switch {
	case err != nil && s.ctx.Err() == nil:
		s.o.Log.Error("tell the owner about a channel", "channel", k.String(), "err", err)
	case err == nil && told != nil:
		s.o.Bus.Publish(*told)
	}
}

// keyOf returns the account of an address.
func (s *Supervisor) keyOf(a chela.Address) key {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.factoryLocked(a.Channel); f != nil {
		return key{f.Name, string(a.Account)}
	}
	return key{a.Channel, string(a.Account)}
}
