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
		for _, t := range ch.tries(r.Session) {
			if done := a.ask(ctx, t); done {
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
	r := t.c.request(a.r)
	end := a.ch.health.begin(t.key.ID, t.c.Model.ID)
	defer end()
	for e, err := range t.key.Provider.Stream(ctx, r) {
		if err != nil {
			return a.fail(ctx, t, err)
		}
		switch e.Kind {
		case llm.Done:
			a.ch.health.worked(t.key.ID, t.c.Model.ID, a.r.Session)
			if t.c != &a.ch.candidates[0] {
				e.By = &t.c.Model
				e.Tried = a.attempts
			}
			a.yield(e, nil)
			return true
		case llm.Restart:
			a.given = false
		default:
			a.given = true
		}
		if !a.yield(e, nil) {
			return true
		}
	}
	return a.fail(ctx, t, &llm.Error{Class: llm.ClassNetwork, Provider: t.c.Model.Provider, Model: t.c.Model.ID, Message: "the answer ended before it was complete"})
}

// request is the request in the terms of the candidate: another model may think
// less and say less.
func (c *Candidate) request(r *llm.Request) *llm.Request {
	own := *r
	own.Model = c.Model.ID
	if !c.Model.Thinks(r.Thinking) {
		own.Thinking = llm.Off
	}
	if c.Model.MaxOutput > 0 && own.MaxTokens > c.Model.MaxOutput {
		own.MaxTokens = c.Model.MaxOutput
	}
	return &own
}

// fail notes a failure, and reports whether it ends the stream: somebody else
// cannot help with a request that is wrong, or that nobody waits for.
func (a *answer) fail(ctx context.Context, t try, err error) (done bool) {
	e, ok := errors.AsType[*llm.Error](err)
	if ctx.Err() != nil || !ok {
		a.yield(llm.Event{}, err)
		return true
	}
	counts := a.ch.health.failed(t.key.ID, t.c.Model.ID, e, time.Now())
	// What is too long for a stand-in may be right for the next one.
	unfit := e.Class == llm.ClassNoModel || e.Class == llm.ClassContext && t.c != &a.ch.candidates[0]
	if !counts && !unfit {
		a.yield(llm.Event{}, err)
		return true
	}
	if unfit {
		a.skip = t.c
	}
	a.attempts = append(a.attempts, llm.Attempt{Provider: t.c.Model.Provider, Model: t.c.Model.ID, Key: t.key.ID, Err: err})
	return false
}

// exhausted is the error when nobody answered: that of the only attempt, or
// all of them.
func (a *answer) exhausted() error {
	if len(a.attempts) == 1 {
		return a.attempts[0].Err
	}
	x := &llm.Exhausted{Attempts: a.attempts}
	now := time.Now()
	for _, c := range a.ch.candidates {
		for _, k := range c.Keys {
			if t := a.ch.health.until(k.ID, c.Model.ID, now); x.Retry.IsZero() || t.Before(x.Retry) {
				x.Retry = t
			}
		}
	}
	return x
}
