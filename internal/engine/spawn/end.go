package spawn

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// Ended closes the record of a child whose last run ends, and announces its result.
// It observes the ends of runs, see runner.Ended.
func (s *Spawner) Ended(row run.Run) func(store.Tx) error {
	if row.Kind != run.Turn {
		return nil
	}
	return func(tx store.Tx) error {
		c, err := subagent.Lookup(tx.Children(), row.Session)
		if err != nil || !c.Open() {
			return err
		}
		goesOn, err := goesOn(tx, row)
		if err != nil || goesOn {
			return err
		}
		c.Outcome, c.Result, c.Error, c.Ended = row.State.Outcome(), row.Text, row.Error, row.Ended
		if row.State == run.OK && !row.Silent { // what says that it could do nothing is no success
			stop, err := session.StopOf(tx.Sessions(), row.SessionID, row.ID, row.Started)
			if err != nil {
				return err
			}
			if stop == llm.StopUnable {
				c.Outcome = chela.OutcomeError
			}
		}
		switch {
		case row.Silent:
			c.Silent = subagent.Skipped
		case row.State == run.Aborted:
			c.Silent = subagent.Stopped
			if err := discard(tx, c.Session); err != nil {
				return err
			}
		}
		if c.Result == "" && !row.Silent {
			if c.Result, err = lastResult(tx, row.SessionID); err != nil {
				return err
			}
		}
		return report(tx, c, row.Decided.Announce)
	}
}

// goesOn reports whether a child has more to do after a run: another run replaces it,
// or a message of its requester waits. Messages of other sessions are answered after
// the result.
func goesOn(tx store.Tx, row run.Run) (bool, error) {
	switch row.State {
	case run.Superseded:
		return true, nil
	case run.Aborted:
		return false, nil
	}
	waiting, err := tx.Queue().Waiting(row.Session)
	return slices.ContainsFunc(waiting, func(it queue.Item) bool {
		return it.ID != string(row.ID) && !it.Next && it.Origin.Exchange == "" &&
			(it.Kind == queue.Message || it.Kind == queue.Event)
	}), err
}

// lastEntries is how many entries are read for the last result of a tool.
const lastEntries = 8

// lastResult returns the result of the last tool of a transcript.
func lastResult(tx store.Tx, id string) (string, error) {
	entries, err := tx.Sessions().Last(id, lastEntries)
	var messages []*llm.Message
	for _, e := range entries {
		if e.Kind == session.KindMessage {
			messages = append(messages, e.Message)
		}
	}
	return subagent.ResultText(messages), err
}

// closeRecord stores a child that ended, with what it has used, and counts that to the
// session that its result belongs to. It returns what [target] does.
func closeRecord(tx store.Tx, c *subagent.Child) (to chela.SessionKey, at chela.Address, err error) {
	m, err := session.Lookup(tx.Sessions(), c.Session)
	if err != nil {
		return "", at, err
	}
	c.Tokens, c.NanoUSD, c.Priced = m.Tokens, m.NanoUSD, m.Priced
	if err := tx.Children().Put(*c); err != nil {
		return "", at, err
	}
	if to, at, err = target(tx, *c); err != nil {
		return "", at, err
	}
	return to, at, count(tx, to, m)
}

