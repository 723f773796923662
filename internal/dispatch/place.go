package dispatch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

// Place is what an idle session's next run needs to begin, kept for a message
// that is about to be taken: then one commit takes the message and begins the
// run, and nobody has to look for it.
type Place struct {
	c       *Conductor
	s       *served
	leave   func() // the lane
	notices []string

	j *job // of the last Begin that began a run
}

// Reserve keeps the session and a place in its lane until Leave. nil: the
// session is being served, or would have to wait; a message that is put for it
// is found all the same.
func (c *Conductor) Reserve(key chela.SessionKey) *Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live[key] != nil || c.closing || c.work == nil {
		return nil
	}
	leave := c.o.Lanes.Try(mainLane, string(key))
	if leave == nil {
		return nil
	}
	s := &served{key: key, hint: make(chan struct{}, 1)}
	c.live[key] = s
	c.wg.Add(1)
	return &Place{c: c, s: s, leave: leave, notices: c.notices.Drain(key)}
}

// Begin begins a run for the item in the transaction, a synced one, that put it
// in state Taken for the run of its id. It writes nothing and reports false when
// something else comes first, or when the item has to wait for others.
func (p *Place) Begin(tx store.Tx, m session.Meta, it queue.Item) (bool, error) {
	w, err := waitingFor(m.Key, tx.Runs(), tx.Queue(), tx.Sessions())
	if err != nil || !w.none() {
		return false, err
	}
	j := &job{p: p.c.profile(m), meta: m, items: []queue.Item{it}, alone: true}
	if d := queue.Plan(policyOf(j.p, m), false, j.items, time.Now()); len(d.Start) == 0 || cmp.Or(j.p.Lane, mainLane) != mainLane {
		return false, nil
	}
	if err := stand(tx, j.items); err != nil {
		if errors.Is(err, errTakenBack) {
			err = nil // the next look deals with it
		}
		return false, err
	}
	if err := p.c.beginTx(tx, store.Synced, j, w.active, p.notices, ""); err != nil {
		return false, err
	}
	p.j = j
	return true, nil
}

// Leave gives the place up. begun says that a run has, and that the transaction
// in which it did was committed: it is carried out now.
func (p *Place) Leave(begun bool) {
	if begun {
		p.c.attend(p.s, p.carry)
		return
	}
	p.leave()
	p.c.notices.Add(p.s.key, p.notices...)
	if p.c.leave(p.s) {
		p.c.wg.Done()
		return
	}
	p.c.attend(p.s, nil) // something came meanwhile
}

// carry carries the run out.
func (p *Place) carry(ctx context.Context) (time.Time, error) {
	defer p.leave()
	p.c.began(p.j, queue.Decision{Start: p.j.items})
	return p.c.answer(ctx, p.s, p.j)
}
