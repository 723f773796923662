package table

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// children is the table of subagents.
type children struct{ c *Tables }

var _ subagent.Table = children{}

const childIntact = "intact(n, id, session, requester, ended, archived, child, crc)"

func (t children) list(where string, args ...any) ([]subagent.Child, error) {
	return t.listBy("", where, args...)
}

// listBy is list with an index. SQLite reads the whole table in the order of its rows
// when a list is sorted by n, unless the index is named.
func (t children) listBy(index, where string, args ...any) ([]subagent.Child, error) {
	return Collect(t.c, ScanJSON[subagent.Child], "SELECT child, "+childIntact+" FROM child "+index+
		" WHERE "+where, args...)
}

// Get returns a child by its id.
func (t children) Get(id chela.RunID) (subagent.Child, error) {
	return get(t.list, "subagent", "id = ?", string(id))
}

// In returns the child whose session has the key.
func (t children) In(key chela.SessionKey) (subagent.Child, error) {
	return get(t.list, "subagent in session", "session = ?", string(key))
}

// Of returns the children of a requester that are not archived, oldest first.
func (t children) Of(requester chela.SessionKey) ([]subagent.Child, error) {
	return t.list("requester = ? AND archived = 0 ORDER BY n", str(requester))
}

// Open returns the open children of a requester, oldest first. An empty key selects
// those of all sessions.
func (t children) Open(requester chela.SessionKey) ([]subagent.Child, error) {
	return t.listBy("INDEXED BY child_open", "ended = 0 AND (?1 = '' OR requester = ?1) ORDER BY n", str(requester))
}

// Tree returns the number of children of a tree of runs that are not archived.
func (t children) Tree(root chela.RunID) (int, error) {
	n, err := t.c.Number("SELECT count(*) FROM child WHERE archived = 0 AND CASE WHEN json_valid(child) THEN json_extract(child, '$.rootRunId') END = ?", str(root))
	return int(n), err
}

// Recent returns at most n children of all sessions, newest first.
func (t children) Recent(n int) ([]subagent.Child, error) {
	return t.list("TRUE ORDER BY n DESC LIMIT ?", n)
}

// Ended returns the children that ended before tm and are not archived, oldest first.
func (t children) Ended(tm time.Time) ([]subagent.Child, error) {
	return t.listBy("INDEXED BY child_kept", "ended > 0 AND archived = 0 AND ended < ? ORDER BY n", tm)
}

// Put inserts or replaces a child by its id.
func (t children) Put(v subagent.Child) error {
	child, err := encode(v)
	if err != nil {
		return fmt.Errorf("subagent %s: %w", v.ID, err)
	}
	_, err = t.c.Exec(`INSERT INTO child (id, session, requester, ended, archived, child) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET requester = excluded.requester, ended = excluded.ended, archived = excluded.archived, child = excluded.child WHERE `+childIntact,
		str(v.ID), str(v.Session), str(v.Requester), v.Ended, v.Archived, child)
	return err
}

// Prune deletes archived children that ended before tm and returns their number.
func (t children) Prune(tm time.Time) (int, error) {
	return t.c.Exec("DELETE FROM child WHERE archived > 0 AND ended < ?", tm)
}
