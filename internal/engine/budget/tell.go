package budget

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/notice"
)

// warn tells people that a share of a limit is spent.
func (b *Budgets) warn(tx store.Tx, r *Reservation) (events []chela.Event, err error) {
	if r.limits.Warn <= 0 {
		return nil, nil
	}
	now := r.limits.In(time.Now())
	for _, s := range r.hold.Scopes {
		spent, err := spent(tx.Usage(), s.Name)
		if err != nil {
			return nil, err
		}
		if float64(spent) < r.limits.Warn*float64(s.Limit) {
			continue
		}
		text := fmt.Sprintf("💰 %d %% of %s are spent: %s of %s.", 100*spent/s.Limit, s.Title(),
			usage.USD(spent), usage.USD(s.Limit))
		more, err := b.tellOnce(tx, r.call, "warn:"+s.Name, text, now)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	return events, nil
}

// Exhausted tells the owner that a budget is used up, once, if nobody waits for the answer
// of the call that was refused. It returns events to publish after the commit.
func (b *Budgets) Exhausted(tx store.Tx, c Call, l usage.Limits, over *usage.BudgetError) ([]chela.Event, error) {
	now := l.In(time.Now())
	if c.Transcript != "" { // the person gets the error as the answer
		today, err := usage.ReadToday(tx, now)
		if err != nil || !today.Tell("used:"+over.Scope.Name) {
			return nil, err
		}
		return nil, today.Write(tx)
	}
	return b.tellOnce(tx, c, "used:"+over.Scope.Name, "💰 "+over.Error(), now)
}

// Tell tells the person something about a budget, once a day for each scope and kind.
func (b *Budgets) Tell(tx store.Tx, c Call, l usage.Limits, over *usage.BudgetError,
	kind, text string) ([]chela.Event, error) {
	return b.tellOnce(tx, c, kind+":"+over.Scope.Name, text, l.In(time.Now()))
}

// tellOnce writes a notice for the person, unless they were told before.
func (b *Budgets) tellOnce(tx store.Tx, c Call, what, text string, now time.Time) ([]chela.Event, error) {
	today, err := usage.ReadToday(tx, now)
	if err != nil || !today.Tell(what) {
		return nil, err
	}
	if err := today.Write(tx); err != nil {
		return nil, err
	}
	place := notice.Target{Run: c.Run, Session: c.Session, Transcript: c.Transcript, Address: c.Address}
	if c.Transcript == "" {
		if place, err = b.o.Notices.Owner(tx, c.Agent, nil); err != nil {
			return nil, err
		}
	}
	e, err := b.o.Notices.Write(tx, place, "budget", text, now)
	return []chela.Event{e}, err
}

// Publish publishes events of a commit.
func (b *Budgets) Publish(events []chela.Event) {
	for _, e := range events {
		b.o.Bus.Publish(e)
	}
}
