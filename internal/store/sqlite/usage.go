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
	last, err := t.c.number("SELECT max(n) FROM usage WHERE n >= ?", v.Time)
	if err != nil {
		return err
	}
	_, err = t.c.exec(`INSERT INTO usage (n, run, session, agent, provider, model, time, input, output, cache_read, cache_write, estimated, cost, priced)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		max(unixNano(v.Time), last+1), str(v.Run), str(v.Session), str(v.Agent), v.Provider, v.Model, v.Time, v.Tokens.Input, v.Tokens.Output,
		v.Tokens.CacheRead, v.Tokens.CacheWrite, v.Tokens.Estimated, v.NanoUSD, v.Priced)
	return err
}

func scanSum(r *row, s *usage.Sum) {
	s.Calls = r.int()
	s.Tokens.Input, s.Tokens.Output, s.Tokens.CacheRead, s.Tokens.CacheWrite = r.int(), r.int(), r.int(), r.int()
	s.Tokens.Estimated = r.bool()
	s.NanoUSD, s.Unpriced = r.int(), r.int()
}

// Daily returns sums by day and model since tm, oldest first; of one session,
// or of all for the empty key.
func (t spent) Daily(key chela.SessionKey, since time.Time) ([]usage.Sum, error) {
	const day = "SELECT date(time / 1000000000, 'unixepoch') AS day, provider, model, " + sums + " FROM usage WHERE n >= ?1 AND time >= ?1"
	const group = " GROUP BY day, provider, model ORDER BY day, provider, model"
	var list []usage.Sum
	add := func(r *row) error {
		s := usage.Sum{Day: r.text(), Provider: r.text(), Model: r.text()}
		scanSum(r, &s)
		list = append(list, s)
		return nil
	}
	if key == "" {
		err := t.c.query(add, day+group, since)
		return list, err
	}
	err := t.c.query(add, day+" AND session = ?2"+group, since, str(key))
	return list, err
}

// OfRun returns the total of one run.
func (t spent) OfRun(id chela.RunID) (usage.Sum, error) {
	var s usage.Sum
	_, err := t.c.one(func(r *row) error {
		scanSum(r, &s)
		return nil
	}, "SELECT "+sums+" FROM usage WHERE run = ?", str(id))
	return s, err
}
