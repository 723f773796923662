package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/notice"
)

// Options are the dependencies of Budgets.
type Options struct {
	Store   store.Store
	Bus     *bus.Bus
	Notices notice.Writer
}

// Budgets reserves and settles money. It is safe for concurrent use.
type Budgets struct {
	o      Options
	opened sync.Map // scopes for which earlier usage was counted, with the limit that they had
}

// New returns Budgets.
func New(o Options) *Budgets { return &Budgets{o: o} }

// Call says what a model call is for.
type Call struct {
	Run     chela.RunID
	Root    chela.RunID // of the tree of the run
	Agent   chela.AgentID
	Session chela.SessionKey
	// Transcript and Address are those of the chat in which a person waits for the
	// answer. Without a transcript nobody does, and the owner is told about the budgets.
	Transcript string
	Address    chela.Address
}

// Reservation is money that is reserved for a call. A nil Reservation reserves none.
type Reservation struct {
	Output int // limit of the answer in tokens
	hold   usage.Hold
	call   Call
	limits usage.Limits
}

// Update runs a function in a transaction, for example one that a lease guards.
type Update func(ctx context.Context, f func(store.Tx) error) error

// Reserve reserves money for a call in a commit. The Reservation is nil if there is no
// limit. The error is a [usage.BudgetError] if the call does not fit a limit.
func (b *Budgets) Reserve(ctx context.Context, c Call, l usage.Limits, q usage.Quote,
	update Update) (*Reservation, error) {
	if b == nil || !l.Any() {
		return nil, nil
	}
	var r *Reservation
	var refused *usage.BudgetError
	var opened []usage.Scope
	err := update(ctx, func(tx store.Tx) error {
		r, refused, opened = nil, nil, nil
		now := l.In(time.Now())
		today, err := usage.ReadToday(tx, now)
		if err != nil {
			return err
		}
		h := usage.Hold{ID: uuid.NewString(), Run: c.Run, Created: now, Scopes: l.Scopes(c.Agent, c.Run, c.Root, today, now)}
		if opened, err = b.open(tx, h, c.Agent, now); err != nil {
			return err
		}
		h, output, err := usage.ReserveQuote(tx.Usage(), h, q)
		if over, ok := errors.AsType[*usage.BudgetError](err); ok {
			if over.Scope.Daily() {
				over.Until = usage.NextDay(now)
			}
			refused = over
			return nil // what was opened stays
		}
		r = &Reservation{Output: int(output), hold: h, call: c, limits: l}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reserve money: %w", err)
	}
	for _, s := range opened {
		b.opened.Store(s, true)
	}
	if refused != nil {
		return nil, refused
	}
	return r, nil
}

// open counts what was spent in the daily scopes of a hold while they had no limit. It
// does so once for each limit that a scope has, and returns the scopes.
func (b *Budgets) open(tx store.Tx, h usage.Hold, agent chela.AgentID,
	now time.Time) (opened []usage.Scope, err error) {
	for _, s := range h.Scopes {
		if _, done := b.opened.Load(s); done || !s.Daily() {
			continue
		}
		opened = append(opened, s)
		earlier, err := usage.Earlier(tx.Usage(), s, agent, now)
		if err != nil {
			return nil, err
		}
		spent, err := spent(tx.Usage(), s.Name)
		if err != nil || earlier <= spent {
			return opened, err
		}
		before := usage.Hold{ID: "before:" + uuid.NewString(), Scopes: []usage.Scope{s}, Nano: earlier - spent, Created: now}
		if err := errors.Join(tx.Usage().PutHold(before), tx.Usage().SettleHold(before.ID, before.Nano)); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

// spent returns what is settled in a scope.
func spent(r usage.Reader, scope string) (int64, error) {
	all, err1 := r.Committed(scope)
	held, err2 := r.Held(scope)
	return all - held, errors.Join(err1, err2)
}

// Settle stores the usage of a call, and replaces the money that was reserved for it by
// its cost. It returns events to publish after the commit.
func (b *Budgets) Settle(tx store.Tx, r *Reservation, row usage.Row) ([]chela.Event, error) {
	if r == nil {
		return nil, tx.Usage().Add(row)
	}
	if err := r.hold.Settle(tx.Usage(), row); err != nil && chela.CodeOf(err) != chela.CodeConflict {
		return nil, err
	}
	return b.warn(tx, r)
}

// Release gives back the money that was reserved for a call which cost nothing.
func (b *Budgets) Release(tx store.Tx, r *Reservation) error {
	if r == nil {
		return nil
	}
	if err := tx.Usage().SettleHold(r.hold.ID, 0); err != nil && chela.CodeOf(err) != chela.CodeConflict {
		return err
	}
	return nil
}

// QuoteOf returns what a request to one of the models may cost. known is the size of the
// prompt of the call before, in tokens, if it is known.
func QuoteOf(r *llm.Request, known int64, models ...llm.Model) usage.Quote {
	prompt := estimate.Request(r)
	q := usage.Quote{Prompt: max(int64(prompt+prompt/10), known), Output: int64(r.MaxTokens)}
	if q.Output <= 0 {
		q.Output = unknownOutput
	}
	for _, m := range models {
		if m.Price != nil {
			price := m.Price
			if r.Fast && m.Fast > 0 {
				price = m.FastPrice()
			}
			q.Prices = append(q.Prices, *price)
		}
	}
	return q
}

// unknownOutput is the limit of answers of models whose own limit is not known.
const unknownOutput = 8192

// Apply returns the request with the limit of the answer that money was reserved for.
func (r *Reservation) Apply(req *llm.Request) *llm.Request {
	if r == nil {
		return req
	}
	own := *req
	own.MaxTokens, own.Ceiling = r.Output, r.Output
	return &own
}
