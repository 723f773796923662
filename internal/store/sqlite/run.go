package sqlite

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/run"
)

// runs is the tables of runs and leases.
type runs struct{ c *conn }

var _ run.Table = runs{}

const runColumns = `id, session, transcript, agent, trigger, lane, state, principal, address, think, model, attempts,
error, text, footer, silent, started, ended, fence`

func (t runs) list(rest string, args ...any) ([]run.Run, error) {
	var list []run.Run
	err := t.c.query(func(r *row) error {
		v := run.Run{ID: chela.RunID(r.text()), Session: chela.SessionKey(r.text()), SessionID: r.text(), Agent: chela.AgentID(r.text())}
		v.Trigger, v.Lane, v.State = run.Trigger(r.text()), r.text(), run.State(r.text())
		err := errors.Join(decode(r.text(), &v.Principal), decode(r.text(), &v.Address))
		v.Think, v.Model, v.Attempts, v.Error = r.text(), r.text(), int(r.int()), r.text()
		v.Text, v.Footer, v.Silent = r.text(), r.text(), r.bool()
		v.Started, v.Ended, v.Fence = r.time(), r.time(), r.int()
		list = append(list, v)
		return err
	}, "SELECT "+runColumns+" FROM run "+rest, args...)
	return list, err
}

// Get returns a run.
func (t runs) Get(id chela.RunID) (run.Run, error) {
	list, err := t.list("WHERE id = ?", str(id))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("run %s: %w", id, chela.ErrNotFound)
	}
	if err != nil {
		return run.Run{}, err
	}
	return list[0], nil
}

// Active returns the running and suspended runs of a session, oldest first; of
// all sessions for the empty key.
func (t runs) Active(key chela.SessionKey) ([]run.Run, error) {
	// Without its index named, the query is answered from the one that has the
	// order: it would read every run that the session ever had.
	const active, order = "INDEXED BY run_active WHERE state IN ('running', 'suspended')", " ORDER BY started, n"
	if key == "" {
		return t.list(active + order)
	}
	return t.list(active+" AND session = ?"+order, str(key))
}

// Put stores a run by its id, new or changed. Whose run it is and when it began
// never changes: setting those again would write their indexes again.
func (t runs) Put(v run.Run) error {
	principal, err1 := encode(v.Principal)
	address, err2 := encode(v.Address)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("run %s: %w", v.ID, err)
	}
	_, err := t.c.exec("INSERT INTO run ("+runColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET lane = excluded.lane, state = excluded.state, principal = excluded.principal,
address = excluded.address, think = excluded.think, model = excluded.model, attempts = excluded.attempts,
error = excluded.error, text = excluded.text, footer = excluded.footer, silent = excluded.silent,
ended = excluded.ended, fence = excluded.fence`,
		str(v.ID), str(v.Session), v.SessionID, str(v.Agent), str(v.Trigger), v.Lane, str(v.State), principal, address,
		v.Think, v.Model, v.Attempts, v.Error, v.Text, v.Footer, v.Silent, v.Started, v.Ended, v.Fence)
	return err
}

// Lease returns the session's lease.
func (t runs) Lease(key chela.SessionKey) (run.Lease, error) {
	l := run.Lease{Session: key}
	ok, err := t.c.one(func(r *row) error {
		l.Owner, l.Fence, l.Run = r.text(), r.int(), chela.RunID(r.text())
		return nil
	}, "SELECT owner, fence, run FROM lease WHERE session = ?", str(key))
	if err != nil || !ok {
		return run.Lease{}, err
	}
	return l, nil
}

// Acquire takes the session's lease for owner and run with the next fence.
func (t runs) Acquire(key chela.SessionKey, owner string, id chela.RunID) (run.Lease, error) {
	fence, err := t.c.number(`INSERT INTO lease (session, owner, fence, run) VALUES (?, ?, 1, ?)
ON CONFLICT DO UPDATE SET owner = excluded.owner, fence = fence + 1, run = excluded.run RETURNING fence`, str(key), owner, str(id))
	if err != nil {
		return run.Lease{}, err
	}
	return run.Lease{Session: key, Owner: owner, Fence: fence, Run: id}, nil
}

// Prune deletes final runs that ended before tm, with their calls and the
// approvals that were decided for them, and returns how many; likewise the
// calls that belong to no run. What a person allowed always stays.
func (t runs) Prune(tm time.Time) (int, error) {
	const old = "(SELECT id FROM run WHERE started < ?1 AND ended < ?1 AND state NOT IN ('running', 'suspended'))"
	for _, sql := range [...]string{
		"DELETE FROM call WHERE (state = 'closed' OR NOT detached) AND (run IN " + old + " OR updated < ?1 AND run NOT IN (SELECT id FROM run))",
		"DELETE FROM approval WHERE decision NOT IN ('', 'allow-always') AND run IN " + old,
	} {
		if _, err := t.c.exec(sql, tm); err != nil {
			return 0, err
		}
	}
	return t.c.exec("DELETE FROM run WHERE id IN "+old, tm)
}
