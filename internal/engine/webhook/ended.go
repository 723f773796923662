package webhook

import (
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxResult limits the result that the main session gets, in bytes.
const maxResult = 8 << 10

// Ended puts the result of a run whose answer goes to the main session into its queue. It
// observes the ends of runs, see runner.Ended. A run that a person stopped, or in which the
// model chose not to answer, has none.
func (a *Acceptor) Ended(r run.Run) func(store.Tx) error {
	d := r.Overrides.Deliver
	if r.Origin.Kind != chela.OriginWebhook || r.Kind != run.Turn || d.Mode != run.DeliverMain || r.Silent ||
		r.State == run.Superseded || r.State == run.Aborted {
		return nil
	}
	text := "The webhook " + r.Origin.ID + " has finished. "
	if r.Text != "" {
		text += "Result:\n" +
			a.label.Wrap("webhook "+r.Origin.ID, resultNote, a.o.Redact(humanize.TruncateBytes(r.Text, maxResult)))
	}
	if r.State != run.OK {
		text = "The webhook " + r.Origin.ID + " has failed: " + a.o.Redact(humanize.TruncateBytes(r.Error, maxResult))
	}
	id := "webhook:" + string(r.ID)
	main := chela.MainSession(r.Agent)
	return func(tx store.Tx) error {
		waiting, err := tx.Queue().Waiting(main)
		if err != nil {
			return err
		}
		it := queue.Item{
			ID: id, Key: id, Session: main, Kind: queue.Event, State: queue.Waiting, Created: time.Now(),
			Origin: r.Origin, Principal: r.Principal, Parent: r.ID, Root: r.Tree(), Inbound: chela.Inbound{Text: text},
			// Of many results the last ones are kept; all are in their transcripts.
			Next: d.Next || count(waiting, queue.Event) >= maxEvents,
		}
		if it.Next {
			_, err = putWake(tx, it)
			return err
		}
		return store.Enqueue(tx, it) // it begins a run, which answers where the session was used last
	}
}