// report closes the record of a child that ended, and tells the requester. The answer to
// the result goes to elsewhere, if it is not nil.
func report(tx store.Tx, c subagent.Child, elsewhere *chela.Address) error {
	to, at, err := closeRecord(tx, &c)
	if err != nil {
		return err
	}
	if elsewhere != nil {
		at = *elsewhere
	}
	waits, err := waitingRun(tx, to, c)
	if err != nil {
		return err
	}
	switch {
	case c.Silent == "", c.Silent == subagent.Stopped && waits.ID != "": // a run that waits for it has to know
	case waits.ID != "":
		return resume(tx, c, waits)
	default:
		return nil
	}
	open, err := tx.Children().Open(to)
	if err != nil {
		return err
	}
	it := queue.Item{
		ID:        c.AnnounceKey(),
		Key:       c.AnnounceKey(),
		Session:   to,
		Kind:      queue.Event,
		State:     queue.Waiting,
		Created:   c.Ended,
		Origin:    chela.Origin{Kind: chela.OriginSubagent, ID: string(c.Session)},
		Principal: c.Principal,
		Parent:    c.ID,
		Root:      c.Root,
		Inbound:   chela.Inbound{Text: c.Announcement(len(open)), Address: at},
	}
	err = store.Enqueue(tx, it)
	if err == nil && waits.ID != "" && !it.Joins(waits.Address) { // a later run takes it
		err = resume(tx, c, waits)
	}
	return err
}

// target returns the session that gets the result of a child, and the address to which
// that session answers it. It is the requester of the child, or the nearest session above
// it that exists. Without any it is the main session of the requester's agent.
func target(tx store.Tx, c subagent.Child) (chela.SessionKey, chela.Address, error) {
	main := chela.MainSession(c.Requester.Agent())
	for range maxAncestors {
		_, err := tx.Sessions().Get(c.Requester)
		if err == nil || !errors.Is(err, chela.ErrNotFound) {
			return c.Requester, c.ReplyAddress(), err
		}
		above, err := subagent.Lookup(tx.Children(), c.Requester)
		if err != nil {
			return "", chela.Address{}, err
		}
		if above.ID == "" {
			break
		}
		c = above
	}
	return main, c.ReplyAddress(), nil
}

// maxAncestors bounds walks up a tree of sessions.
const maxAncestors = 16

