package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/chunk"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/store"
)

// ask makes rows for the decisions that channels are to be asked for and were
// not. The event that one waits is only a hint: the requests are the truth, so
// that one is asked for also after a crash, and once.
func (w *Worker) ask(ctx context.Context) error {
	var rows []outbox.Row
	err := w.o.Store.View(ctx, func(r store.Reader) error {
		rows = nil
		pending, err := r.Approvals().Pending("")
		if err != nil {
			return err
		}
		for _, q := range pending {
			more, err := w.prompt(r, q)
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

// prompt returns the rows that ask for a decision; none when its run is not
// answered on a channel, or when they exist.
func (w *Worker) prompt(r store.Reader, q approval.Request) ([]outbox.Row, error) {
	v, err := r.Runs().Get(q.Run)
	if errors.Is(err, chela.ErrNotFound) || err == nil && v.Address.Local() || !time.Now().Before(q.Expires) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key := "approval:" + q.ID
	if _, err := r.Outbox().Get(key + ":0"); !errors.Is(err, chela.ErrNotFound) {
		return nil, err
	}
	base := outbox.Row{Key: key, Session: q.Session, Address: v.Address, Created: q.Created}
	return outbox.Rows(base, question(q), w.Chunks(v.Address)), nil
}

// question is a request as people read it. The plan is shown whole: what is
// allowed is what is read.
func question(q approval.Request) string {
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
