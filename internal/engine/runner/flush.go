package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// Limits of the turn in which the model saves notes.
const (
	flushRounds = 6
	flushCalls  = 12
)

// flushed reports whether notes were saved since the last compaction.
func flushed(m session.Meta) bool { return !m.Flushed.IsZero() && m.FlushCount == m.Compactions }

// beforeCompaction lets the model save notes, if it is time for that, and reports
// whether the conversation is long enough to be compacted.
func (r *Runner) beforeCompaction(ctx context.Context, e *Execution) (due bool, err error) {
	durable := context.WithoutCancel(ctx)
	if e.resumed {
		if err := r.endFlush(durable, e, e.meta.Context); err != nil {
			return false, err
		}
	}
	n, err := r.contextTokens(durable, e)
	if err != nil {
		return false, err
	}
	size, err := r.activeBytes(durable, e)
	if err != nil {
		return false, err
	}
	due, flush := e.overfull(n, size)
	if flush && !flushed(e.meta) && r.canFlush(durable, e) {
		err = r.saveNotes(ctx, e)
	}
	return due, err
}

// overfull reports whether a conversation is to be compacted, and whether notes are to
// be saved before that.
func (e *Execution) overfull(tokens int, size int64) (compact, flush bool) {
	c, window := e.profile.Compaction, e.windowTokens()
	above := func(limit int64) bool { return limit > 0 && size > limit }
	compact = tokens > c.Threshold(window) || above(int64(c.MaxBytes))
	flush = c.Flushes() && (compact || tokens > c.FlushThreshold(window) || above(int64(c.Flush.MaxBytes)))
	return compact, flush
}

// activeBytes returns the size of the messages that are sent, if a limit is configured.
func (r *Runner) activeBytes(ctx context.Context, e *Execution) (size int64, err error) {
	if c := e.profile.Compaction; c.MaxBytes == 0 && c.Flush.MaxBytes == 0 {
		return 0, nil
	}
	msgs, err := r.messages(ctx, e)
	for _, m := range msgs {
		for i := range m.Parts {
			p := &m.Parts[i]
			size += int64(len(p.Text) + len(p.Signature) + p.Size())
			if p.Call != nil {
				size += int64(len(p.Call.Args))
			}
		}
	}
	return size, err
}

// canFlush reports whether the model can save notes that the session reads again.
func (r *Runner) canFlush(ctx context.Context, e *Execution) bool {
	if e.meta.Bounds.ReadOnly || e.meta.Shared(e.run) || e.profile.Files == nil || e.meta.Forked() {
		return false
	}
	if e.profile.Sandbox != nil {
		if box := e.profile.Sandbox(e.run.Principal); box != nil && box.Access != sandbox.ReadWrite {
			return false
		}
	}
	scope := r.scope(e)
	tools, _ := invoke.Allowed(scope.Tools, scope.Policy, scope.Principal)
	if tools.Role(tool.WritesFiles) == "" {
		return false
	}
	active, err := store.Get(ctx, r.o.Store,
		func(rd store.Reader) ([]run.Run, error) { return rd.Runs().Active(e.run.Session) })
	return err == nil && !slices.ContainsFunc(active, func(a run.Run) bool { return a.ID != e.run.ID })
}

