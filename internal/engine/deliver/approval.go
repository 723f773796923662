package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// requestApprovals writes rows for the pending approvals that no channel has been
// asked for yet. It reads the requests from the store, so that none is missed
// after a crash. Events about requests only trigger it.
func (w *Worker) requestApprovals(ctx context.Context) error {
	var rows []outbox.Row
	err := w.o.Store.View(ctx, func(r store.Reader) error {
		rows = nil
		pending, err := r.Approvals().Pending("")
		if err != nil {
			return err
		}
		for _, q := range pending {
			more, err := w.approvalRows(r, q)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		return nil
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	return w.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(rows...)
	})
}

// approvalRows returns the rows that ask for a decision. There are none if the
// request is shown on no channel, or if the rows exist.
func (w *Worker) approvalRows(r store.Reader, q approval.Request) ([]outbox.Row, error) {
	key, to, err := w.approvalChat(r, q)
	if errors.Is(err, chela.ErrNotFound) || err == nil && to.Local() || !time.Now().Before(q.Expires) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	base := outbox.Row{Key: "approval:" + q.ID, Session: key, Address: to, Created: q.Created}
	if _, err := r.Outbox().Get(base.Key + ":0"); !errors.Is(err, chela.ErrNotFound) {
		return nil, err
	}
	if w.o.Limits(to.Channel).Buttons {
		base.Buttons = approvalButtons(q)
	}
	return outbox.Rows(base, approvalText(q), w.Chunks(to)), nil
}

// approvalButtons returns buttons with the commands that decide about a request.
func approvalButtons(q approval.Request) [][]chela.Button {
	button := func(label, decision string, style chela.ButtonStyle) chela.Button {
		return chela.Button{Label: label, Data: "/approve " + q.ID + " " + decision, Style: style}
	}
	row := []chela.Button{button("Allow once", "allow-once", chela.Success)}
	if !q.Once {
		row = append(row, button("Always", "allow-always", ""))
	}
	return [][]chela.Button{append(row, button("Deny", "deny", chela.Danger))}
}

// approvalChat returns the session and the address where the request is shown:
// the chat of the session that is asked, or else the address of the run.
func (w *Worker) approvalChat(r store.Reader, q approval.Request) (chela.SessionKey, chela.Address, error) {
	if q.Asked != "" {
		m, err := r.Sessions().Get(q.Asked)
		if err == nil && !w.o.Sends(m, m.Address) {
			m.Address = chela.Address{}
		}
		return q.Asked, m.Address, err
	}
	v, err := r.Runs().Get(q.Run)
	return q.Session, v.Address, err
}

// approvalText returns the message that asks for a decision. It contains the
// complete plan, because a person approves exactly what is shown.
func approvalText(q approval.Request) string {
	text := "Approval needed for " + q.Tool
	if q.Reason != "" {
		text += ": " + q.Reason
	}
	words := "allow-once, allow-always or deny"
	if q.Once {
		words = "allow-once or deny"
	}
	return fmt.Sprintf("%s\n%s\n/approve %s %s", text, chunk.Fenced(q.Text), q.ID, words)
}
