package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/agent"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/usage"
)

// spent is what a run used so far, for its budget.
type spent struct {
	tokens llm.Usage
	nano   int64
	calls  int64
	priced bool // every call so far had a price
}

// attempt carries the run on from what the transcript says, to the loop's end.
// An error means that the rows could not be written: nothing was published
// that is not stored.
func (c *Conductor) attempt(ctx context.Context, s *served, j *job) (agent.Event, error) {
	msgs, err := c.messages(context.WithoutCancel(ctx), j) // a stop is the loop's to see
	if err != nil {
		return agent.Event{}, err
	}
	view := c.o.Door.For(c.scope(j))
	req := &agent.Request{
		Model: j.p.Provider,
		Prompt: llm.Request{
			Model: j.p.Model.ID, Messages: msgs, MaxTokens: j.p.MaxTokens,
			System: j.p.System(Facts{
				Session: j.meta, Run: j.r, Model: j.p.Model, Tools: view.Specs(false), Think: j.p.think(j.meta, j.r), Now: time.Now(),
			}),
			Thinking: j.p.think(j.meta, j.r), Cache: j.p.Cache, Session: j.meta.ID,
		},
		Tools: view,
		Steer: func(ctx context.Context) ([]*llm.Message, error) {
			alone := j.alone && !s.news.Swap(false)
			if j.alone = false; alone {
				return nil, nil
			}
			msgs, err := c.steer(ctx, j)
			return msgs, ledger{c, j}.kept(ctx, err)
		},
		MaxRounds:     j.p.MaxRounds,
		MaxCalls:      j.p.MaxCalls,
		ReadOnlyFirst: j.unknown,
	}
	for _, k := range j.open {
		req.Open = append(req.Open, k.Wire)
	}
	var end agent.Event
	for ev := range agent.Run(ctx, req) {
		if ev.Kind == agent.End {
			end = ev
			continue
		}
		if err := c.handle(ctx, j, ev); err != nil {
			return end, err
		}
	}
	if err := j.broken.Load(); err != nil {
		return end, *err
	}
	j.open, j.unknown = nil, false
	return end, nil
}

// scope is what the tool door knows of the run.
func (c *Conductor) scope(j *job) invoke.Scope {
	var rules policy.Pipeline
	if j.p.Policy != nil {
		rules = j.p.Policy(j.r.Principal)
	}
	return invoke.Scope{
		Agent: j.r.Agent, Session: j.r.Session, Run: j.r.ID, Dir: j.p.Dir,
		Principal: j.r.Principal, Tools: j.p.Tools, Policy: rules, Budget: j.p.Budget, Loop: j.p.Loop,
		Ledger:  ledger{c, j},
		Started: time.Now(), // waiting for a person is no work
		Spent: func() usage.Sum {
			return usage.Sum{Tokens: j.spent.tokens, NanoUSD: j.spent.nano, Calls: j.spent.calls}
		},
	}
}

// handle commits what an event of the loop says, then publishes it.
func (c *Conductor) handle(ctx context.Context, j *job, ev agent.Event) error {
	if ev.Kind != agent.Text && ev.Kind != agent.Thinking && ev.Kind != agent.ToolUpdate {
		if err := c.flush(ctx, j); err != nil {
			return err
		}
	}
	switch ev.Kind {
	case agent.TurnStart:
		j.shown = false
		c.publish(j, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseModel, Data: j.p.Model.Ref()})
	case agent.Text:
		j.shown = true
		c.publish(j, chela.Event{Stream: chela.StreamAssistant, Delta: ev.Delta})
	case agent.Thinking:
		c.publish(j, chela.Event{Stream: chela.StreamThinking, Delta: ev.Delta})
	case agent.Restarted:
		j.shown = false
		c.publish(j, chela.Event{Stream: chela.StreamAssistant})
		return c.wasted(ctx, j, ev)
	case agent.Spent:
		return c.wasted(ctx, j, ev)
	case agent.Assistant:
		return c.assistant(ctx, j, ev)
	case agent.ToolStart:
		c.publish(j, chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseStart, Tool: &chela.ToolEvent{
			ID: ev.Call.ID, Name: ev.Call.Name, Args: ev.Call.Args, Label: chela.CallTitle(ev.Call.Name, ev.Call.Args),
			Verbose: cmp.Or(j.meta.Verbose, j.p.Verbose),
		}})
	case agent.ToolUpdate:
		c.publish(j, chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseUpdate, Tool: &chela.ToolEvent{
			ID: ev.Call.ID, Name: ev.Call.Name, Output: ev.Delta,
		}})
	case agent.ToolEnd:
		return c.toolEnd(ctx, j, ev)
	}
	return nil
}

