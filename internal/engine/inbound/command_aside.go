package inbound

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
)

func asideCommands() []Command {
	return []Command{{
		Name: "btw", Aliases: []string{"side"}, Group: "model", Args: "<question>",
		Help:  "ask something beside the conversation, also during a run",
		later: true,
	}}
}

// answerLater answers a question beside the conversation, or calls the tool of a skill. Its item waits in the queue
// until the answer is stored, so that a question is answered after a crash as well. The
// answer is sent to the chat, and neither is written to the transcript.
func (g *Gate) answerLater(ctx context.Context, it queue.Item) error {
	w, ok := parse(it.Inbound.Text)
	if c, rest, is := g.skillCommand(it.Session.Agent(), w); ok && is && c.Skill.Tool != "" {
		return g.callSkill(ctx, it, c, rest.args)
	}
	reply := "Usage: /btw <question>"
	switch {
	case ok && g.names[w.name].Name != "btw":
		reply = "The skill is not there any more."
	case !ok || w.args == "":
	case g.o.Aside == nil:
		reply = "Questions beside the conversation are not available here."
	default:
		text, err := g.o.Aside(chela.WithPrincipal(ctx, it.Principal), it, w.args)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if reply = text; err != nil {
			reply = "⚠️ " + g.explain(err)
		}
	}
	reply = g.o.Redact(reply)
	it.State, it.Result = queue.Done, answered(reply)
	a := it.Inbound.Address
	err := g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		who, err := pairing.Current(tx.Devices(), it.Principal)
		if err != nil {
			return err
		}
		if who.ID != it.Principal.ID {
			it.State, it.Note, it.Result = queue.Cancelled, "revoked", queue.Result{}
		}
		ok, err := tx.Queue().Replace(it)
		if err == nil && !ok {
			err = errUnheard
		}
		if err != nil || a.Local() || it.State == queue.Cancelled {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(outbox.Rows(outbox.Row{
			Key:     "command:" + it.ID,
			Run:     chela.RunID(it.ID),
			Session: it.Session,
			Address: a,
			ReplyTo: it.Inbound.ID,
			Created: time.Now(),
		}, reply, g.o.Chunks(a))...)
	})
	switch {
	case errors.Is(err, errUnheard):
		return nil
	case err != nil:
		return fmt.Errorf("answer /btw: %w", err)
	}
	g.o.Bus.Publish(chela.Event{
		Run:     chela.RunID(it.ID),
		Session: it.Session,
		Stream:  chela.StreamCommand,
		Phase:   chela.PhaseEnd,
		Text:    reply,
	})
	return nil
}