// saveNotes lets the model save notes, in a turn that nobody sees. It happens at most
// once before each compaction, also if the process ends meanwhile. Failures of the model
// are logged.
func (r *Runner) saveNotes(ctx context.Context, e *Execution) error {
	durable := context.WithoutCancel(ctx)
	before, c := e.meta.Context, e.profile.Compaction
	now := time.Now()
	ask := &session.Entry{
		ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: e.run.ID, NanoUSD: -1,
		Message: llm.User(llm.EventPrefix + c.FlushPrompt()), Origin: chela.Origin{Kind: chela.OriginSystem},
	}
	r.o.Step("flush.begin")
	var meta session.Meta
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		var err error
		if meta, err = tx.Sessions().Get(e.run.Session); err != nil {
			return err
		}
		meta.Flushed, meta.FlushCount = now, meta.Compactions
		return errors.Join(tx.Sessions().Append(e.run.SessionID, ask), tx.Sessions().Put(meta))
	})
	if err != nil {
		return err
	}
	e.quiet = true
	defer func() { e.quiet = false }()
	r.publishStored(e, meta, ask)
	if name := c.Flush.Model; name != "" && c.Model != nil {
		if m, p, err := c.Model(name); err != nil {
			r.o.Log.Warn("the model for notes cannot be used; using that of the session", "model", name, "err", err)
		} else {
			session, own := e.profile, *e.profile
			own.Model, own.Provider, e.profile = m, p, &own
			defer func() { e.profile = session }()
		}
	}
	end, err := r.flushTurn(ctx, e)
	if err != nil {
		return err
	}
	if end.Reason == agent.Failed {
		r.o.Log.Warn("save notes before a compaction", "session", e.run.Session, "err", end.Err)
	}
	r.o.Step("flush.end")
	return r.endFlush(durable, e, before)
}

// flushTurn runs the agent loop for the notes. The request begins like those of other
// turns, so that it is read from the provider's cache; only the calls are restricted.
func (r *Runner) flushTurn(ctx context.Context, e *Execution) (end agent.Event, err error) {
	durable := context.WithoutCancel(ctx)
	msgs, err := r.messages(durable, e)
	if err != nil {
		return end, err
	}
	open, err := r.openWork(durable, e)
	if err != nil {
		return end, err
	}
	scope := r.scope(e)
	shown, _ := invoke.Allowed(scope.Tools, scope.Policy, scope.Principal)
	scope.Shown, scope.Unattended = &shown, true
	scope.Tools = scope.Tools.Filter(func(s tool.Spec) bool { return s.Has(tool.TakesNotes) })
	scope.Withheld = "only these tools are available in this turn: " + strings.Join(scope.Tools.Names(), ", ")
	view := r.o.Executor.For(scope)
	prompt := r.request(e, view.Specs(false), open)
	prompt.Messages = msgs
	if extra := e.profile.Compaction.Flush.System; extra != "" {
		prompt.System = append(prompt.System, llm.Block{Text: "\n" + extra + "\n"})
	}
	end, err = r.loop(ctx, e, &agent.Request{
		Model:     r.provider(e),
		Prompt:    prompt,
		Tools:     view,
		MaxRounds: flushRounds,
		MaxCalls:  flushCalls,
	})
	if err != nil {
		return end, err
	}
	return end, r.flush(durable, e)
}

// endFlush removes the turn in which notes were saved from what is sent to the model.
// tokens is the size of the context without it.
func (r *Runner) endFlush(ctx context.Context, e *Execution, tokens int64) error {
	if err := r.flush(ctx, e); err != nil {
		return err
	}
	var meta session.Meta
	var entries []*session.Entry
	now := time.Now()
	e.run.Ended = now // of the calls that are closed
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		results, _, err := closeCalls(tx, e)
		if err != nil {
			return err
		}
		void := &session.Entry{
			ID:      uuid.NewString(),
			Kind:    session.KindVoid,
			Time:    now,
			Run:     e.run.ID,
			Voids:   session.Ref{Run: e.run.ID},
			NanoUSD: -1,
		}
		entries = append(results, void)
		if err := tx.Sessions().Append(e.run.SessionID, void); err != nil {
			return err
		}
		if meta, err = tx.Sessions().Get(e.run.Session); err != nil || meta.ID != e.run.SessionID {
			return err
		}
		meta.Context = tokens
		return tx.Sessions().Put(meta)
	})
	e.run.Ended = time.Time{}
	if err != nil {
		return err
	}
	r.publishStored(e, meta, entries...)
	e.attempt, e.calls.byWire = attempt{}, nil
	return nil
}
