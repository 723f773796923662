package deliver

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Ended returns the writes of the commit that ends a run: the rows with the parts
// of its answer. It returns nil for runs whose answer goes to no channel.
func (w *Worker) Ended(r run.Run) func(store.Tx) error {
	if r.Address.Local() {
		return nil
	}
	base := outbox.Row{
		Key: string(r.ID), Run: r.ID, Session: r.Session, Address: r.Address, Created: r.Ended, Origin: r.Origin,
	}
	rows := outbox.Rows(base, answerText(r), w.Chunks(r.Address))
	return func(tx store.Tx) error {
		present, err := tx.Outbox().OfRun(r.ID)
		if err != nil {
			return err
		}
		rows := rows
		if outbox.AlreadySent(present, r.Address, r.Text) { // the message tool has already sent it
			rows = nil
		}
		out := rows
		for _, d := range present {
			if d.State == outbox.Draft {
				out = mergePreview(d, rows, r)
			}
		}
		if len(out) == 0 {
			return nil
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(out...)
	}
}

// mergePreview returns the rows of an answer with the message of the preview d as
// the first part. A run that was stopped leaves the preview as it is; a run without
// an answer deletes it.
func mergePreview(d outbox.Row, rows []outbox.Row, r run.Run) []outbox.Row {
	d.State = outbox.Pending
	if len(rows) > 0 && d.Address != r.Address { // a steering message has changed the run's address
		d.Key, d.Text = previewKey(d), ""
		return append([]outbox.Row{d}, rows...)
	}
	if len(rows) == 0 {
		if !stopped(r) {
			d.Text = ""
		}
		return []outbox.Row{d}
	}
	rows = slices.Clone(rows)
	rows[0].PlatformID = d.PlatformID
	return rows
}

func stopped(r run.Run) bool { return r.State == run.Aborted || r.State == run.Superseded }

// answerText returns the text that people get as the answer of a run.
func answerText(r run.Run) string {
	if r.Silent {
		return ""
	}
	text := r.Text
	switch r.State {
	case run.OK:
		if text != "" && r.Footer != "" {
			text += "\n\n" + r.Footer
		}
	case run.Aborted, run.Superseded:
		return "" // the person who stopped it knows; a preview remains
	default:
		// Groups do not get errors that only the owner can fix.
		if r.Error != "" && r.Address.Peer.Kind != chela.Group && r.Address.Peer.Kind != chela.Room {
			if text != "" {
				text += "\n\n"
			}
			text += "⚠️ " + r.Error
		}
	}
	return text
}

// Chunks returns how texts are split for the address.
func (w *Worker) Chunks(a chela.Address) chunk.Options {
	l := w.o.Limits(a.Channel)
	return chunk.Options{Limit: l.Text, Size: l.Size}
}
