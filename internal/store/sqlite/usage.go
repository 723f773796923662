package sqlite

import (
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/usage"
)

// spent is the table of usage.
type spent struct{ c *conn }

var _ usage.Table = spent{}

const sums = `count(*), sum(input), sum(output), sum(cache_read), sum(cache_write), max(estimated), sum(cost), sum(NOT priced)`

// Add stores a row.
func (t spent) Add(v usage.Row) error {
	_, err := t.c.exec(`INSERT INTO usage (time, run, session, agent, provider, model, input, output, cache_read, cache_write, estimated, cost, priced, n)
VALUES (?1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ifnull((SELECT max(n) + 1 FROM usage WHERE n >= ?1), ?1))`,
		v.Time, str(v.Run), str(v.Session), str(v.Agent), v.Provider, v.Model, v.Tokens.Input, v.Tokens.Output,
		v.Tokens.CacheRead, v.Tokens.CacheWrite, v.Tokens.Estimated, v.NanoUSD, v.Priced)
	return err
}

func scanSum(r *row, s *usage.Sum) {
	s.Calls = r.int()
	s.Tokens.Input, s.Tokens.Output, s.Tokens.CacheRead, s.Tokens.CacheWrite = r.int(), r.int(), r.int(), r.int()
	s.Tokens.Estimated = r.bool()
	s.NanoUSD, s.Unpriced = r.int(), r.int()
}

// Sums returns sums by day and model, oldest first.
func (t spent) Sums(q usage.Query) ([]usage.Sum, error) {
	const query = "SELECT date(time / 1000000000 + ?1, 'unixepoch') AS day, CASE WHEN ?2 THEN session ELSE '' END AS of, provider, model, " + sums +
		" FROM usage WHERE n >= ?3 AND time >= ?3 AND (?4 = 0 OR time < ?4) AND (?5 = '' OR session = ?5)" +
		" GROUP BY of, day, provider, model ORDER BY of, day, provider, model"
	var list []usage.Sum
	err := t.c.query(func(r *row) error {
		s := usage.Sum{Day: r.text(), Session: chela.SessionKey(r.text()), Provider: r.text(), Model: r.text()}
		scanSum(r, &s)
		list = append(list, s)
		return nil
	}, query, int64(q.Offset/time.Second), q.BySession, q.Since, unixNano(q.Until), str(q.Session))
	return list, err
}

// OfRun returns the total of one run. Its rows are found by their time, with a
// minute for a clock that was set back: an index would be written by every turn.
func (t spent) OfRun(id chela.RunID) (usage.Sum, error) {
	var s usage.Sum
	_, err := t.c.one(func(r *row) error {
		scanSum(r, &s)
		return nil
	}, "SELECT "+sums+" FROM usage WHERE run = ?1 AND n >= ifnull((SELECT started - 60000000000 FROM run WHERE id = ?1), 0)", str(id))
	return s, err
}
