package failover

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/llm"
)

// Candidate is a model, and the keys under which it can be asked.
type Candidate struct {
	Model llm.Model
	Keys  []Key // at least one, in order of preference
	// Err says why it cannot be asked at all; nil: it can.
	Err error
}

// Key is a provider with one of its keys.
type Key struct {
	ID       string // stable and not secret: openai:work
	Provider llm.Provider
}

// Chain is an llm.Provider that asks candidates in order.
type Chain struct {
	health     *Health
	candidates []Candidate
}

// New returns a chain. A request names the first candidate's model.
func New(h *Health, candidates ...Candidate) *Chain { return &Chain{h, candidates} }

// try is one way to get an answer.
type try struct {
	c     *Candidate
	key   Key
	until time.Time // it rests until then; the zero time: it does not
}

// Stream implements llm.Provider.
func (ch *Chain) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a := &answer{ch: ch, r: r, yield: yield}
		defer ch.health.keep()
		tries := ch.tries(r.Session)
		for _, t := range tries {
			if done := a.ask(ctx, t); done {
				return
			}
		}
		able := slices.IndexFunc(tries, func(t try) bool { return t.c.Err == nil })
		if able >= 0 && !a.asked { // others began to try them just now: there is nothing to lose
			tries[able].until = time.Now()
			if done := a.ask(ctx, tries[able]); done {
				return
			}
		}
		yield(llm.Event{}, a.exhausted())
	}
}

// tries returns the ways to get an answer, those that do not rest in the order
// of the candidates; when all of them rest, the one that rests shortest.
func (ch *Chain) tries(session string) []try {
	now := time.Now()
	var all, ready []try
	favourite := ch.health.favourite(session)
	for i := range ch.candidates {
		c := &ch.candidates[i]
		if c.Err != nil {
			all = append(all, try{c: c})
			ready = append(ready, try{c: c})
			continue
		}
		keys := slices.Clone(c.Keys)
		slices.SortStableFunc(keys, func(a, b Key) int { return first(b.ID == favourite) - first(a.ID == favourite) })
		for _, k := range keys {
			t := try{c, k, ch.health.until(k.ID, c.Model.ID, now)}
			all = append(all, t)
			if t.until.IsZero() {
				ready = append(ready, t)
			}
		}
	}
	if slices.ContainsFunc(ready, func(t try) bool { return t.c.Err == nil }) {
		return ready
	}
	able := slices.DeleteFunc(slices.Clone(all), func(t try) bool { return t.c.Err != nil })
	if len(able) == 0 {
		return all
	}
	return append(ready, slices.MinFunc(able, func(a, b try) int { return a.until.Compare(b.until) }))
}

func first(is bool) int {
	if is {
		return 1
	}
	return 0
}

// answer is one call on its way through a chain.
type answer struct {
	ch       *Chain
	r        *llm.Request
	yield    func(llm.Event, error) bool
	asked    bool // somebody
	given    bool // the caller has something of an answer that failed
	attempts []llm.Attempt
	skip     *Candidate // cannot answer this, whatever the key
}

// ask asks in one way, and reports whether the stream has ended.
func (a *answer) ask(ctx context.Context, t try) (done bool) {
	if t.c == a.skip || t.until.IsZero() && !a.ch.health.until(t.key.ID, t.c.Model.ID, time.Now()).IsZero() {
		return false // it rests since a moment ago
	}
	if t.c.Err != nil {
		a.attempts = append(a.attempts, llm.Attempt{Provider: t.c.Model.Provider, Model: t.c.Model.ID, Err: t.c.Err})
		return false
	}
	if a.given {
		a.given = false
		if !a.yield(llm.Event{Kind: llm.Restart}, nil) {
			return true
		}
	}
	a.asked = true
	r := t.c.request(a.r)
	end := a.ch.health.begin(t.key.ID, t.c.Model.ID)
	defer end()
	for e, err := range t.key.Provider.Stream(ctx, r) {
		if err != nil {
			return a.fail(ctx, t, e.Usage, err)
		}
		switch e.Kind {
		case llm.Done:
			a.ch.health.worked(t.key.ID, t.c.Model.ID, a.r.Session)
			if e.By = a.by(t); e.By != nil {
				e.Tried = a.attempts
			}
			a.yield(e, nil)
			return true
		case llm.Spent:
			e.By = a.by(t)
		case llm.Restart:
			a.given = false
		default:
			a.given = true
		}
		if !a.yield(e, nil) {
			return true
		}
	}
	return a.fail(ctx, t, llm.Usage{}, &llm.Error{Class: llm.ClassNetwork, Provider: t.c.Model.Provider, Model: t.c.Model.ID, Message: "the answer ended before it was complete"})
}

