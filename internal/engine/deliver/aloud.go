package deliver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
)

// words returns what is said of an answer; "": it is not said. text is the answer. say is
// what the answer wants to be said instead, and tagged reports whether it asks to be said.
func (w *Worker) words(r run.Run, style Style, text, say string, tagged bool) string {
	switch {
	case w.o.Say == nil, r.State != run.OK, style.Aloud == "", style.Aloud == speech.Off:
		return ""
	case !tagged && (style.Aloud == speech.Tagged || !speech.OfItself(text)):
		return ""
	}
	return speech.Words(cmp.Or(say, text), style.Said)
}

// aloud returns the row of the recording of an answer, which follows the rows with its
// text; none: it is not said.
func aloud(tx store.Tx, r run.Run, style Style, present []outbox.Row, say string, tagged bool) ([]outbox.Row, error) {
	if say == "" || slices.ContainsFunc(present, func(p outbox.Row) bool { return len(p.Media) > 0 }) {
		return nil, nil // or it has files, perhaps a recording that the model made
	}
	if style.Aloud == speech.Inbound && !tagged {
		in, err := answered(tx.Queue(), r)
		if err != nil ||
			!slices.ContainsFunc(in.Media, func(m chela.Media) bool { return strings.HasPrefix(m.Type, "audio/") }) {
			return nil, err
		}
	}
	row := outbox.Row{
		Key: string(r.ID) + ":voice", Run: r.ID, Session: r.Session, Address: r.Address, Created: r.Ended,
		State: outbox.Pending, Media: []chela.Media{{Say: say}},
	}
	for _, p := range present {
		row.Part = max(row.Part, p.Part)
	}
	row.Part += maxParts
	return []outbox.Row{row}, nil
}

// maxParts is more than the parts of an answer.
const maxParts = 1000

// unsaid returns what the recording of a row says that was not made yet; "": there is none.
func unsaid(row outbox.Row) string {
	if len(row.Media) == 1 && row.Media[0].Ref == "" {
		return row.Media[0].Say
	}
	return ""
}

// say makes the recording of a row. If that fails, the row is not sent, unless nothing else
// of the answer is: then it is a text.
func (w delivery) say(ctx context.Context, row outbox.Row, text string) (done bool, err error) {
	m, cause := w.o.Say(ctx, row.Session.Agent(), text)
	if ctx.Err() != nil {
		return false, nil
	}
	if cause == nil {
		row.Media = []chela.Media{m}
		open, err := w.putOpen(ctx, store.Ordered, row)
		return err == nil && !open, err
	}
	w.o.Log.Warn("an answer is not said aloud", "channel", row.Address.Channel, "err", cause)
	rows, err := store.Get(ctx, w.o.Store, func(r store.Reader) ([]outbox.Row, error) { return r.Outbox().OfRun(row.Run) })
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(rows, func(other outbox.Row) bool { return other.Key != row.Key && other.Text != "" }) {
		return true, w.drop(ctx, row)
	}
	row.Media, row.Text = nil, text
	open, err := w.putOpen(ctx, store.Ordered, row)
	return err == nil && !open, err
}
