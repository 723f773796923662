package deliver

import (
	"github.com/chela-ai/chela/internal/channel"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/chunk"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/store"
)

// Ended returns what the commit that ends the run writes for its channel: the
// parts of the answer. It is nil for runs that are answered elsewhere.
func (w *Worker) Ended(r run.Run) func(store.Tx) error {
	if r.Address.Local() {
		return nil
	}
	base := outbox.Row{
		Key: string(r.ID), Run: r.ID, Session: r.Session, Address: r.Address, Created: r.Ended,
	}
	rows := outbox.Rows(base, say(r), w.Chunks(r.Address))
	return func(tx store.Tx) error {
		had, err := tx.Outbox().OfRun(r.ID)
		if err != nil {
			return err
		}
		rows := rows
		if outbox.Said(had, r.Address, r.Text) { // the tool message has said it
			rows = nil
		}
		out := rows
		for _, d := range had {
			if d.State == outbox.Draft {
				out = settle(d, rows, r)
			}
		}
		if len(out) == 0 {
			return nil
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(out...)
	}
}

// settle makes the preview the first part. A run that was stopped leaves what
// was shown; one that says nothing takes it away again.
func settle(d outbox.Row, rows []outbox.Row, r run.Run) []outbox.Row {
	d.State, d.Attempts = outbox.Pending, 0
	if len(rows) > 0 && d.Address != r.Address { // a message that steered moved the answer elsewhere
		d.Key, d.Text = previewKey(d), ""
		return append([]outbox.Row{d}, rows...)
	}
	if len(rows) == 0 {
		if !stopped(r) {
			d.Text = ""
		}
		return []outbox.Row{d}
	}
	d.Text = rows[0].Text
	return append([]outbox.Row{d}, rows[1:]...)
}

func stopped(r run.Run) bool { return r.State == run.Aborted || r.State == run.Superseded }

// say is what people are told of a run.
func say(r run.Run) string {
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
		return "" // whoever stopped it was told; what a preview shows stays
	default:
		// Groups are not bothered with what only the owner can mend.
		if r.Error != "" && r.Address.Peer.Kind != chela.Group && r.Address.Peer.Kind != chela.Room {
			if text != "" {
				text += "\n\n"
			}
			text += "⚠️ " + r.Error
		}
	}
	return text
}

// Chunks returns how texts are divided for the address.
func (w *Worker) Chunks(a chela.Address) chunk.Options {
	_, limits, _ := w.o.Channels(a.Channel, a.Account)
	return chunks(limits)
}

func chunks(l channel.Limits) chunk.Options { return chunk.Options{Limit: l.Text, Size: l.Size} }