// request is the request in the terms of the candidate: another model may think
// less and say less. What it cannot see or read is the dialect's to leave out.
func (c *Candidate) request(r *llm.Request) *llm.Request {
	own := *r
	own.Model = c.Model.ID
	own.Thinking = c.Model.Level(r.Thinking)
	if c.Model.MaxOutput > 0 && own.MaxTokens > c.Model.MaxOutput {
		own.MaxTokens = c.Model.MaxOutput
	}
	return &own
}

// by returns the model of a try, if it is not the one that was asked for.
func (a *answer) by(t try) *llm.Model {
	if t.c == &a.ch.candidates[0] {
		return nil
	}
	return &t.c.Model
}

// fail notes a failure, and reports whether it ends the stream: somebody else
// cannot help with a request that is wrong, or that nobody waits for. What the
// call used all the same is told once: here, or by the error that ends the stream.
func (a *answer) fail(ctx context.Context, t try, used llm.Usage, err error) (done bool) {
	e, ok := errors.AsType[*llm.Error](err)
	last := llm.Event{Usage: used, By: a.by(t)}
	if ctx.Err() != nil || !ok {
		a.yield(last, err)
		return true
	}
	counts := a.ch.health.failed(t.key.ID, t.c.Model.ID, e, time.Now())
	// What a stand-in cannot take may be right for the next one.
	unfit := e.Class == llm.ClassNoModel ||
		(e.Class == llm.ClassContext || e.Class == llm.ClassFormat) && t.c != &a.ch.candidates[0]
	if !counts && !unfit {
		a.yield(last, err)
		return true
	}
	if last.Kind = llm.Spent; used.Total() > 0 && !a.yield(last, nil) {
		return true
	}
	if unfit {
		a.skip = t.c
	}
	a.attempts = append(a.attempts, llm.Attempt{Provider: t.c.Model.Provider, Model: t.c.Model.ID, Key: t.key.ID, Err: err})
	return false
}

// exhausted is the error when nobody answered: that of the only one that there
// is to ask, or why each of them did not, also those that were not asked because
// they rest.
func (a *answer) exhausted() error {
	x := &llm.Exhausted{}
	rests := a.ch.health.Rests()
	for i := range a.ch.candidates {
		m := a.ch.candidates[i].Model
		asked := slices.IndexFunc(a.attempts, func(t llm.Attempt) bool { return t.Provider == m.Provider && t.Model == m.ID })
		for _, t := range a.attempts {
			if t.Provider == m.Provider && t.Model == m.ID {
				x.Attempts = append(x.Attempts, t)
			}
		}
		for _, k := range a.ch.candidates[i].Keys {
			why, ok := rest(rests, k.ID, m.ID)
			if !ok {
				continue
			}
			if x.Retry.IsZero() || why.Until.Before(x.Retry) {
				x.Retry = why.Until
			}
			if asked < 0 {
				x.Attempts = append(x.Attempts, llm.Attempt{Provider: m.Provider, Model: m.ID, Key: k.ID, Err: &llm.Error{
					Class: why.Reason, Provider: m.Provider, Model: m.ID, Message: "it failed before, and rests",
				}})
			}
		}
	}
	if len(x.Attempts) == 1 {
		return x.Attempts[0].Err
	}
	return x
}

// rest returns the longer of the rests of a key and of a model under it.
func rest(rests map[Place]Rest, key, model string) (Rest, bool) {
	r, ok := rests[Place{Key: key}]
	m, also := rests[Place{key, model}]
	if m.Until.After(r.Until) {
		r = m
	}
	return r, ok || also
}
