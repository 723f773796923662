package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/store"
)

// steer takes what arrived for the run in progress into its transcript.
func (c *Conductor) steer(ctx context.Context, j *job) ([]*llm.Message, error) {
	items, err := c.arrived(ctx, j.r.Session)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	d := queue.Plan(policyOf(j.p, j.meta), true, items, time.Now())
	steer := slices.DeleteFunc(d.Steer, j.foreign)
	later := slices.DeleteFunc(d.Later, j.foreign)
	if len(steer) == 0 {
		return nil, nil
	}
	if err := c.flush(ctx, j); err != nil {
		return nil, err
	}
	now := time.Now()
	entries := wording.Entries(steer, nil, "", j.r.ID, now)
	r := j.r
	for _, it := range steer {
		if it.Kind == queue.Message {
			r.Address = it.Inbound.Address // the answer goes where the latest message came from
		}
	}
	c.o.Step("run.steer")
	err = store.Held(ctx, c.o.Store, j.lease, store.Ordered, func(tx store.Tx) error {
		if err := take(tx, queue.Taken, takenBy(r.ID, steer)); err != nil {
			return err
		}
		if err := stand(tx, steer); err != nil {
			return err
		}
		for _, e := range entries {
			if err := tx.Sessions().Append(r.SessionID, e); err != nil {
				return err
			}
		}
		for _, it := range later {
			if _, err := tx.Queue().Put(it); err != nil {
				return err
			}
		}
		return tx.Runs().Put(r)
	})
	if errors.Is(err, errMoved) {
		return nil, nil // the next look finds what is left
	}
	if errors.Is(err, errTakenBack) {
		return nil, c.takeBack(ctx, j.r.Session) // what is left is steered the next time
	}
	if err != nil {
		return nil, err
	}
	j.r = r
	c.stored(j, j.meta, entries...)
	var msgs []*llm.Message
	for _, e := range entries {
		msgs = append(msgs, e.Message)
	}
	for _, it := range steer {
		c.absorbed(it)
	}
	return msgs, nil
}

// announceInput tells observers of the messages that a run begins with.
func (c *Conductor) announceInput(ctx context.Context, j *job) {
	if j.resumed {
		return
	}
	for _, e := range j.input {
		c.announce(j, e)
	}
	c.o.Bus.Publish(chela.Event{Session: j.r.Session, Stream: chela.StreamSession, Phase: "patched", Data: j.meta})
}

// foreign reports whether the item is not for the run, which has the rights of
// one principal: the words of another, or of a device with fewer scopes, wait
// for their own.
func (j *job) foreign(it queue.Item) bool {
	return it.Principal.ID != j.r.Principal.ID || it.Kind == queue.Message && !pairing.Within(it.Principal.Scopes, j.r.Principal.Scopes)
}
