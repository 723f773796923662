package runner

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/window"
)

// Preview returns the model and the request of a run that a message of the principal at
// an address would start in the session, without the messages. Nothing is written, and no
// hook is asked.
func (r *Runner) Preview(ctx context.Context, who chela.Principal, key chela.SessionKey,
	at chela.Address) (llm.Model, llm.Request, error) {
	e := &Execution{}
	req, err := r.preview(ctx, e, who, key, at, func(store.Reader) error { return nil })
	if err != nil {
		return llm.Model{}, llm.Request{}, err
	}
	return e.profile.Model, req, nil
}

// preview returns a request without its messages and fills in its run. also reads more
// about the session, in the same transaction.
func (r *Runner) preview(ctx context.Context, e *Execution, who chela.Principal, key chela.SessionKey, at chela.Address,
	also func(store.Reader) error) (llm.Request, error) {
	e.open = new(openWork)
	err := r.o.Store.View(ctx, func(rd store.Reader) error {
		var err error
		if e.meta, err = session.Lookup(rd.Sessions(), key); err != nil {
			return err
		}
		if *e.open, err = readOpenWork(e.meta, rd.Children(), rd.Runs()); err != nil {
			return err
		}
		return also(rd)
	})
	if err != nil {
		return llm.Request{}, fmt.Errorf("session %s: %w", key, err)
	}
	e.run = Draft(e.meta, []queue.Item{{
		Kind: queue.Message, Session: key, Principal: who, Origin: chela.Origin{Kind: chela.OriginPerson, Address: at},
		Inbound: chela.Inbound{Address: at},
	}}, r.o.Profiles.Sends)
	if e.profile, err = r.o.Profiles.Resolve(ctx, e.meta, e.run); err != nil {
		return llm.Request{}, err
	}
	return r.request(e, r.o.Executor.For(r.scope(e)).Specs(false), *e.open), nil
}

// Inspect returns what the request of [Runner.Preview] would consist of, with the
// messages.
func (r *Runner) Inspect(ctx context.Context, who chela.Principal, key chela.SessionKey,
	at chela.Address) (window.Report, error) {
	var entries []session.Entry
	e := &Execution{}
	req, err := r.preview(ctx, e, who, key, at, func(rd store.Reader) error {
		var err error
		entries, err = rd.Sessions().Entries(e.meta.ID, 0, 0)
		return err
	})
	if err != nil {
		return window.Report{}, err
	}
	ref := e.profile.Model.Ref()
	in := window.Inspection{
		Model: e.profile.Model, Window: e.window(), Ratio: e.meta.Learned.RatioOf(ref), Measured: e.meta.Context,
		System: req.System, Note: req.Note, Files: r.promptFiles(e), Tools: req.Tools,
	}
	var t session.Transcript
	t.Append(entries...)
	in.Sent = t.Sent()
	for i := range entries {
		switch {
		case entries[i].Prune != nil:
			in.Prunes = append(in.Prunes, *entries[i].Prune)
		case entries[i].Kind == session.KindCut:
			in.Cuts++
		}
	}
	return window.NewReport(in), nil
}
