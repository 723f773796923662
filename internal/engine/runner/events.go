package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/agent"
)

// handle commits what an event of the agent loop says, and publishes it.
func (r *Runner) handle(ctx context.Context, e *Execution, ev agent.Event) error {
	if ev.Kind != agent.Text && ev.Kind != agent.Thinking && ev.Kind != agent.ToolUpdate {
		if err := r.flush(ctx, e); err != nil {
			return err
		}
	}
	switch ev.Kind {
	case agent.TurnStart:
		e.attempt.shown, e.attempt.length = false, 0
		r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseModel,
			Data: chela.ModelRef(e.profile.Model.Ref())})
	case agent.Text:
		e.attempt.shown = true
		e.attempt.length += len(ev.Delta)
		r.publish(e, chela.Event{Stream: chela.StreamAssistant, Delta: ev.Delta})
	case agent.Thinking:
		r.publish(e, chela.Event{Stream: chela.StreamThinking, Delta: ev.Delta, Text: e.streamReasoning(ev.Delta)})
	case agent.Restarted:
		e.attempt.shown = false
		r.publish(e, chela.Event{Stream: chela.StreamAssistant})
		return r.countWasted(ctx, e, ev)
	case agent.Spent:
		return r.countWasted(ctx, e, ev)
	case agent.Assistant:
		return r.assistant(ctx, e, ev)
	case agent.ToolStart:
		r.publish(e, chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseStart, Tool: &chela.ToolEvent{
			ID:      ev.Call.ID,
			Name:    ev.Call.Name,
			Args:    ev.Call.Args,
			Label:   e.label(ev.Call),
			Private: e.runsCommand(ev.Call.Name),
			Verbose: cmp.Or(e.run.Overrides.Verbose, e.meta.Verbose, e.profile.Verbose),
		}})
	case agent.ToolUpdate:
		r.publish(e, chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseUpdate, Tool: &chela.ToolEvent{
			ID: ev.Call.ID, Name: ev.Call.Name, Output: ev.Delta,
		}})
	case agent.ToolEnd:
		return r.toolEnd(ctx, e, ev)
	}
	return nil
}

// assistant keeps a complete message until the next event. The message that ends
// the run is part of the commit that ends it; any other is committed with the
// calls that it asks for.
func (r *Runner) assistant(ctx context.Context, e *Execution, ev agent.Event) error {
	e.title(ev.Message)
	e.calls.round++
	e.attempt.stop = ev.Message.Stop
	now := time.Now()
	u := ev.Usage
	if ev.Partial && u.Total() == 0 {
		u = e.estimatedUsage(estimate.Messages(ev.Message))
	}
	if r.o.Hooks.LLMOutput.Any() {
		r.o.Hooks.LLMOutput.Notify(ctx,
			hook.LLMOutput{Context: e.hookContext(), Model: e.profile.Model.Ref(), Message: ev.Message, Usage: u})
	}
	entry := &session.Entry{
		ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: e.run.ID,
		Message: r.rewritten(ctx, e, ev.Message), Usage: &u, NanoUSD: -1, Partial: ev.Partial,
	}
	answered, fallback := e.profile.Model, ""
	switch {
	case ev.By != nil:
		answered, fallback = *ev.By, ev.By.Ref()
	case ev.Partial: // which model was about to answer is not known
		fallback = e.meta.Fallback
	}
	p := &pendingMessage{
		entry:     entry,
		usage:     e.usage(answered, u, now),
		reserved:  e.reserved,
		estimated: e.attempt.estimate.tokens,
		fallback:  fallback,
		notice:    e.notice(fallback, ev, now),
	}
	e.reserved = nil
	if p.usage.Priced {
		entry.NanoUSD = p.usage.NanoUSD
	}
	e.run.Model = answered.Ref()
	e.calls.byWire = map[string]session.Call{}
	for i, k := range ev.Message.Calls() {
		call := session.Call{ // rounds are counted from one whenever the run begins or resumes, under a new fence
			ID:  fmt.Sprintf("%s:%d:%d:%d", e.run.ID, e.lease.Fence, e.calls.round, i),
			Run: e.run.ID, Session: e.run.Session, Wire: k, State: session.Planned, Updated: now,
		}
		e.calls.byWire[k.ID] = call
		p.calls = append(p.calls, call)
	}
	e.addReasoning(ev.Message)
	e.pending = p
	if len(p.calls) > 0 {
		e.calls.open = true
		return r.flush(ctx, e)
	}
	return nil
}

// flush commits the pending message.
func (r *Runner) flush(ctx context.Context, e *Execution) error {
	p := e.pending
	if p == nil {
		return nil
	}
	r.o.Step("model.end")
	var meta session.Meta
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		var err error
		if meta, err = r.writeMessage(tx, e, p); err != nil {
			return err
		}
		return errors.Join(e.checkWaiting(tx), tx.Sessions().Put(meta))
	})
	if err != nil {
		return err
	}
	r.publishStored(e, meta, p.entries()...)
	r.publishNotice(e, p)
	r.o.Budgets.Publish(p.events)
	e.pending = nil
	return nil
}

