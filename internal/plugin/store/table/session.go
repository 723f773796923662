package table

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
)

// sessions is the tables of sessions and their transcripts.
type sessions struct{ c *Tables }

var _ session.Table = sessions{}

const sessionIntact = "intact(n, key, id, agent, updated, entries, search, meta, active, archived, crc)"

// Get returns a session.
func (t sessions) Get(key chela.SessionKey) (session.Meta, error) {
	var m session.Meta
	ok, err := t.c.One(func(r *Row) (err error) {
		m, err = t.c.Memo.Read(key, r.Text())
		return err
	}, "SELECT meta, "+sessionIntact+" FROM session WHERE key = ?", str(key))
	if err == nil && !ok {
		err = fmt.Errorf("session %s: %w", key, chela.ErrNotFound)
	}
	return m, err
}

// listLimit is the default limit of a query.
const listLimit = 100

// List returns the matching sessions, newest first, and the total number of
// matches.
func (t sessions) List(q session.Query) ([]session.Meta, int, error) {
	where, args := selected(q)
	n, err := t.c.Number("SELECT count(*) FROM session WHERE "+where, args...)
	if err != nil || n == 0 {
		return nil, 0, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = listLimit
	}
	order := "updated DESC"
	switch q.Order {
	case session.ByActive:
		order = "active DESC"
	case session.ByAge:
		order = "updated"
	}
	order += ", key"
	// so that only rows of the page are checked
	page := "n IN (SELECT n FROM session WHERE " + where + " ORDER BY " + order + " LIMIT ? OFFSET ?)"
	list, err := Collect(t.c, ScanJSON[session.Meta], "SELECT meta, "+sessionIntact+" FROM session WHERE "+page+
		" ORDER BY "+order, append(args, limit, q.Offset)...)
	return list, int(n), err
}

// Counts returns how many sessions each agent has.
func (t sessions) Counts() (map[chela.AgentID]int, error) {
	counts := map[chela.AgentID]int{}
	err := t.c.Query(func(r *Row) error {
		id := chela.AgentID(r.Text())
		counts[id] = int(r.Int())
		return nil
	}, "SELECT agent, count(*) FROM session GROUP BY agent")
	return counts, err
}

// selected returns the WHERE clause of a query.
func selected(q session.Query) (where string, args []any) {
	all := []string{"updated >= ?"}
	args = []any{q.Since}
	add := func(on bool, cond string, arg ...any) {
		if on {
			all, args = append(all, cond), append(args, arg...)
		}
	}
	add(q.Archived == session.Present, "archived = 0")
	add(q.Archived == session.ArchivedOnly, "archived > 0")
	add(q.Agent != "", "agent = ?", str(q.Agent))
	add(q.ID != "", "id = ?", q.ID)
	add(q.Search != "", "instr(search, ?) > 0", strings.ToLower(q.Search))
	add(q.Label != "", "json_extract(meta, '$.label') = ?", q.Label)
	add(q.Category != "", "json_extract(meta, '$.category') = ?", q.Category)
	add(q.Pinned != nil && *q.Pinned, "json_extract(meta, '$.pinnedAt') IS NOT NULL")
	add(q.Pinned != nil && !*q.Pinned, "json_extract(meta, '$.pinnedAt') IS NULL")
	add(q.Interacted, "active > 0")
	// the condition of the index run_active
	add(q.Running, "key IN (SELECT session FROM run WHERE state IN ('running', 'suspended') AND state = 'running')")
	for _, kind := range q.Without {
		part := ":" + string(kind) + ":"
		add(kind == chela.KeySubagent, "instr(key, ?) = 0", part)
		// behind "agent:ID", or at the beginning of a key without an agent
		add(kind != chela.KeySubagent, "substr(CASE WHEN key LIKE 'agent:%' THEN substr(key, 6 + instr(substr(key, 7), ':')) ELSE ':' || key END, 1, CAST(? AS INTEGER)) <> ?", len(part), part)
	}
	return strings.Join(all, " AND "), args
}