// publish gives an event of the run to its observers.
func (c *Conductor) publish(j *job, e chela.Event) {
	e.Run, e.Session = j.r.ID, j.r.Session
	c.o.Bus.Publish(e)
}

// assistant holds a complete message until the next event: the one that ends
// the run is part of the commit that ends it, all others are a commit with the
// calls that they ask for.
func (c *Conductor) assistant(ctx context.Context, j *job, ev agent.Event) error {
	j.round++
	now := time.Now()
	u := ev.Usage
	e := &session.Entry{
		ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: j.r.ID,
		Message: ev.Message, Usage: &u, NanoUSD: -1, Partial: ev.Partial,
	}
	answered, fallback := j.p.Model, ""
	switch {
	case ev.By != nil:
		answered, fallback = *ev.By, ev.By.Ref()
	case ev.Partial: // who was about to answer is not known
		fallback = j.meta.Fallback
	}
	h := &held{entry: e, usage: j.usage(answered, u, now), fallback: fallback, notice: j.notice(fallback, ev, now)}
	if h.usage.Priced {
		e.NanoUSD = h.usage.NanoUSD
	}
	j.r.Model = answered.Ref()
	j.calls = map[string]session.Call{}
	for i, k := range ev.Message.Calls() {
		call := session.Call{ // rounds are counted from one whenever the run is begun or gone on with, under a new fence
			ID:  fmt.Sprintf("%s:%d:%d:%d", j.r.ID, j.lease.Fence, j.round, i),
			Run: j.r.ID, Session: j.r.Session, Wire: k, State: session.Planned, Updated: now,
		}
		j.calls[k.ID] = call
		h.calls = append(h.calls, call)
	}
	j.final = h
	if len(h.calls) > 0 {
		j.called = true
		return c.flush(ctx, j)
	}
	return nil
}

// wasted counts a model call whose answer was void, or broke off.
func (c *Conductor) wasted(ctx context.Context, j *job, ev agent.Event) error {
	if ev.Usage.Total() == 0 {
		return nil
	}
	answered := j.p.Model
	if ev.By != nil {
		answered = *ev.By
	}
	row := j.usage(answered, ev.Usage, time.Now())
	return store.Held(context.WithoutCancel(ctx), c.o.Store, j.lease, store.Ordered, func(tx store.Tx) error {
		meta, err := count(tx, j, row)
		if err != nil {
			return err
		}
		return tx.Sessions().Put(meta)
	})
}

// count adds the row of a model call, and returns the session in which it is
// counted.
func count(tx store.Tx, j *job, row usage.Row) (session.Meta, error) {
	meta, err := tx.Sessions().Get(j.r.Session)
	if err != nil {
		return meta, err
	}
	if meta.ID == j.r.SessionID { // a reset in between has counters of its own
		meta.Priced = row.Priced && (meta.Calls == 0 || meta.Priced)
		meta.Tokens = meta.Tokens.Add(row.Tokens)
		meta.NanoUSD += row.NanoUSD
		meta.Calls++
	}
	return meta, tx.Usage().Add(row)
}

// usage makes the row of a model call, and counts it in what the run spent.
func (j *job) usage(m llm.Model, u llm.Usage, now time.Time) usage.Row {
	row := usage.Row{
		Run: j.r.ID, Session: j.r.Session, Agent: j.r.Agent, Provider: m.Provider, Model: m.ID,
		Time: now, Tokens: u, Priced: m.Price != nil,
	}
	if row.Priced {
		row.NanoUSD = m.Price.Cost(u)
	}
	j.spent.priced = row.Priced && (j.spent.calls == 0 || j.spent.priced)
	j.spent.tokens = j.spent.tokens.Add(u)
	j.spent.nano += row.NanoUSD
	j.spent.calls++
	return row
}

// flush commits the message that is held.
func (c *Conductor) flush(ctx context.Context, j *job) error {
	h := j.final
	if h == nil {
		return nil
	}
	c.o.Step("model.end")
	var meta session.Meta
	err := store.Held(context.WithoutCancel(ctx), c.o.Store, j.lease, store.Ordered, func(tx store.Tx) error {
		var err error
		if meta, err = c.writeAssistant(tx, j, h); err != nil {
			return err
		}
		return errors.Join(j.glance(tx), tx.Sessions().Put(meta))
	})
	if err != nil {
		return err
	}
	c.stored(j, meta, h.entries()...)
	c.told(j, h)
	j.final = nil
	return nil
}

