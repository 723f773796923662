package table

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
)

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
	"run":        "id session transcript agent lane state model kind parent root replaces stop failure",
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

// Texts is a table with columns of texts.
type Texts struct {
	Table   string
	Key     string // the column with the number of a row
	Columns []string
}

// session returns the column with the session that a row belongs to; "": none.
func (t Texts) session() string {
	switch {
	case t.Table == "session":
		return "key"
	case slices.Contains(t.Columns, "session"):
		return "session"
	}
	return ""
}

// Fixed returns the columns of texts that identify something or are names of states.
func (t Texts) Fixed() []string { return strings.Fields(fixedColumns[t.Table]) }

// ScanTexts returns the tables of a query for pairs of a table and a column of texts, and
// the column with the number of its rows. The pairs of a table are adjacent.
func ScanTexts(c *Tables, sql string) ([]Texts, error) {
	var list []Texts
	err := c.Query(func(r *Row) error {
		table, column, key := r.Text(), r.Text(), r.Text()
		if len(list) == 0 || list[len(list)-1].Table != table {
			list = append(list, Texts{Table: table, Key: key})
		}
		t := &list[len(list)-1]
		t.Columns = append(t.Columns, column)
		return nil
	}, sql)
	return list, err
}

// EachText implements [store.Texts] for a store with tables, which list returns.
func EachText(ctx context.Context, s store.Store, list func(*Tables) ([]Texts, error), f func(store.Text) error) error {
	return s.View(ctx, func(r store.Reader) error {
		c := r.(Reader).C
		tables, err := list(c)
		if err != nil {
			return err
		}
		return eachText(c, tables, f)
	})
}

// ReplaceTexts implements [store.Texts] likewise.
func ReplaceTexts(ctx context.Context, s store.Store, list func(*Tables) ([]Texts, error),
	texts []store.Replacement) (n int, err error) {
	err = s.Update(ctx, store.Synced, func(t store.Tx) error {
		c := t.(Tx).C
		tables, err := list(c)
		if err == nil {
			n, err = replaceTexts(c, tables, texts)
		}
		return err
	})
	return n, err
}

// eachText calls f with the texts of tables, until it returns an error.
func eachText(c *Tables, tables []Texts, f func(store.Text) error) error {
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
}

// sessionKeys returns the sessions of the transcripts by their numbers.
func sessionKeys(c *Tables) (map[int64]chela.SessionKey, error) {
	m := map[int64]chela.SessionKey{}
	err := c.Query(func(r *Row) error {
		n := r.Int()
		m[n] = chela.SessionKey(r.Text())
		return nil
	}, `SELECT t.n, s.key FROM transcript AS t JOIN session AS s ON s.id = t.id
UNION ALL SELECT t.n, p.session FROM transcript AS t JOIN past AS p ON p.id = t.id`)
	return m, err
}

// each calls f with the texts of a table.
func (t Texts) each(c *Tables, sessions map[int64]chela.SessionKey, f func(store.Text) error) error {
	session, fixed := t.session(), t.Fixed()
	return c.Query(func(r *Row) error {
		text := store.Text{Table: t.Table, Row: r.Int()}
		if t.Table == "entry" {
			text.Session = sessions[text.Row>>SeqBits]
		}
		values := make([]string, len(t.Columns))
		for i, column := range t.Columns {
			values[i] = r.Text()
			switch column {
			case session:
				text.Session = chela.SessionKey(values[i])
			case "id":
				text.ID = values[i]
			}
		}
		for i, column := range t.Columns {
			if text.Column, text.Value = column, values[i]; text.Value == "" {
				continue
			}
			text.Fixed = slices.Contains(fixed, column)
			if err := f(text); err != nil {
				return err
			}
		}
		return nil
	}, fmt.Sprintf("SELECT %s, %s FROM %s", t.Key, strings.Join(t.Columns, ", "), t.Table))
}

// replaceTexts replaces texts that have not changed, and returns how many.
func replaceTexts(c *Tables, tables []Texts, texts []store.Replacement) (int, error) {
	n := 0
	for _, r := range texts {
		i := slices.IndexFunc(tables, func(t Texts) bool { return t.Table == r.Table })
		if i < 0 || !slices.Contains(tables[i].Columns, r.Column) || slices.Contains(tables[i].Fixed(), r.Column) {
			return n, fmt.Errorf("no texts to be replaced in the column %s of %s", r.Column, r.Table)
		}
		k, err := c.Exec(fmt.Sprintf("UPDATE %s SET %s = ? WHERE %s = ? AND %s = ?", r.Table, r.Column, tables[i].Key,
			r.Column), r.New, r.Row, r.Value)
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}
