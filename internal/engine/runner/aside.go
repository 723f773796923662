package runner

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
)

// asidePrompt precedes a question that is asked beside the runs of a session.
const asidePrompt = "[A question beside the conversation. Answer it briefly from what you know, and call no tool. Neither the question nor the answer becomes part of the conversation, and work in progress continues.]\n"

// maxAside limits the time for the answer to a question.
const maxAside = 5 * time.Minute

// Aside answers a question about a session, whose item it is, with its model and its
// transcript. It writes nothing but the usage of the call, and neither waits for a run
// nor disturbs it. The request begins like that of a run, so that the prompt cache of
// the service is used.
func (r *Runner) Aside(ctx context.Context, it queue.Item, question string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxAside)
	defer cancel()
	meta, err := r.meta(ctx, it.Session)
	if err != nil {
		return "", err
	}
	row := Draft(meta, []queue.Item{it}, r.o.Profiles.Sends)
	p, err := r.resolve(ctx, meta, row)
	if err != nil {
		return "", err
	}
	if p.Deaf {
		return "", chela.Errorf(chela.CodeInvalid,
			"a coding agent answers in this session, and it has only one conversation; send the question as a message")
	}
	e := &Execution{run: row, meta: meta, profile: p, alive: func() bool { return true }}
	msgs, err := r.messages(ctx, e)
	if err != nil {
		return "", err
	}
	open, err := r.openWork(ctx, e)
	if err != nil {
		return "", err
	}
	req := r.request(e, r.o.Executor.For(r.scope(e)).Specs(false), open)
	req.Messages = append(slices.Clip(msgs), llm.User(asidePrompt+question))
	paid := r.o.Budgets.Provider(p.Provider, p.Model, e.paidCall(), p.Limits)
	done, err := llm.Complete(ctx, paid, &req)
	if err := r.countAside(ctx, e, done); err != nil {
		return "", err
	}
	if err != nil {
		return "", chela.Errorf(chela.CodeUnavailable, "%s", r.failureText(e, err))
	}
	if text := strings.TrimSpace(r.o.Executor.Redact(done.Message.Noted())); text != "" {
		return text, nil
	}
	return "The model has no answer without a tool. Send the question as a message.", nil
}

// countAside adds the usage of the answer to a question, which is stored, to the counters
// of the session.
func (r *Runner) countAside(ctx context.Context, e *Execution, done llm.Event) error {
	if done.Usage.Total() == 0 || e.meta.ID == "" {
		return nil
	}
	answered := e.profile.Model
	if done.By != nil {
		answered = *done.By
	}
	row := e.usage(answered, done.Usage, time.Now())
	return r.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error {
		meta, err := countInSession(tx, e, row)
		if err != nil {
			return err
		}
		return tx.Sessions().Put(meta)
	})
}
