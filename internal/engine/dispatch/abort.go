package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// Abort stops work of a session and returns the ids of what it stopped: the
// waiting message or the run with the id, or, for the empty id, all waiting
// messages and all runs, and those of the sessions that Children.Stop returns. It
// does not wait for a run in progress to end.
func (d *Dispatcher) Abort(ctx context.Context, key chela.SessionKey, id chela.RunID) ([]chela.RunID, error) {
	return d.abort(ctx, id, func(tx store.Tx) ([]stoppedWork, error) { return d.stopTree(tx, key, id) })
}

// AbortRuns is like Abort for all work of a session, but leaves its waiting messages: the
// next of them begins a run.
func (d *Dispatcher) AbortRuns(ctx context.Context, key chela.SessionKey) ([]chela.RunID, error) {
	return d.abort(ctx, "", func(tx store.Tx) ([]stoppedWork, error) {
		list, err := d.stopOthers(tx, key)
		if err != nil {
			return nil, err
		}
		s := stoppedWork{session: key}
		err = d.stopActive(tx, "", &s)
		return append([]stoppedWork{s}, list...), err
	})
}

// abort commits what stop stops, and stops it in this process.
func (d *Dispatcher) abort(ctx context.Context, id chela.RunID,
	stop func(store.Tx) ([]stoppedWork, error)) ([]chela.RunID, error) {
	var stopped []stoppedWork
	err := d.o.Store.Update(ctx, store.Synced, func(tx store.Tx) (err error) {
		stopped, err = stop(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.stopped(stopped, id), nil
}

// stopTree stops work of a session and, for the empty id, that of the sessions that
// Children.Stop returns.
func (d *Dispatcher) stopTree(tx store.Tx, key chela.SessionKey, id chela.RunID) (list []stoppedWork, err error) {
	if id == "" {
		if list, err = d.stopOthers(tx, key); err != nil {
			return nil, err
		}
	}
	s, err := d.stopRows(tx, key, id)
	return append([]stoppedWork{s}, list...), err
}

// StopIn stops all work of a session, and of the sessions that Children.Stop
// returns, in a synced transaction. It returns a function to be called after the commit.
func (d *Dispatcher) StopIn(tx store.Tx, key chela.SessionKey) (after func(), err error) {
	list, err := d.stopTree(tx, key, "")
	return func() { d.stopped(list, "") }, err
}

// StopOthers stops, in a commit that stops all work of a session, the work of the
// sessions that Children.Stop returns. It returns their number, and a function to
// be called after the commit.
func (d *Dispatcher) StopOthers(tx store.Tx, key chela.SessionKey) (n int, after func(), err error) {
	list, err := d.stopOthers(tx, key)
	return len(list), func() { d.stopped(list, "") }, err
}

// StopRuns stops, in a synced commit, the runs of a session that have not ended, and
// cancels its waiting messages. It returns the number of runs, and a function to be
// called after the commit.
func (d *Dispatcher) StopRuns(tx store.Tx, key chela.SessionKey) (n int, after func(), err error) {
	s, err := d.stopRows(tx, key, "")
	if n = len(s.runs); s.running != "" {
		n++
	}
	return n, func() {
		d.runner.PublishAbsorbed(s.cancelled...)
		d.runner.PublishStopped(s.runs, s.withdrawn)
		if w := d.worker(key); w != nil && s.running != "" { // a later run goes on
			w.halt(s.running)
		}
	}, err
}

func (d *Dispatcher) stopOthers(tx store.Tx, key chela.SessionKey) ([]stoppedWork, error) {
	keys, err := d.o.Children.Stop(tx, key)
	if err != nil {
		return nil, err
	}
	var list []stoppedWork
	for _, k := range keys {
		s, err := d.stopRows(tx, k, "")
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// stopped publishes what a commit has stopped, stops the runs that this process
// carries out, and returns the ids of all.
func (d *Dispatcher) stopped(list []stoppedWork, id chela.RunID) (ids []chela.RunID) {
	for _, s := range list {
		d.runner.PublishAbsorbed(s.cancelled...)
		d.runner.PublishStopped(s.runs, s.withdrawn)
		ids = append(ids, d.halt(s, id)...)
	}
	return ids
}

// halt stops the run of a session that this process carries out, and returns the ids
// of all that was stopped.
func (d *Dispatcher) halt(s stoppedWork, id chela.RunID) []chela.RunID {
	var ids []chela.RunID
	for _, it := range s.cancelled {
		ids = append(ids, chela.RunID(it.ID))
	}
	for _, r := range s.runs {
		ids = append(ids, r.ID)
	}
	w := d.worker(s.session)
	switch {
	case s.running != "":
		ids = append(ids, s.running)
		if w != nil {
			w.halt(s.running)
		}
	case w != nil: // a detached call may be in progress
		if id, ok := w.stop(id, runner.ErrStopped); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Revoke stops the runs that a credential began, because it was revoked.
func (d *Dispatcher) Revoke(ctx context.Context, credential string) error {
	active, err := store.Get(ctx, d.o.Store, func(r store.Reader) ([]run.Run, error) { return r.Runs().Active("") })
	for _, r := range active {
		if r.Principal.Credential == credential {
			_, aerr := d.Abort(ctx, r.Session, r.ID)
			err = errors.Join(err, aerr)
		}
	}
	return err
}

// stoppedWork is what a commit stopped in a session.
type stoppedWork struct {
	session   chela.SessionKey
	cancelled []queue.Item       // messages that were waiting
	runs      []run.Run          // suspended runs, which ended
	withdrawn []approval.Request // of all these runs
	running   chela.RunID        // the run that is marked as running, whose stop is requested; empty: none
}

// stopRows cancels waiting messages and does what stopActive does.
func (d *Dispatcher) stopRows(tx store.Tx, key chela.SessionKey, id chela.RunID) (stoppedWork, error) {
	s := stoppedWork{session: key}
	waiting, err := tx.Queue().Waiting(key)
	if err != nil {
		return s, err
	}
	for _, it := range waiting {
		if it.Kind == queue.Message && (id == "" || it.ID == string(id)) {
			it.Note = "stopped before it began"
			s.cancelled = append(s.cancelled, it)
		}
	}
	if err := tx.Queue().Set(queue.Cancelled, s.cancelled...); err != nil {
		return s, err
	}
	err = d.stopActive(tx, id, &s)
	return s, err
}

// stopActive stops the suspended runs of a session, and requests the stop of the run in
// progress.
func (d *Dispatcher) stopActive(tx store.Tx, id chela.RunID, s *stoppedWork) error {
	active, err := tx.Runs().Active(s.session)
	if err != nil {
		return err
	}
	for _, r := range active {
		if r.State != run.Running || id != "" && r.ID != id {
			continue
		}
		s.running = r.ID
		if _, err := tx.Runs().RequestStop(r.ID, "stopped"); err != nil { // another process may carry it out
			return err
		}
		w, err := runner.Withdraw(tx, r, time.Now()) // from now on nobody can allow its calls
		if err != nil {
			return err
		}
		s.withdrawn = append(s.withdrawn, w...)
		tx.Wake(store.Topic{Kind: store.TopicQueue, Session: s.session})
	}
	var withdrawn []approval.Request
	s.runs, withdrawn, err = d.runner.StopSuspended(tx, s.session, id)
	s.withdrawn = append(s.withdrawn, withdrawn...)
	return err
}