// Put inserts or updates a session by its key.
func (t sessions) Put(m session.Meta) error {
	meta, err := encode(m)
	if err != nil {
		return fmt.Errorf("session %s: %w", m.Key, err)
	}
	t.c.Memo.Store(m, meta)
	search := strings.ToLower(string(m.Key) + "\n" + m.Label + "\n" + m.Title)
	_, err = t.c.Exec(`INSERT INTO session (key, id, agent, updated, search, meta, active, archived, entries)
VALUES (?1, ?2, ?, ?, ?, ?, ?, ?, coalesce((SELECT `+seqOfLast+` FROM transcript WHERE id = ?2), 0))
ON CONFLICT (key) DO UPDATE SET id = excluded.id, agent = excluded.agent, updated = excluded.updated, entries = excluded.entries,
search = excluded.search, meta = excluded.meta, active = excluded.active, archived = excluded.archived`,
		str(m.Key), m.ID, str(m.Agent), m.Updated, search, meta, m.Active, m.Archived)
	return err
}

// Past returns the transcripts that were archived by resets, newest first.
func (t sessions) Past(key chela.SessionKey) ([]session.Past, error) {
	return Collect(t.c, func(r *Row) (session.Past, error) {
		return session.Past{ID: r.Text(), Started: r.Time(), Ended: r.Time(), Reason: r.Text(), Entries: int(r.Int())}, nil
	}, "SELECT id, started, ended, reason, entries, intact(n, session, id, started, ended, reason, entries, crc) FROM past WHERE session = ? ORDER BY ended DESC, n DESC", str(key))
}

// Archive records an archived transcript.
func (t sessions) Archive(key chela.SessionKey, p session.Past) error {
	_, err := t.c.Exec(`INSERT INTO past (session, id, started, ended, reason, entries) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (session, id) DO UPDATE SET started = excluded.started, ended = excluded.ended, reason = excluded.reason, entries = excluded.entries`,
		str(key), p.ID, p.Started, p.Ended, p.Reason, p.Entries)
	return err
}

// PrunePast deletes the past transcripts of a session that ended before tm, and returns
// their number.
func (t sessions) PrunePast(key chela.SessionKey, tm time.Time) (n int, err error) {
	past, err := t.Past(key)
	for _, p := range past {
		if err != nil || !p.Ended.Before(tm) {
			continue
		}
		if err = t.drop(p.ID); err == nil {
			_, err = t.c.Exec("DELETE FROM past WHERE session = ? AND id = ?", str(key), p.ID)
			n++
		}
	}
	return n, err
}

// Unarchive removes an archived transcript from the list.
func (t sessions) Unarchive(key chela.SessionKey, id string) error {
	n, err := t.c.Exec("DELETE FROM past WHERE session = ? AND id = ?", str(key), id)
	if err == nil && n == 0 {
		err = fmt.Errorf("past transcript %s of session %s: %w", id, key, chela.ErrNotFound)
	}
	return err
}

// Delete removes a session, its archived transcripts and its rows. What remains
// contains no conversation: the keys of its messages, so that none is accepted
// twice; the fence, so that a run in progress can no longer write; the usage; and
// the names and decisions of tool calls.
func (t sessions) Delete(key chela.SessionKey) error {
	m, err := t.Get(key)
	if err != nil {
		return err
	}
	past, err := t.Past(key)
	if err != nil {
		return err
	}
	for _, p := range append(past, session.Past{ID: m.ID}) {
		if err := t.drop(p.ID); err != nil {
			return err
		}
	}
	for _, sql := range [...]string{
		"DELETE FROM past WHERE session = ?",
		"UPDATE call SET args = NULL, raw = '', ran = '', approval = '', state = 'closed' WHERE session = ? AND " +
			callIntact,
		"DELETE FROM approval WHERE session = ?",
		"DELETE FROM outbox WHERE session = ?",
		"DELETE FROM run WHERE session = ?",
		"UPDATE item SET inbound = '{}', result = '', note = '" + queue.SessionDeleted +
			"', state = CASE WHEN state IN ('owed', 'waiting', 'taken') THEN 'cancelled' ELSE state END WHERE session = ? AND " +
			itemIntact,
		"UPDATE lease SET fence = fence + 1, owner = '', since = 0 WHERE name = 'session:' || ? AND " + leaseIntact,
		"DELETE FROM session WHERE key = ?",
	} {
		if _, err := t.c.Exec(sql, str(key)); err != nil {
			return err
		}
	}
	return nil
}
