package runner

import (
	"cmp"
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/window"
)

// window returns the window of the run's model, as far as it is known by now: the one of
// the profile, or a smaller one that the provider named since.
func (e *Execution) window() window.Size {
	return e.profile.Window.AtMost(e.meta.Learned.Limit(e.profile.Model.Ref()))
}

// windowTokens returns the size of the window, also for a profile without one.
func (e *Execution) windowTokens() int {
	return cmp.Or(e.window().Tokens, e.profile.Model.Window())
}

// checkWindow returns an error if the window is too small for a run. It logs a small one
// once for each model.
func (r *Runner) checkWindow(e *Execution) error {
	w, ref := e.window(), e.profile.Model.Ref()
	if w.Tokens == 0 { // the profile has none
		return nil
	}
	if err := w.Check(ref); err != nil {
		return err
	}
	if _, logged := r.smallWindows.LoadOrStore(ref, true); !logged && w.Small() {
		r.o.Log.Warn("the context window of the model is small: conversations are shortened often", "model", ref,
			"tokens", w.Tokens, "source", w.Source, "want", window.WarnWindow)
	}
	return nil
}

// learnLimit records the limit that the provider named in an error about a prompt that
// is too long, if it is smaller than the window.
func (r *Runner) learnLimit(ctx context.Context, e *Execution, err error) error {
	le, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return nil
	}
	ref := llm.Ref{Provider: le.Provider, Model: le.Model}.String()
	limit := llm.NamedLimit(le.Message)
	if limit == 0 || ref == e.profile.Model.Ref() && limit >= e.window().Tokens || limit == e.meta.Learned.Limit(ref) {
		return nil
	}
	meta := e.meta
	err = r.update(ctx, e, store.Ordered, func(tx store.Tx) error {
		var err error
		if meta, err = session.Lookup(tx.Sessions(), e.run.Session); err != nil {
			return err
		}
		meta.Learned = meta.Learned.WithLimit(ref, limit)
		return tx.Sessions().Put(meta)
	})
	if err != nil {
		return err
	}
	r.o.Log.Info("the provider named the context window of a model", "session", e.run.Session,
		"model", ref, "tokens", limit)
	if meta.ID == e.meta.ID {
		e.meta = meta
	}
	return nil
}
