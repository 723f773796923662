package deliver

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/speech"
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
	text := answerText(r)
	if r.Decided.Outgoing != nil {
		text = *r.Decided.Outgoing
	}
	text, say, tagged := speech.Tags(text)
	text, wanted := directives(text)
	style := w.style(r.Agent, r.Address)
	chunks, say := w.chunks(style, r.Address), w.words(r, style, text, say, tagged)
	return func(tx store.Tx) error {
		present, err := tx.Outbox().OfRun(r.ID)
		if err != nil {
			return err
		}
		rest := rest(present, r, style, text)
		rows := outbox.Rows(base, rest, chunks)
		if len(rows) > 0 && r.Reasoning != "" {
			rows = outbox.Join(outbox.Rows(base, Thoughts+r.Reasoning, chunks), rows)
		}
		if outbox.AlreadySent(present, r.Address, r.Text) { // the message tool has already sent it
			rows = nil
		}
		if err := quote(tx.Queue(), r, style, wanted, present, rows); err != nil {
			return err
		}
		out := rows
		for _, d := range present {
			if d.State == outbox.Draft {
				out = mergePreview(d, rows, r)
			}
		}
		voice, err := aloud(tx, r, style, present, say, tagged)
		if err != nil {
			return err
		}
		out = append(out, voice...)
		if len(out) == 0 {
			return nil
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(out...)
	}
}

// Thoughts begins a message with the thoughts of the model.
const Thoughts = "🧠 "

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
		if r.Origin.Kind == chela.OriginHeartbeat && r.Origin.ID == heartbeat.ReasonInterval {
			return "" // nobody waits for it, and the next one may succeed
		}
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

// rest returns what remains to be sent of an answer, with the prefix of the style.
func rest(present []outbox.Row, r run.Run, s Style, text string) string {
	if text == "" {
		return ""
	}
	if rest := outbox.Rest(present, r.Address, text); rest != text {
		return rest
	}
	return outbox.Rest(present, r.Address, s.prefix(r.Model)+text)
}

// quote sets the message to which the rows of an answer are replies. wanted is the one
// that the answer names, see directives; present are the rows of the run that exist.
func quote(q queue.Reader, r run.Run, s Style, wanted string, present, rows []outbox.Row) error {
	if len(rows) == 0 || s.Reply != ReplyFirst && s.Reply != ReplyAll && wanted == "" {
		return nil
	}
	to := wanted
	if to == "" || to == current {
		in, err := answered(q, r)
		if err != nil {
			return err
		}
		to = in.ID
	}
	if s.Reply != ReplyAll {
		if slices.ContainsFunc(present, func(p outbox.Row) bool { return p.IsBlock() && p.Address == r.Address }) {
			return nil // an earlier message is the first one
		}
		rows = rows[:1]
	}
	for i := range rows {
		rows[i].ReplyTo = to
	}
	return nil
}

// Chunks returns how texts are split for the address.
func (w *Worker) Chunks(a chela.Address) chunk.Options { return w.chunks(w.style("", a), a) }

// chunks returns how texts are split for an address and a style.
func (w *Worker) chunks(s Style, a chela.Address) chunk.Options {
	l := w.o.Limits(a.Channel)
	o := chunk.Options{Limit: l.Text, Size: l.Size}
	if s.Limit > 0 && (o.Limit < 1 || s.Limit < o.Limit) {
		o.Limit = s.Limit
	}
	return o
}