// glance sees in a commit of the run whether messages wait. That spares the run
// a look of its own, twice in each round of tools.
func (j *job) glance(tx store.Tx) error {
	waiting, err := tx.Queue().Waiting(j.r.Session)
	j.alone = err == nil && len(waiting) == 0
	return err
}

// writeAssistant writes a model's message, its calls and its usage, and returns
// the session in which it is counted.
func (c *Conductor) writeAssistant(tx store.Tx, j *job, h *held) (session.Meta, error) {
	meta, err := count(tx, j, h.usage)
	if err != nil {
		return meta, err
	}
	if err := tx.Sessions().Append(j.r.SessionID, h.entries()...); err != nil {
		return meta, err
	}
	if len(h.calls) > 0 {
		if err := tx.Calls().Plan(h.calls...); err != nil {
			return meta, err
		}
	}
	if n := h.usage.Tokens.Prompt(); n > 0 && meta.ID == j.r.SessionID {
		meta.Context = n
	}
	meta.Updated, meta.Fallback = h.entry.Time, h.fallback
	return meta, nil
}

// stored makes entries that were committed known: to the cache of transcripts
// and to observers.
func (c *Conductor) stored(j *job, meta session.Meta, entries ...*session.Entry) {
	if meta.ID == j.meta.ID {
		j.meta = meta
	}
	c.o.Cache.Append(j.r.SessionID, entries...)
	c.announce(j, entries...)
}

// announce tells observers of entries in the transcript.
func (c *Conductor) announce(j *job, entries ...*session.Entry) {
	for _, e := range entries {
		if e.Kind == session.KindMessage {
			c.o.Bus.Publish(chela.Event{
				Run: j.r.ID, Session: j.r.Session, Stream: chela.StreamMessage, Phase: string(e.Message.Role),
				Transcript: j.r.SessionID, Data: *e,
			})
		}
	}
}

// toolEnd commits a result and closes its call.
func (c *Conductor) toolEnd(ctx context.Context, j *job, ev agent.Event) error {
	now := time.Now()
	e := &session.Entry{
		ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: j.r.ID, Message: ev.Result,
		Details: ev.Details,
	}
	e.Details, e.Cut = session.CutDetails(e.Details)
	j.failed = ""
	if ev.Result.IsError && !ev.Skipped {
		j.failed = ev.Call.Name + ": " + wording.Line(ev.Result.PlainText(), 200)
	}
	c.o.Step("tool.end")
	err := store.Held(context.WithoutCancel(ctx), c.o.Store, j.lease, store.Ordered, func(tx store.Tx) error {
		if err := tx.Sessions().Append(j.r.SessionID, e); err != nil {
			return err
		}
		if err := j.glance(tx); err != nil {
			return err
		}
		k, ok := j.calls[ev.Call.ID]
		if !ok {
			return nil
		}
		return j.closed(tx, k.ID)
	})
	if err != nil {
		return err
	}
	c.stored(j, j.meta, e)
	c.publish(j, chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseResult, Tool: &chela.ToolEvent{
		ID: ev.Call.ID, Name: ev.Call.Name, Args: ev.Ran, Label: chela.CallTitle(ev.Call.Name, ev.Call.Args), Output: ev.Result.PlainText(), Details: e.Details,
		IsError: ev.Result.IsError, Duration: ev.Duration, Verbose: cmp.Or(j.meta.Verbose, j.p.Verbose),
	}})
	return nil
}

// messages returns what the model is sent: the compiled transcript. Calls that
// are still open have stand-ins for their results in it.
func (c *Conductor) messages(ctx context.Context, j *job) ([]*llm.Message, error) {
	newest := j.newest
	j.newest = 0
	msgs, err := c.o.Cache.Messages(j.r.SessionID, newest, func(after int64) ([]session.Entry, error) {
		return store.Get(ctx, c.o.Store, func(r store.Reader) ([]session.Entry, error) {
			return r.Sessions().Entries(j.r.SessionID, after, 0)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("transcript %s: %w", j.r.SessionID, err)
	}
	return msgs, nil
}

var _ agent.Tools = (*invoke.View)(nil)

// planned returns the session's call for the provider's id.
func (j *job) planned(k llm.ToolCall) (session.Call, error) {
	if call, ok := j.calls[k.ID]; ok {
		return call, nil
	}
	return session.Call{}, fmt.Errorf("call %s (%s) is not in the transcript: %w", k.ID, k.Name, tool.ErrStop)
}
