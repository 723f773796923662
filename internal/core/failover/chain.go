package failover

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Candidate is a model and the keys that give access to it.
type Candidate struct {
	Model llm.Model
	Keys  []Key // at least one, in order of preference
	// Err is set if the candidate cannot be called at all.
	Err error
}

// Key is a provider with one of its keys.
type Key struct {
	ID       string // stable and not secret: openai:work
	Provider llm.Provider
}

// Chain is an llm.Provider that calls candidates in order.
type Chain struct {
	health     *Health
	candidates []Candidate
}

// New returns a chain. A request names the first candidate's model.
func New(h *Health, candidates ...Candidate) *Chain { return &Chain{h, candidates} }

// Models returns the models of the candidates that can be called.
func (ch *Chain) Models() []llm.Model {
	var out []llm.Model
	for i := range ch.candidates {
		if c := &ch.candidates[i]; c.Err == nil {
			out = append(out, c.Model)
		}
	}
	return out
}

// Priced returns a chain with only the candidates whose price is known; nil: none has one.
func (ch *Chain) Priced() *Chain {
	own := slices.DeleteFunc(slices.Clone(ch.candidates),
		func(c Candidate) bool { return c.Err != nil || c.Model.Price == nil })
	switch len(own) {
	case 0:
		return nil
	case len(ch.candidates):
		return ch
	}
	return &Chain{ch.health, own}
}

// attempt is a call of one candidate with one key.
type attempt struct {
	candidate *Candidate
	key       Key
	until     time.Time // end of the cooldown; zero: none
}

// Stream implements llm.Provider.
func (ch *Chain) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		c := &call{chain: ch, request: r, yield: yield}
		defer ch.health.persist()
		attempts := ch.plan(r.Session)
		for _, a := range attempts {
			if done := c.try(ctx, a); done {
				return
			}
		}
		usable := slices.IndexFunc(attempts, func(a attempt) bool { return a.candidate.Err == nil })
		if usable >= 0 && !c.called { // other calls are probing all of them: do not fail without a call
			attempts[usable].until = time.Now()
			if done := c.try(ctx, attempts[usable]); done {
				return
			}
		}
		yield(llm.Event{}, c.exhausted())
	}
}

// plan returns the attempts without a cooldown, in the order of the candidates.
// If all are on cooldown, it returns the one that ends first.
func (ch *Chain) plan(session string) []attempt {
	now := time.Now()
	var all, ready []attempt
	preferred := ch.health.preferred(session)
	for i := range ch.candidates {
		c := &ch.candidates[i]
		if c.Err != nil {
			all = append(all, attempt{candidate: c})
			ready = append(ready, attempt{candidate: c})
			continue
		}
		keys := slices.Clone(c.Keys)
		slices.SortStableFunc(keys, func(a, b Key) int { return rank(b.ID == preferred) - rank(a.ID == preferred) })
		for _, k := range keys {
			a := attempt{c, k, ch.health.until(k.ID, c.Model.ID, now)}
			all = append(all, a)
			if a.until.IsZero() {
				ready = append(ready, a)
			}
		}
	}
	if slices.ContainsFunc(ready, func(a attempt) bool { return a.candidate.Err == nil }) {
		return ready
	}
	usable := slices.DeleteFunc(slices.Clone(all), func(a attempt) bool { return a.candidate.Err != nil })
	if len(usable) == 0 {
		return all
	}
	return append(ready, slices.MinFunc(usable, func(a, b attempt) int { return a.until.Compare(b.until) }))
}

func rank(preferred bool) int {
	if preferred {
		return 1
	}
	return 0
}

// call is the state of one request on its way through a chain.
type call struct {
	chain   *Chain
	request *llm.Request
	yield   func(llm.Event, error) bool
	called  bool // a provider was called
	emitted bool // the caller has part of a failed answer
	failed  []llm.Attempt
	skip    *Candidate // cannot serve this request with any key
}

