package inbound

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxReplies = 10      // texts of one answer of a hook
	maxReply   = 8 << 10 // bytes of one
)

// reset is a transcript that ended, for hooks.
type reset struct{ reason, old, next string }

// ended notes that the session of the call has another transcript than old.
func (k *call) ended(reason string, old, now session.Meta) {
	if old.ID != now.ID {
		k.resets = append(k.resets, reset{reason, old.ID, now.ID})
	}
}

// context says to hooks where the call happened.
func (k *call) context(sessionID string) hook.Context {
	c := hook.Context{Agent: k.key.Agent(), Session: k.key, SessionID: sessionID,
		Requester: hook.RequesterAt(k.in.Address, k.sender(), k.who.IsOwner())}
	if k.g.o.Workspace != nil {
		c.Workspace = k.g.o.Workspace(c.Agent)
	}
	c.Requester.Roles = k.in.Roles
	return c
}

// sender identifies who wrote the message.
func (k *call) sender() string {
	if k.in.Sender.ID != "" {
		return k.in.Sender.ID
	}
	return k.who.ID
}

// notifyResets tells hooks of the transcripts that the call ended, after its commit.
func (k *call) notifyResets(ctx context.Context) {
	h := k.g.o.Hooks
	for _, r := range k.resets {
		old := k.context(r.old)
		h.BeforeReset.Notify(ctx, hook.BeforeReset{Context: old, Reason: r.reason})
		h.SessionEnd.Notify(ctx, hook.SessionEnd{Context: old, Reason: endReason(r.reason), Next: r.next})
		h.SessionStart.Notify(ctx, hook.SessionStart{Context: k.context(r.next), Previous: r.old})
	}
}

// endReason returns why a session ended, as hooks are told.
func endReason(reason string) string {
	switch reason {
	case hook.EndNew, hook.EndReset, hook.EndIdle, hook.EndDaily:
		return reason
	}
	return hook.EndUnknown
}

// notifyCommand tells hooks of a command that was carried out, after its commit.
func (k *call) notifyCommand(ctx context.Context, c Command, id string) {
	if c.Name == "" || !k.g.o.Hooks.Command.Any() {
		return
	}
	e := hook.Command{
		Context: k.context(k.meta.ID),
		Name:    c.Name,
		Args:    k.args,
		Sender:  k.sender(),
		Source:  k.in.Address.Channel,
		Address: k.in.Address,
		Item:    id,
		Time:    k.now,
	}
	if e.Source == "" {
		e.Source = chela.LocalChannel
	}
	for _, r := range k.resets {
		if r.reason == c.Name {
			e.Previous = r.old
		}
	}
	k.g.o.Hooks.Command.Notify(ctx, e)
}

// notifyMessage tells hooks of a message that was accepted, after its commit. An unread
// one is preprocessed later, see notifyTranscript.
func (k *call) notifyMessage(ctx context.Context, unread bool) {
	h := k.g.o.Hooks
	if !h.MessageReceived.Any() && !h.MessagePreprocessed.Any() {
		return
	}
	m := k.hookMessage()
	h.MessageReceived.Notify(ctx, m)
	if !unread {
		h.MessagePreprocessed.Notify(ctx, m)
	}
}

// notifyTranscript tells hooks of a message whose recordings were transcribed, after its
// commit.
func (k *call) notifyTranscript(ctx context.Context, spoken string) {
	h := k.g.o.Hooks
	if !h.MessageTranscribed.Any() && !h.MessagePreprocessed.Any() {
		return
	}
	m := k.hookMessage()
	m.Content, m.Transcript = strings.TrimSpace(m.Content+"\n"+spoken), spoken
	h.MessageTranscribed.Notify(ctx, m)
	h.MessagePreprocessed.Notify(ctx, m)
}

// hookMessage describes the message to hooks.
func (k *call) hookMessage() hook.Message {
	m := hook.Message{
		Context: k.context(k.meta.ID),
		ID:      k.in.ID,
		From:    k.sender(),
		Content: k.in.Text,
		Channel: k.in.Address.Channel,
		Address: k.in.Address,
		Time:    k.in.Time,
	}
	for _, a := range k.in.Media {
		m.Media = append(m.Media, a.Type)
	}
	return m
}

// replyToCommand shows what hooks answered to /new or /reset.
func (g *Gate) replyToCommand(ctx context.Context, e hook.Command, r hook.Reply) {
	if e.Name == "new" || e.Name == "reset" {
		g.Say(ctx, e.Session, e.Address, "hook:"+e.Item, r)
	}
}

// replyToCompaction shows what hooks answered when the history of a session was
// shortened.
func (g *Gate) replyToCompaction(ctx context.Context, e hook.Compaction, r hook.Reply) {
	g.Say(ctx, e.Session, e.Address, "hook:compaction:"+string(e.Run), r)
}

// Say shows what a hook answered in the chat of a session. The texts are kept in its
// transcript and not sent to the model. id is unique for the event and the hook.
func (g *Gate) Say(ctx context.Context, key chela.SessionKey, to chela.Address, id string, r hook.Reply) {
	var texts []string
	for _, text := range r.Messages[:min(len(r.Messages), maxReplies)] {
		if text = strings.TrimSpace(humanize.TruncateBytes(g.o.Redact(strings.ToValidUTF8(text, "\ufffd")),
			maxReply)); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return
	}
	text, now := strings.Join(texts, "\n\n"), time.Now()
	id = fmt.Sprintf("%s:%s", id, uuid.NewString())
	err := g.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		m, err := tx.Sessions().Get(key)
		if err != nil {
			return err
		}
		if err := tx.Sessions().Append(m.ID, &session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: now,
			Text: text}); err != nil || to.Local() || !g.o.Sends(m, to) {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(outbox.Rows(outbox.Row{
			Key:     id,
			Run:     chela.RunID(id),
			Session: key,
			Address: to,
			Created: now,
		}, text, g.o.Chunks(to))...)
	})
	if err != nil {
		g.o.Log.Warn("show the answer of a hook", "session", key, "err", err)
		return
	}
	g.o.Bus.Publish(chela.Event{
		Run:     chela.RunID(id),
		Session: key,
		Stream:  chela.StreamCommand,
		Phase:   chela.PhaseEnd,
		Text:    text,
	})
}
