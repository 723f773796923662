package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
)

var _ store.Texts = (*DB)(nil)

// fixedColumns are the columns of texts that identify something or are names of states.
// All other columns of texts contain what people, models and tools wrote.
var fixedColumns = map[string]string{
	"setting":    "name",
	"transcript": "id",
	"lease":      "name owner",
	"session":    "key id agent",
	"past":       "session id reason",
	"approval":   "id session run tool hash decision",
	"item":       "id key session kind state run owner parent root",
	"call":       "id run session wire name state effect approval who decision rule",
	"usage":      "run session agent provider model",
	"outbox":     "key run session reply_to state platform",
	"run":        "id session transcript agent lane state model kind parent root replaces stop",
	"entry":      "id kind run role provider model stop call tool sender item voids",
	"device":     "id",
	"guest":      "channel account id",
	"beat":       "owner",
	"hold":       "id run scope",
	"child":      "id session requester",
	"job":        "id",
	"job_run":    "job id",
	"wake":       "session",
	"heartbeat":  "agent",
	"change":     "id home unit target state",
	"invocation": "key",
}

// textTable is a table with columns of texts.
type textTable struct {
	name    string
	columns []string
	id      bool // it has a column id
	session string
}

// textTables returns the tables with columns of texts. beat has no rowid and no texts but
// ids of processes.
func textTables(c *conn) ([]textTable, error) {
	var list []textTable
	err := c.query(func(r *row) error {
		table, column := r.text(), r.text()
		if len(list) == 0 || list[len(list)-1].name != table {
			list = append(list, textTable{name: table})
		}
		t := &list[len(list)-1]
		t.columns = append(t.columns, column)
		t.id = t.id || column == "id"
		switch {
		case column == "session", table == "session" && column == "key":
			t.session = column
		}
		return nil
	}, `SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'beat' AND c.type = 'TEXT' ORDER BY m.name, c.cid`)
	return list, err
}

// Texts implements [store.Texts].
func (d *DB) Texts(ctx context.Context, f func(store.Text) error) error {
	return d.View(ctx, func(r store.Reader) error {
		c := r.(reader).c
		tables, err := textTables(c)
		if err != nil {
			return err
		}
		sessions, err := sessionKeys(c)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if err := t.each(c, sessions, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// sessionKeys returns the sessions of the transcripts by their numbers.
func sessionKeys(c *conn) (map[int64]chela.SessionKey, error) {
	m := map[int64]chela.SessionKey{}
	err := c.query(func(r *row) error {
		n := r.int()
		m[n] = chela.SessionKey(r.text())
		return nil
	}, `SELECT t.n, s.key FROM transcript AS t JOIN session AS s ON s.id = t.id
UNION ALL SELECT t.n, p.session FROM transcript AS t JOIN past AS p ON p.id = t.id`)
	return m, err
}

// each calls f with the texts of a table.
func (t textTable) each(c *conn, sessions map[int64]chela.SessionKey, f func(store.Text) error) error {
	fixed := strings.Fields(fixedColumns[t.name])
	return c.query(func(r *row) error {
		text := store.Text{Table: t.name, Row: r.int()}
		if t.name == "entry" {
			text.Session = sessions[text.Row>>32]
		}
		values := make([]string, len(t.columns))
		for i, column := range t.columns {
			values[i] = r.text()
			switch column {
			case t.session:
				text.Session = chela.SessionKey(values[i])
			case "id":
				text.ID = values[i]
			}
		}
		for i, column := range t.columns {
			if text.Column, text.Value = column, values[i]; text.Value == "" {
				continue
			}
			text.Fixed = slices.Contains(fixed, column)
			if err := f(text); err != nil {
				return err
			}
		}
		return nil
	}, fmt.Sprintf("SELECT rowid, %s FROM %s", strings.Join(t.columns, ", "), t.name))
}

// Replace implements [store.Texts].
func (d *DB) Replace(ctx context.Context, texts []store.Replacement) (n int, err error) {
	err = d.Update(ctx, store.Synced, func(t store.Tx) error {
		n = 0
		c := t.(tx).c
		tables, err := textTables(c)
		if err != nil {
			return err
		}
		for _, r := range texts {
			i := slices.IndexFunc(tables, func(t textTable) bool { return t.name == r.Table })
			if i < 0 || !slices.Contains(tables[i].columns, r.Column) || slices.Contains(strings.Fields(fixedColumns[r.Table]), r.Column) {
				return fmt.Errorf("no texts to be replaced in the column %s of %s", r.Column, r.Table)
			}
			k, err := c.exec(fmt.Sprintf("UPDATE %s SET %s = ? WHERE rowid = ? AND %s = ?", r.Table, r.Column, r.Column), r.New, r.Row, r.Value)
			if err != nil {
				return err
			}
			n += k
		}
		return nil
	})
	return n, err
}

// Scrub implements [store.Texts]. What was deleted or replaced in the database is
// overwritten (secure_delete), so that only the log contains it, which is emptied.
func (d *DB) Scrub(ctx context.Context) error {
	if err := d.Damage(); err != nil {
		return err
	}
	d.readers.drop() // an idle reader does not block, but it keeps pages in memory
	c, err := dialExisting(d.opts.Path, d.opts.VFS)
	if err != nil {
		return d.explain(err)
	}
	defer c.Close()
	if err := c.script(ctx, common); err != nil {
		return d.explain(err)
	}
	for {
		blocked := int64(0)
		_, err := c.one(func(r *row) error { blocked = r.int(); return nil }, "PRAGMA wal_checkpoint(TRUNCATE)")
		switch {
		case err != nil:
			return d.explain(err)
		case blocked == 0:
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("empty the log of the database: %w", err)
		}
	}
}