// try makes an attempt and reports whether the stream has ended.
func (c *call) try(ctx context.Context, a attempt) (done bool) {
	model := &a.candidate.Model
	if a.candidate == c.skip || a.until.IsZero() && !c.chain.health.until(a.key.ID, model.ID, time.Now()).IsZero() {
		return false // the cooldown began after plan
	}
	if a.candidate.Err != nil {
		c.failed = append(c.failed, llm.Attempt{Provider: model.Provider, Model: model.ID, Err: a.candidate.Err})
		return false
	}
	if c.emitted {
		c.emitted = false
		if !c.yield(llm.Event{Kind: llm.Restart}, nil) {
			return true
		}
	}
	c.called = true
	r := a.candidate.request(c.request)
	end := c.chain.health.begin(a.key.ID, model.ID)
	defer end()
	for e, err := range a.key.Provider.Stream(ctx, r) {
		if err != nil {
			return c.fail(ctx, a, e.Usage, err)
		}
		switch e.Kind {
		case llm.Done:
			c.chain.health.succeeded(a.key.ID, model.ID, c.request.Session)
			if e.By = c.substitute(a); e.By != nil {
				e.Tried = c.failed
			}
			c.yield(e, nil)
			return true
		case llm.Spent:
			e.By = c.substitute(a)
		case llm.Restart:
			c.emitted = false
		default:
			c.emitted = true
		}
		if !c.yield(e, nil) {
			return true
		}
	}
	return c.fail(ctx, a, llm.Usage{}, &llm.Error{Class: llm.ClassNetwork, Provider: model.Provider, Model: model.ID,
		Message: "the answer ended before it was complete"})
}

// request returns r adapted to the candidate's model, which may support less
// thinking, no faster tier and fewer output tokens. The dialects leave out content that the
// model cannot read.
func (c *Candidate) request(r *llm.Request) *llm.Request {
	own := *r
	own.Model = c.Model.ID
	own.Thinking = c.Model.Level(r.Thinking)
	own.Fast = r.Fast && c.Model.Fast > 0
	if c.Model.MaxOutput > 0 && own.MaxTokens > c.Model.MaxOutput {
		own.MaxTokens = c.Model.MaxOutput
	}
	return &own
}

// substitute returns the model of an attempt if it is not the requested one.
func (c *call) substitute(a attempt) *llm.Model {
	if a.candidate == &c.chain.candidates[0] {
		return nil
	}
	return &a.candidate.Model
}

// fail records a failed attempt. It reports whether the failure ends the
// stream: no other key or model helps if the request is invalid or canceled.
// The usage of the attempt is reported once, by a Spent event or with the error
// that ends the stream.
func (c *call) fail(ctx context.Context, a attempt, used llm.Usage, err error) (done bool) {
	e, ok := errors.AsType[*llm.Error](err)
	last := llm.Event{Usage: used, By: c.substitute(a)}
	if ctx.Err() != nil || !ok {
		c.yield(last, err)
		return true
	}
	model := &a.candidate.Model
	keyFault := c.chain.health.fail(a.key.ID, model.ID, e, time.Now())
	// A request that a fallback model refuses may suit the next one.
	unsuitable := e.Class == llm.ClassNoModel ||
		(e.Class == llm.ClassContext || e.Class == llm.ClassFormat) && a.candidate != &c.chain.candidates[0]
	if !keyFault && !unsuitable {
		c.yield(last, err)
		return true
	}
	if last.Kind = llm.Spent; used.Total() > 0 && !c.yield(last, nil) {
		return true
	}
	if unsuitable {
		c.skip = a.candidate
	}
	c.failed = append(c.failed, llm.Attempt{Provider: model.Provider, Model: model.ID, Key: a.key.ID, Err: err})
	return false
}

// exhausted returns the error after all attempts failed: the error of a single
// attempt, or the errors of all, including keys that were on cooldown.
func (c *call) exhausted() error {
	x := &llm.Exhausted{}
	cooldowns := c.chain.health.Cooldowns()
	for i := range c.chain.candidates {
		m := c.chain.candidates[i].Model
		ofModel := func(t llm.Attempt) bool { return t.Provider == m.Provider && t.Model == m.ID }
		called := slices.ContainsFunc(c.failed, ofModel)
		for _, t := range c.failed {
			if ofModel(t) {
				x.Attempts = append(x.Attempts, t)
			}
		}
		for _, k := range c.chain.candidates[i].Keys {
			cooldown, ok := longestCooldown(cooldowns, k.ID, m.ID)
			if !ok {
				continue
			}
			if x.Retry.IsZero() || cooldown.Until.Before(x.Retry) {
				x.Retry = cooldown.Until
			}
			if !called {
				x.Attempts = append(x.Attempts, llm.Attempt{Provider: m.Provider, Model: m.ID, Key: k.ID, Err: &llm.Error{
					Class: cooldown.Reason, Provider: m.Provider, Model: m.ID, Message: "failed before and is on cooldown",
				}})
			}
		}
	}
	if len(x.Attempts) == 1 {
		return x.Attempts[0].Err
	}
	return x
}

// longestCooldown returns the longer of the cooldowns of a key and of a model
// with that key.
func longestCooldown(cooldowns map[Target]Cooldown, key, model string) (Cooldown, bool) {
	r, ok := cooldowns[Target{Key: key}]
	m, also := cooldowns[Target{key, model}]
	if m.Until.After(r.Until) {
		r = m
	}
	return r, ok || also
}
