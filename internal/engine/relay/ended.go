package relay

import (
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// Ended puts the next step of the exchanges that a run has answered. It observes the
// ends of runs, see runner.Ended.
func (r *Relay) Ended(row run.Run) func(store.Tx) error {
	if row.Kind != run.Turn || row.State == run.Superseded { // the run that replaces it answers
		return nil
	}
	return func(tx store.Tx) error {
		items, err := answered(tx, row)
		for i := 0; i < len(items) && err == nil; i++ {
			err = r.next(tx, items[i], row)
		}
		return err
	}
}

// maxReplaced bounds the number of runs that a run replaces.
const maxReplaced = 16

// answered returns the steps of exchanges that a run answers: the one that began it,
// those that have joined it, and the messages that the runs which it replaces were to
// answer. A later turn of an exchange ends with the run that a person has replaced.
func answered(tx store.Tx, row run.Run) ([]queue.Item, error) {
	var out []queue.Item
	for n := range maxReplaced {
		if step, ok := exchange.StepOf(row.Origin); ok && (n == 0 || step == step.First()) {
			it, err := tx.Queue().Get(string(row.ID))
			if err == nil {
				out = append(out, it)
			} else if !errors.Is(err, chela.ErrNotFound) {
				return nil, err
			}
		}
		joined, err := tx.Queue().OfRun(row.ID)
		if err != nil {
			return nil, err
		}
		for _, it := range joined {
			if it.Origin.Exchange == "" {
				continue
			}
			_, err := tx.Queue().Get(it.Later().ID)
			if errors.Is(err, chela.ErrNotFound) { // otherwise its own run answers
				out = append(out, it)
			} else if err != nil {
				return nil, err
			}
		}
		if row.Replaces == "" {
			break
		}
		if row, err = tx.Runs().Get(row.Replaces); errors.Is(err, chela.ErrNotFound) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// next puts what follows a step that a run has answered.
func (r *Relay) next(tx store.Tx, it queue.Item, row run.Run) error {
	step, _ := exchange.StepOf(it.Origin)
	if step.Turn == exchange.Announce {
		return nil
	}
	first, err := tx.Queue().Get(step.First().ID())
	if errors.Is(err, chela.ErrNotFound) || err == nil && first.Deleted() {
		return nil // an old message, which was pruned, or the target was deleted
	}
	if err != nil {
		return err
	}
	result := r.resultOf(row)
	if step.Turn == 0 {
		if over, err := replied(tx, &first, result, row); err != nil || over {
			return err
		}
	} else if stopped, err := senderStopped(tx, first); err != nil || stopped || row.State == run.Aborted {
		return err
	}
	other := chela.SessionKey(it.Origin.ID) // which gets the answer
	turns := r.o.Config.Exchange().Turns()
	if result.Status == exchange.OK && step.Turn < turns {
		ok, err := exists(tx, other)
		if err != nil {
			return err
		}
		if ok {
			return putStep(tx, step.Next(), other, it.Session, exchange.TurnText(it.Session, step.Turn+1, turns, result.Reply),
				run.DeliverSession, first, row)
		}
	}
	return announce(tx, step, first, resultIn(first), result, row)
}

// replied records the reply in the item of the message, or why there is none. It reports whether no turns follow:
// there is no reply, a person has stopped the sender, or the sender does not wait any
// more, and gets the reply as an event.
func replied(tx store.Tx, first *queue.Item, result exchange.Result, row run.Run) (over bool, err error) {
	had := resultIn(*first)
	if had.Status == "" {
		if err := record(tx, first, result, row.Ended); err != nil {
			return false, err
		}
	}
	tx.Wake(store.Topic{Kind: store.TopicQueue, Session: chela.SessionKey(first.Origin.ID)})
	if stopped, err := senderStopped(tx, *first); err != nil || stopped {
		return stopped, err
	}
	if had.Status != exchange.Late {
		return result.Status != exchange.OK, nil
	}
	if err := tellLate(tx, *first, result, row.Ended); err != nil || result.Status != exchange.OK {
		return true, err
	}
	step, _ := exchange.StepOf(first.Origin)
	return true, announce(tx, step, *first, result, result, row)
}

// resultOf returns the result of a run that answers another session.
func (r *Relay) resultOf(row run.Run) exchange.Result {
	switch {
	case row.State == run.Aborted:
		return exchange.Result{Status: exchange.Failed, Error: "the turn in that session was stopped"}
	case row.Failure == run.Empty:
		return exchange.Result{Status: exchange.NoReply}
	case row.State != run.OK:
		return exchange.Result{Status: exchange.Failed, Error: r.o.Redact(row.Error)}
	case row.Silent || row.Text == "":
		return exchange.Result{Status: exchange.NoReply}
	}
	return exchange.Result{Status: exchange.OK, Reply: exchange.Short(r.o.Redact(row.Text))}
}

// senderStopped reports whether a person has stopped the run that began an exchange, or
// has deleted its session. Another step would create the session again.
func senderStopped(tx store.Tx, first queue.Item) (bool, error) {
	by, err := tx.Runs().Get(first.Parent)
	if errors.Is(err, chela.ErrNotFound) {
		return first.Parent != "", nil
	}
	return by.State == run.Aborted || by.Stop != "", err
}

// exists reports whether a session exists.
func exists(tx store.Tx, key chela.SessionKey) (bool, error) {
	_, err := tx.Sessions().Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// tellLate puts the event that brings a late result to the sender. The answer goes to
// the chat in which the sender was asked.
func tellLate(tx store.Tx, first queue.Item, result exchange.Result, now time.Time) error {
	step, _ := exchange.StepOf(first.Origin)
	from := chela.SessionKey(first.Origin.ID)
	ok, err := exists(tx, from)
	if err != nil || !ok {
		return err
	}
	to := chela.Address{Channel: chela.LocalChannel}
	if by, err := tx.Runs().Get(first.Parent); err == nil {
		to = by.Address
	} else if !errors.Is(err, chela.ErrNotFound) {
		return err
	}
	return store.Enqueue(tx, queue.Item{
		ID:        step.LateKey(),
		Key:       step.LateKey(),
		Session:   from,
		Kind:      queue.Event,
		State:     queue.Waiting,
		Created:   now,
		Origin:    chela.Origin{Kind: chela.OriginAgent, ID: string(first.Session)},
		Principal: first.Principal,
		Parent:    first.Parent,
		Root:      first.Root,
		Inbound:   chela.Inbound{Text: exchange.LateText(first.Session, message(first), result), Address: to},
		Overrides: run.Overrides{Tools: first.Overrides.Tools},
	})
}

// announce puts the last step of an exchange into the target.
func announce(tx store.Tx, step exchange.Step, first queue.Item, reply, latest exchange.Result, row run.Run) error {
	from := chela.SessionKey(first.Origin.ID)
	if latest.Reply == reply.Reply {
		latest.Reply = ""
	}
	text := exchange.AnnounceText(from, message(first), reply.Reply, latest.Reply)
	return putStep(tx, step.Last(), first.Session, from, text, run.DeliverTo, first, row)
}

// putStep puts a step of an exchange into the queue of a session. row is the run that it
// follows from.
func putStep(tx store.Tx, step exchange.Step, to, from chela.SessionKey, text string, deliver run.DeliveryMode,
	first queue.Item, row run.Run) error {
	return store.Enqueue(tx, queue.Item{
		ID: step.ID(), Key: step.ID(), Session: to, Kind: queue.Message, State: queue.Waiting, Created: row.Ended,
		Origin: step.Origin(from), Principal: first.Principal, Parent: row.ID, Root: first.Root,
		Inbound: chela.Inbound{
			Text: text, Time: row.Ended, Mode: string(queue.Followup), Address: chela.Address{Channel: chela.LocalChannel},
		},
		Overrides: run.Overrides{Lane: Lane, Tools: first.Overrides.Tools,
			Deliver: run.Delivery{Mode: deliver, Last: deliver == run.DeliverTo}, Shared: first.Overrides.Shared},
	})
}

// message returns what the sender wrote.
func message(first queue.Item) string {
	return exchange.Message(first.Inbound.Text)
}
