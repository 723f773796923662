package budget

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
)

// Provider returns a provider for model calls outside of the loop of a run, for example
// those of a tool. Money is reserved before each call, and its usage is stored after it.
// m is the model that a request names. The Root of the call may be empty.
func (b *Budgets) Provider(p llm.Provider, m llm.Model, c Call, l usage.Limits) llm.Provider {
	return metered{p, b, m, c, l}
}

type metered struct {
	llm.Provider
	b      *Budgets
	model  llm.Model
	call   Call
	limits usage.Limits
}

// Stream implements llm.Provider.
func (p metered) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		q := QuoteOf(req, 0, llm.ModelsOf(p.Provider, p.model)...)
		res, err := p.reserve(ctx, q)
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		req = res.Apply(req)
		for ev, err := range p.Provider.Stream(ctx, req) {
			if err == nil && ev.Kind != llm.Spent && ev.Kind != llm.Done {
				if !yield(ev, nil) {
					return // how much was used is not known, and the money stays spent
				}
				continue
			}
			if serr := p.settle(ctx, res, ev); serr != nil {
				yield(llm.Event{}, errors.Join(err, serr))
				return
			}
			if !yield(ev, err) || err != nil || ev.Kind == llm.Done {
				return
			}
			q.Output, q.Floor = int64(req.MaxTokens), int64(req.MaxTokens)
			if res, err = p.reserve(ctx, q); err != nil {
				yield(llm.Event{}, err)
				return
			}
		}
	}
}

func (p metered) reserve(ctx context.Context, q usage.Quote) (*Reservation, error) {
	c := p.call
	if c.Root == "" && p.limits.Task > 0 {
		err := p.b.o.Store.View(ctx, func(r store.Reader) error {
			row, err := r.Runs().Get(c.Run)
			c.Root = row.Tree()
			if errors.Is(err, chela.ErrNotFound) {
				c.Root, err = c.Run, nil
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return p.b.Reserve(ctx, c, p.limits, q, func(ctx context.Context, f func(store.Tx) error) error {
		return p.b.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, f)
	})
}

// settle stores the usage of an attempt.
func (p metered) settle(ctx context.Context, res *Reservation, ev llm.Event) error {
	m := p.model
	if ev.By != nil {
		m = *ev.By
	}
	row := usage.RowOf(m, ev.Usage, time.Now())
	row.Run, row.Session, row.Agent = p.call.Run, p.call.Session, p.call.Agent
	var events []chela.Event
	err := p.b.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error {
		if ev.Usage.Total() == 0 {
			return p.b.Release(tx, res)
		}
		var err error
		events, err = p.b.Settle(tx, res, row)
		return err
	})
	if err == nil {
		p.b.Publish(events)
	}
	return err
}
