package table

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

// runs is the table of runs.
type runs struct{ c *Tables }

var _ run.Table = runs{}

const (
	runColumns = `id, session, transcript, agent, origin, lane, state, principal, address, model, attempts,
error, text, footer, silent, started, ended, fence, kind, parent, root, replaces, waits, stop, overrides, failure`
	runIntact = "intact(n, " + runColumns + ", crc)"
)

func (t runs) list(rest string, args ...any) ([]run.Run, error) {
	return Collect(t.c, scanRun, "SELECT "+runColumns+", "+runIntact+" FROM run "+rest, args...)
}

func scanRun(r *Row) (run.Run, error) {
	v := run.Run{ID: chela.RunID(r.Text()), Session: chela.SessionKey(r.Text()), SessionID: r.Text(),
		Agent: chela.AgentID(r.Text())}
	err := decodeSet(r.Text(), &v.Origin)
	v.Lane, v.State = r.Text(), run.State(r.Text())
	err = errors.Join(err, decode(r.Text(), &v.Principal), decode(r.Text(), &v.Address))
	v.Model, v.Attempts, v.Error = r.Text(), int(r.Int()), r.Text()
	v.Text, v.Footer, v.Silent = r.Text(), r.Text(), r.Bool()
	v.Started, v.Ended, v.Fence = r.Time(), r.Time(), r.Int()
	v.Kind, v.Parent, v.Root, v.Replaces = run.Kind(r.Text()), chela.RunID(r.Text()),
		chela.RunID(r.Text()), chela.RunID(r.Text())
	v.Waits, v.Stop = run.Waits(r.Text()), r.Text()
	err = errors.Join(err, decodeSet(r.Text(), &v.Overrides))
	v.Failure = run.Failure(r.Text())
	return v, err
}

// Get returns a run.
func (t runs) Get(id chela.RunID) (run.Run, error) {
	return get(t.list, "run", "WHERE id = ?", str(id))
}

// Active returns the running and suspended runs of a session, oldest first. An
// empty key selects all sessions.
func (t runs) Active(key chela.SessionKey) ([]run.Run, error) {
	// INDEXED BY is needed: SQLite would choose the index that matches the order
	// and read every run of the session.
	const active, order = "INDEXED BY run_active WHERE state IN ('running', 'suspended')", " ORDER BY started, n"
	if key == "" {
		return t.list(active + order)
	}
	return t.list(active+" AND session = ?"+order, str(key))
}

// Orphans returns the running runs of a session whose lease is free, or held by
// owner or a dead owner. An empty key selects all sessions.
func (t runs) Orphans(key chela.SessionKey, owner string) ([]run.Run, error) {
	const orphaned = `INDEXED BY run_active WHERE state IN ('running', 'suspended') AND state = 'running' AND NOT EXISTS (
SELECT 1 FROM lease JOIN beat USING (owner) WHERE name = 'session:' || session AND owner <> ?1 AND expires > ?2)`
	const order = " ORDER BY started, n"
	if key == "" {
		return t.list(orphaned+order, owner, time.Now())
	}
	return t.list(orphaned+" AND session = ?3"+order, owner, time.Now(), str(key))
}

// Put inserts or updates a run by its id. An update does not set the columns that
// never change, to avoid writing their indexes, nor stop, which other processes
// set.
func (t runs) Put(v run.Run) error {
	principal, err1 := encode(v.Principal)
	address, err2 := encode(v.Address)
	origin, err3 := encodeSet(v.Origin, v.Origin == chela.Origin{})
	overrides, err4 := encodeSet(v.Overrides, v.Overrides.IsZero())
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("run %s: %w", v.ID, err)
	}
	_, err := t.c.Exec("INSERT INTO run ("+runColumns+
		`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET lane = excluded.lane, state = excluded.state, principal = excluded.principal,
address = excluded.address, model = excluded.model, attempts = excluded.attempts,
error = excluded.error, text = excluded.text, footer = excluded.footer, silent = excluded.silent,
ended = excluded.ended, fence = excluded.fence, waits = excluded.waits, overrides = excluded.overrides, failure = excluded.failure WHERE `+runIntact,
		str(v.ID), str(v.Session), v.SessionID, str(v.Agent), origin, v.Lane, str(v.State), principal, address,
		v.Model, v.Attempts, v.Error, v.Text, v.Footer, v.Silent, v.Started, v.Ended, v.Fence,
		str(v.Kind), str(v.Parent), str(v.Root), str(v.Replaces), str(v.Waits), v.Stop, overrides, str(v.Failure))
	return err
}

// RequestStop sets Run.Stop of a run that is not final.
func (t runs) RequestStop(id chela.RunID, reason string) (bool, error) {
	n, err := t.c.Exec("UPDATE run SET stop = ? WHERE id = ? AND state IN ('running', 'suspended') AND "+
		runIntact, reason, str(id))
	return n > 0, err
}

// Prune deletes final runs that ended before tm, with their calls and their decided
// approvals, and returns their number. It also deletes old calls that belong to no
// run. Approvals with the decision "always allow" stay.
func (t runs) Prune(tm time.Time) (int, error) {
	const old = "(SELECT id FROM run WHERE started < ?1 AND ended < ?1 AND state NOT IN ('running', 'suspended'))"
	for _, sql := range [...]string{
		"DELETE FROM call WHERE (state = 'closed' OR detached = 0) AND (run IN " + old +
			" OR updated < ?1 AND run NOT IN (SELECT id FROM run))",
		"DELETE FROM approval WHERE decision NOT IN ('', 'allow-always', 'allow-session') AND run IN " + old,
	} {
		if _, err := t.c.Exec(sql, tm); err != nil {
			return 0, err
		}
	}
	return t.c.Exec("DELETE FROM run WHERE id IN "+old, tm)
}
