package deliver

import (
	"context"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
)

// Ending asks hooks about the answer of a run, as a whole, before the commit that ends
// the run divides it into parts. See runner.Options.Ending.
func (w *Worker) Ending(ctx context.Context, r *run.Run) {
	h := w.o.Hooks
	if r.Address.Local() || !h.ReplyPayloadSending.Any() && !h.MessageSending.Any() {
		return
	}
	text := answerText(*r)
	if text == "" {
		return
	}
	e := hook.MessageSending{
		Context: hook.Context{
			Agent:     r.Agent,
			Session:   r.Session,
			SessionID: r.SessionID,
			Run:       r.ID,
			Requester: hook.RequesterAt(r.Address, r.Principal.ID, r.Principal.IsOwner()),
		},
		Content: text, Channel: r.Address.Channel, To: r.Address.Peer.ID, Kind: "final",
	}
	ctx = context.WithoutCancel(ctx) // an answer of a run that was stopped passes the hooks too
	for _, point := range [...]*hook.Deciding[hook.MessageSending, hook.Send]{&h.ReplyPayloadSending, &h.MessageSending} {
		out, err := point.Decide(ctx, e)
		switch {
		case err != nil:
			return
		case out.Answer.Cancel:
			r.Decided.Outgoing = new(string)
			w.o.Log.Warn("a hook cancelled an answer; it is kept in the transcript", "hook", out.By, "run", r.ID,
				"channel", r.Address.Channel, "reason", out.Answer.Reason)
			return
		case out.Answer.Content != nil:
			e.Content, r.Decided.Outgoing = *out.Answer.Content, out.Answer.Content
		}
	}
}

// previewable reports whether the text of an answer may be shown before it is complete.
// It is not while hooks decide about whole answers.
func (w *Worker) previewable() bool {
	return !w.o.Hooks.ReplyPayloadSending.Any() && !w.o.Hooks.MessageSending.Any()
}

// notifySent tells hooks that a row is closed.
func (w *Worker) notifySent(ctx context.Context, row outbox.Row) {
	if !w.o.Hooks.MessageSent.Any() || !closed(row) || row.Text == "" {
		return
	}
	w.o.Hooks.MessageSent.Notify(ctx, hook.MessageSent{
		Context: hook.Context{Agent: row.Session.Agent(), Session: row.Session, Run: row.Run},
		Content: row.Text,
		Channel: row.Address.Channel,
		To:      row.Address.Peer.ID,
		Success: row.State == outbox.Sent,
		Error:   row.Error,
	})
}
