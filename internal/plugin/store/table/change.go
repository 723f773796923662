package table

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
)

// changes is the table of the journal.
type changes struct{ c *Tables }

var _ journal.Table = changes{}

const changeIntact = "intact(n, id, time, home, unit, target, state, kept, change, crc)"

func (t changes) list(where string, args ...any) ([]journal.Change, error) {
	return Collect(t.c, func(r *Row) (journal.Change, error) {
		seq := r.Int()
		c, err := ScanJSON[journal.Change](r)
		c.Seq = seq
		return c, err
	}, "SELECT n, change, "+changeIntact+" FROM change WHERE "+where, args...)
}

// Get returns a change by its id.
func (t changes) Get(id string) (journal.Change, error) { return get(t.list, "change", "id = ?", id) }

// List returns changes, newest first.
func (t changes) List(q journal.Query) ([]journal.Change, error) {
	where, args := []string{"TRUE"}, []any{}
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if q.Agent != "" {
		add("json_extract(change, '$.agent') = ?", str(q.Agent))
	}
	if q.Home != "" {
		add("home = ?", str(q.Home))
	}
	if q.Run != "" {
		add("json_extract(change, '$.run') = ?", str(q.Run))
	}
	if q.Unit != "" {
		add("unit = ?", q.Unit)
	}
	if q.Target != "" {
		add("target = ?", q.Target)
	}
	if q.Below != "" {
		add("target >= ? AND target < ?", below(q.Below)...)
	}
	if !q.Since.IsZero() {
		add("time >= ?", q.Since)
	}
	if !q.Until.IsZero() {
		add("time < ?", q.Until)
	}
	if q.Before > 0 {
		add("n < ?", q.Before)
	}
	if q.Limit == 0 {
		q.Limit = noLimit
	}
	return t.list(strings.Join(where, " AND ")+" ORDER BY n DESC LIMIT ?", append(args, q.Limit)...)
}

// below returns the limits of the paths in a folder.
func below(folder string) []any {
	folder = strings.TrimSuffix(folder, string(filepath.Separator))
	return []any{folder + string(filepath.Separator), folder + string(filepath.Separator+1)}
}

// Open returns the changes that are planned, oldest first.
func (t changes) Open() ([]journal.Change, error) {
	return t.list("state = 'planned' ORDER BY n")
}

// Latest returns the newest change that was made of each file in a folder.
func (t changes) Latest(folder string) ([]journal.Change, error) {
	return t.list(`n IN (SELECT max(n) FROM change WHERE target >= ? AND target < ? AND state = 'done' GROUP BY target)
AND json_extract(change, '$.kind') = 'file' ORDER BY n`, below(folder)...)
}

// LatestOf returns the newest change that was made of each of some targets.
func (t changes) LatestOf(targets ...string) ([]journal.Change, error) {
	if len(targets) == 0 {
		return nil, nil
	}
	args := make([]any, len(targets))
	for i, target := range targets {
		args[i] = target
	}
	return t.list("n IN (SELECT max(n) FROM change WHERE target IN (?"+strings.Repeat(", ?", len(targets)-1)+
		") AND state = 'done' GROUP BY target) ORDER BY n", args...)
}

// kept returns the number of bytes of the contents in files.
func kept(c journal.Change) int64 { return c.Size() - journal.RowSize }

// Add stores new changes.
func (t changes) Add(list ...journal.Change) error {
	for _, c := range list {
		s, err := encode(c)
		if err != nil {
			return fmt.Errorf("change %s: %w", c.ID, err)
		}
		if _, err := t.c.Exec(
			"INSERT INTO change (id, time, home, unit, target, state, kept, change) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			c.ID, c.Time, str(c.Home), c.Unit, c.Target, str(c.State), kept(c), s); err != nil {
			return err
		}
	}
	return nil
}

// Set replaces a change by id.
func (t changes) Set(c journal.Change) error {
	s, err := encode(c)
	if err != nil {
		return fmt.Errorf("change %s: %w", c.ID, err)
	}
	n, err := t.c.Exec("UPDATE change SET home = ?, unit = ?, state = ?, kept = ?, change = ? WHERE id = ? AND "+
		changeIntact,
		str(c.Home), c.Unit, str(c.State), kept(c), s, c.ID)
	if err == nil && n == 0 {
		err = fmt.Errorf("change %s: %w", c.ID, chela.ErrNotFound)
	}
	return err
}

// Delete deletes changes.
func (t changes) Delete(ids ...string) error {
	for _, id := range ids {
		if _, err := t.c.Exec("DELETE FROM change WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// Prune deletes old changes.
func (t changes) Prune(before time.Time, size int64) (int, error) {
	over, err := t.c.Number("SELECT coalesce(max(n), 0) FROM (SELECT n, sum(kept + ?) OVER (ORDER BY n DESC) AS total FROM change) AS x WHERE total > ?",
		int64(journal.RowSize), size)
	if err != nil {
		return 0, err
	}
	deleted, err := t.c.Exec("DELETE FROM change WHERE n <= ? AND state <> 'planned'", over)
	if err != nil {
		return deleted, err
	}
	const old = "time < ? AND state <> 'planned'"
	last, err := t.list(old+` AND n IN (SELECT max(n) FROM change WHERE state = 'done' GROUP BY target)
AND json_extract(change, '$.kind') = 'file' AND CAST(json_extract(change, '$.after.exists') AS INTEGER) = 1`, before)
	if err != nil {
		return deleted, err
	}
	keep := map[string]bool{}
	for _, c := range last {
		keep[c.ID] = true
		if c.Seen() {
			continue
		}
		c.Before, c.Undoes, c.UndoneBy = c.After, nil, ""
		if err := t.Set(c); err != nil {
			return deleted, err
		}
	}
	ids, err := Collect(t.c, ScanText[string], "SELECT id FROM change WHERE "+old, before)
	if err != nil {
		return deleted, err
	}
	for _, id := range ids {
		if keep[id] {
			continue
		}
		if err := t.Delete(id); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}