// checkWaiting notes, in a commit of the run, whether items wait for its session.
// This saves the run a read of its own, twice in each round of tools.
func (e *Execution) checkWaiting(tx store.Tx) error {
	waiting, err := tx.Queue().Waiting(e.run.Session)
	e.noneWaiting = err == nil && len(waiting) == 0
	return err
}

// writeMessage writes an assistant message, its calls and its usage, and returns
// the session with the usage counted.
func (r *Runner) writeMessage(tx store.Tx, e *Execution, p *pendingMessage) (meta session.Meta, err error) {
	if err := tx.Sessions().Append(e.run.SessionID, p.entries()...); err != nil {
		return meta, err
	}
	if meta, p.events, err = r.countUsage(tx, e, p.reserved, p.usage); err != nil {
		return meta, err
	}
	if len(p.calls) > 0 {
		if err := tx.Calls().Plan(p.calls...); err != nil {
			return meta, err
		}
	}
	guess := p.entry.Partial && p.usage.Tokens.Estimated
	if n := p.usage.Tokens.Prompt(); n > 0 && !guess && meta.ID == e.run.SessionID {
		meta.Context = n
	}
	if p.fallback == "" && !p.usage.Tokens.Estimated {
		meta.Learned = calibrated(meta.Learned, e.profile.Model.Ref(), p.usage.Tokens.Prompt(), p.estimated)
	}
	meta.Updated, meta.Fallback = p.entry.Time, p.fallback
	return meta, nil
}

// publishStored passes committed entries to the transcript cache and to
// observers.
func (r *Runner) publishStored(e *Execution, meta session.Meta, entries ...*session.Entry) {
	if meta.ID == e.meta.ID {
		e.meta = meta
	}
	r.cache.Append(e.run.SessionID, entries...)
	r.publishEntries(e, entries...)
}

// publishEntries tells observers of messages in the transcript.
func (r *Runner) publishEntries(e *Execution, entries ...*session.Entry) {
	for _, entry := range entries {
		if entry.Kind == session.KindMessage {
			r.publish(e, chela.Event{
				Stream: chela.StreamMessage, Transcript: e.run.SessionID, Data: *entry,
			})
		}
	}
}

// label describes a call for people.
func (e *Execution) label(c llm.ToolCall) string {
	c = e.profile.Tools.Titled(c)
	return c.Label()
}

// runsCommand reports whether a tool runs commands, or follows them.
func (e *Execution) runsCommand(name string) bool {
	s := e.profile.Tools.SpecOf(name)
	return s != nil && (s.Has(tool.RunsCommands) || s.Has(tool.FollowsCommands))
}

// title adds the titles of the calls of a new message, which are stored with it.
func (e *Execution) title(m *llm.Message) {
	for i := range m.Parts {
		if c := m.Parts[i].Call; c != nil {
			titled := e.profile.Tools.Titled(*c)
			m.Parts[i].Call = &titled
		}
	}
}

// toolEnd commits the result of a call, which closes it.
func (r *Runner) toolEnd(ctx context.Context, e *Execution, ev agent.Event) error {
	entry := &session.Entry{
		ID: uuid.NewString(), Kind: session.KindMessage, Time: time.Now(), Run: e.run.ID, Message: ev.Result,
		Details: ev.Details,
	}
	entry.Details, entry.Cut = session.TruncateDetails(entry.Details)
	e.attempt.failed = ""
	if ev.Result.IsError && !ev.Skipped {
		e.attempt.failed = strings.TrimSuffix(ev.Call.Name+" failed: "+oneLine(tool.Reason(ev.Result.PlainText()), 200), ": ")
	}
	r.o.Step("tool.end")
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		if err := tx.Sessions().Append(e.run.SessionID, entry); err != nil {
			return err
		}
		if err := e.checkWaiting(tx); err != nil {
			return err
		}
		if k, ok := e.calls.byWire[ev.Call.ID]; ok {
			return e.calls.close(tx, k.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.publishStored(e, e.meta, entry)
	r.publish(e, chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseResult, Tool: &chela.ToolEvent{
		ID:       ev.Call.ID,
		Name:     ev.Call.Name,
		Args:     ev.Ran,
		Label:    e.label(ev.Call),
		Output:   ev.Result.PlainText(),
		Details:  entry.Details,
		IsError:  ev.Result.IsError,
		Duration: ev.Duration,
		Verbose:  cmp.Or(e.meta.Verbose, e.profile.Verbose),
	}})
	return nil
}

// messages returns the compiled transcript, which is what the model is sent.
// Calls that are still open have placeholders for their results in it.
func (r *Runner) messages(ctx context.Context, e *Execution) ([]*llm.Message, error) {
	newest := e.newest
	e.newest = 0
	msgs, err := r.cache.Messages(e.run.SessionID, newest, r.loadEntries(ctx, e))
	if err != nil {
		return nil, fmt.Errorf("transcript %s: %w", e.run.SessionID, err)
	}
	return msgs, nil
}

// loadEntries returns a function that reads the entries of the run's transcript.
func (r *Runner) loadEntries(ctx context.Context, e *Execution) func(after int64) ([]session.Entry, error) {
	return func(after int64) ([]session.Entry, error) {
		return store.Get(ctx, r.o.Store, func(rd store.Reader) ([]session.Entry, error) {
			return rd.Sessions().Entries(e.run.SessionID, after, 0)
		})
	}
}
