package table

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/usage"
)

// usageTable is the table of usage.
type usageTable struct{ c *Tables }

var _ usage.Table = usageTable{}

const (
	sums        = "count(*), CAST(sum(input) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(cache_read) AS BIGINT), CAST(sum(cache_write) AS BIGINT), max(estimated), CAST(sum(cost) AS BIGINT), CAST(sum(1 - priced) AS BIGINT)"
	usageIntact = "intact(n, run, session, agent, provider, model, time, input, output, cache_read, cache_write, estimated, cost, priced, crc)"
)

// Add stores a row.
func (t usageTable) Add(v usage.Row) error {
	_, err := t.c.Exec(`INSERT INTO usage (time, run, session, agent, provider, model, input, output, cache_read, cache_write, estimated, cost, priced, n)
VALUES (?1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce((SELECT max(n) + 1 FROM usage WHERE n >= ?1), ?1))`,
		v.Time, str(v.Run), str(v.Session), str(v.Agent), v.Provider, v.Model, v.Tokens.Input, v.Tokens.Output,
		v.Tokens.CacheRead, v.Tokens.CacheWrite, v.Tokens.Estimated, v.NanoUSD, v.Priced)
	return err
}

func scanSum(r *Row, s *usage.Sum) {
	s.Calls = r.Int()
	s.Tokens.Input, s.Tokens.Output, s.Tokens.CacheRead, s.Tokens.CacheWrite = r.Int(), r.Int(), r.Int(), r.Int()
	s.Tokens.Estimated = r.Bool()
	s.NanoUSD, s.Unpriced = r.Int(), r.Int()
}

// Sums returns sums by day and model, oldest first.
func (t usageTable) Sums(q usage.Query) ([]usage.Sum, error) {
	const query = "SELECT date(time / 1000000000 + ?1, 'unixepoch') AS day, CASE WHEN ?2 <> 0 THEN session ELSE '' END AS of, provider, model, " + sums +
		" FROM usage WHERE n >= ?3 AND time >= ?3 AND (?4 = 0 OR time < ?4) AND (?5 = '' OR session = ?5) AND " +
		usageIntact +
		" GROUP BY of, day, provider, model ORDER BY of, day, provider, model"
	return Collect(t.c, func(r *Row) (usage.Sum, error) {
		s := usage.Sum{Day: r.Text(), Session: chela.SessionKey(r.Text()), Provider: r.Text(), Model: r.Text()}
		scanSum(r, &s)
		return s, nil
	}, query, int64(q.Offset/time.Second), q.BySession, q.Since, UnixNano(q.Until), str(q.Session))
}

// Activity counts messages and tool calls by session, day, tool and result.
func (t usageTable) Activity(q usage.Query) ([]usage.Activity, error) {
	const (
		day   = "date(at / 1000000000 + ?1, 'unixepoch')"
		of    = " AND (?4 = '' OR session = ?4) AND "
		query = "SELECT session, " + day + " AS day, tool, result, count(*) FROM (" +
			"SELECT session, created AS at, '' AS tool, '' AS result FROM item WHERE kind = 'message' AND state IN ('taken', 'done') AND created >= ?2 AND (?3 = 0 OR created < ?3)" + of + itemIntact +
			" UNION ALL SELECT session, updated AS at, name, outcome FROM call WHERE updated >= ?2 AND (?3 = 0 OR updated < ?3)" + of + callIntact +
			") AS x GROUP BY session, day, tool, result ORDER BY session, day, tool, result"
	)
	return Collect(t.c, func(r *Row) (usage.Activity, error) {
		return usage.Activity{
			Session: chela.SessionKey(r.Text()),
			Day:     r.Text(),
			Tool:    r.Text(),
			Result:  r.Text(),
			Count:   r.Int(),
		}, nil
	}, query, int64(q.Offset/time.Second), q.Since, UnixNano(q.Until), str(q.Session))
}

// OfRun returns the total of one run. It finds the rows by time, to avoid an index
// that every turn would write; one minute of tolerance allows for a clock that was
// set back.
func (t usageTable) OfRun(id chela.RunID) (usage.Sum, error) {
	var s usage.Sum
	_, err := t.c.One(func(r *Row) error {
		scanSum(r, &s)
		return nil
	}, "SELECT "+sums+
		" FROM usage WHERE run = ?1 AND n >= coalesce((SELECT started - 60000000000 FROM run WHERE id = ?1), 0) AND "+
		usageIntact, str(id))
	return s, err
}

// Committed returns the amount spent or held in a scope.
func (t usageTable) Committed(scope string) (int64, error) {
	return t.c.Number("SELECT CAST(coalesce(sum(spent), 0) AS BIGINT) FROM hold WHERE scope = ?", scope)
}

// Held returns the amount that is held in a scope and not settled.
func (t usageTable) Held(scope string) (int64, error) {
	return t.c.Number("SELECT CAST(coalesce(sum(spent), 0) AS BIGINT) FROM hold WHERE scope = ? AND settled = 0", scope)
}

// OfTree returns the usage of a run and of all runs below it. Like OfRun it finds the
// rows by time.
func (t usageTable) OfTree(root chela.RunID) ([]usage.Sum, error) {
	const query = "SELECT run, session, provider, model, " + sums + ` FROM usage
WHERE (run = ?1 OR run IN (SELECT id FROM run WHERE root = ?1))
AND n >= coalesce((SELECT started - 60000000000 FROM run WHERE id = ?1), 0) AND ` + usageIntact + `
GROUP BY run, session, provider, model ORDER BY min(n)`
	return Collect(t.c, func(r *Row) (usage.Sum, error) {
		s := usage.Sum{Run: chela.RunID(r.Text()), Session: chela.SessionKey(r.Text()), Provider: r.Text(), Model: r.Text()}
		scanSum(r, &s)
		return s, nil
	}, query, str(root))
}

// PutHold stores a hold, one row for each of its scopes.
func (t usageTable) PutHold(h usage.Hold) error {
	for _, s := range h.Scopes {
		n, err := t.c.Exec("INSERT INTO hold (id, run, scope, nano, spent, settled, created) VALUES (?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING",
			h.ID, str(h.Run), s.Name, h.Nano, h.Nano, h.Created)
		if err != nil {
			return fmt.Errorf("hold %s: %w", h.ID, err)
		}
		if n == 0 {
			return chela.Errorf(chela.CodeConflict, "hold %s: exists already", h.ID)
		}
	}
	return nil
}

// SettleHold replaces a hold by the amount spent.
func (t usageTable) SettleHold(id string, nano int64) error {
	n, err := t.c.Exec("UPDATE hold SET spent = ?, settled = 1 WHERE id = ? AND settled = 0 AND intact(n, id, run, scope, nano, spent, settled, created, crc)", nano, id)
	if err == nil && n == 0 {
		err = chela.Errorf(chela.CodeConflict, "hold %s: is settled or does not exist", id)
	}
	return err
}

// PruneHolds deletes holds created before tm.
func (t usageTable) PruneHolds(tm time.Time) (int, error) {
	return t.c.Exec("DELETE FROM hold WHERE created < ?", tm)
}