// count adds what a child has used to the session that its result belongs to.
func count(tx store.Tx, to chela.SessionKey, child session.Meta) error {
	m, err := tx.Sessions().Get(to)
	if errors.Is(err, chela.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	own := session.Spent{Runs: 1, Tokens: child.Tokens, NanoUSD: child.NanoUSD, Unpriced: child.Calls > 0 && !child.Priced}
	m.Children = m.Children.Add(own).Add(child.Children)
	return tx.Sessions().Put(m)
}

// waitingRun returns the suspended run of a session that waits for a child which has
// ended, if the child was the last one that it waits for; without an id: there is none.
func waitingRun(tx store.Tx, key chela.SessionKey, c subagent.Child) (run.Run, error) {
	active, err := tx.Runs().Active(key)
	if err != nil {
		return run.Run{}, err
	}
	i := slices.IndexFunc(active, func(r run.Run) bool {
		return r.State == run.Suspended && r.Waits == run.WaitsChildren && r.Tree() == c.Root
	})
	if i < 0 {
		return run.Run{}, nil
	}
	open, err := tx.Children().Open(key)
	if slices.ContainsFunc(open, func(o subagent.Child) bool { return o.Root == c.Root }) {
		return run.Run{}, err
	}
	return active[i], err
}

// resume puts an item that resumes the run that waits for a child.
func resume(tx store.Tx, c subagent.Child, waits run.Run) error {
	return store.Enqueue(tx, queue.NewResume("resume:"+c.AnnounceKey(), waits, time.Time{}, time.Now()))
}

// Open reports whether a run that is about to end has open children, or announcements
// that wait for it. See runner.Children.
func (s *Spawner) Open(tx store.Tx, row run.Run) (bool, error) {
	n, err := pending(tx.Children(), tx.Queue(), row)
	return n > 0, err
}

// Waiting returns the number of open children of a run and of announcements that wait
// for it.
func (s *Spawner) Waiting(ctx context.Context, id chela.RunID) (int, error) {
	return store.Get(ctx, s.o.Store, func(r store.Reader) (int, error) {
		row, err := r.Runs().Get(id)
		if err != nil {
			return 0, err
		}
		return pending(r.Children(), r.Queue(), row)
	})
}

func pending(children subagent.Reader, items queue.Reader, row run.Run) (n int, err error) {
	open, err := children.Open(row.Session)
	if err != nil {
		return 0, err
	}
	for _, c := range open {
		if c.Root == row.Tree() {
			n++
		}
	}
	waiting, err := items.Waiting(row.Session)
	for _, it := range waiting {
		if it.Kind == queue.Event && it.Origin.Kind == chela.OriginSubagent && it.Root == row.Tree() &&
			it.Joins(row.Address) {
			n++
		}
	}
	return n, err
}

// Stop closes, in the commit that stops all work of a session, the child in it and all
// open children below. They are not announced. It returns the sessions below with work
// that has to be stopped too: those of the open children, and of children that have
// ended and work again, because something was sent to them.
func (s *Spawner) Stop(tx store.Tx, key chela.SessionKey) ([]chela.SessionKey, error) {
	now := time.Now()
	d := newDescent(tx.Children(), key)
	open, err := d.open()
	if err != nil {
		return nil, err
	}
	for _, c := range slices.Backward(open) { // usage is counted upwards
		c.Ended, c.Outcome, c.Silent = now, chela.OutcomeAborted, subagent.Stopped
		if _, _, err := closeRecord(tx, &c); err != nil { // its requester is stopped as well and gets no result
			return nil, err
		}
	}
	sessions, err := d.working(open, tx)
	if err != nil {
		return nil, err
	}
	for _, k := range sessions {
		if err := discard(tx, k); err != nil {
			return nil, err
		}
	}
	own, err := subagent.Lookup(tx.Children(), key)
	if err != nil || !own.Open() {
		return sessions, err
	}
	own.Ended, own.Outcome, own.Silent = now, chela.OutcomeAborted, subagent.Stopped
	return sessions, errors.Join(discard(tx, key), report(tx, own, nil))
}

// discard cancels what waits for a child that is stopped, so that nothing starts
// another run there.
func discard(tx store.Tx, key chela.SessionKey) error {
	waiting, err := tx.Queue().Waiting(key)
	var events []queue.Item
	for _, it := range waiting {
		if it.Kind == queue.Event && (it.Origin.Kind == chela.OriginSubagent || it.Origin.Kind == chela.OriginAgent) {
			it.Note = "the subagent was stopped"
			events = append(events, it)
		}
	}
	return errors.Join(err, tx.Queue().Set(queue.Cancelled, events...))
}

// Deleted moves, in the commit that deletes a session, what its children owe it to the
// session above: announcements that wait, and later results.
func (s *Spawner) Deleted(tx store.Tx, key chela.SessionKey) error {
	own, err := subagent.Lookup(tx.Children(), key)
	if err != nil {
		return err
	}
	now, wasOpen := time.Now(), own.Open()
	if own.Archived.IsZero() {
		own.Archived = now
	}
	switch {
	case wasOpen: // nothing can be announced any more
		own.Ended, own.Outcome, own.Silent = now, chela.OutcomeAborted, subagent.Lost
		err = report(tx, own, nil)
	case own.ID != "":
		err = tx.Children().Put(own)
	}
	if err != nil {
		return err
	}
	waiting, err := tx.Queue().Waiting(key)
	if err != nil {
		return err
	}
	to := own.Requester
	if to == "" {
		to = chela.MainSession(key.Agent())
	}
	for _, it := range waiting {
		if it.Kind != queue.Event || it.Origin.Kind != chela.OriginSubagent {
			continue
		}
		it.Note = "moved to " + string(to)
		if err := tx.Queue().Set(queue.Cancelled, it); err != nil {
			return err
		}
		it.ID, it.Key = it.ID+subagent.MovedUp, it.Key+subagent.MovedUp
		it.Session, it.State, it.Note = to, queue.Waiting, ""
		if own.ID != "" {
			it.Inbound.Address = own.ReplyAddress()
		}
		if err := store.Enqueue(tx, it); err != nil {
			return err
		}
	}
	return nil
}
