package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store/sqlite/page"
)

// Report says what a salvage found.
type Report struct {
	Pages   int                // of the file
	Bad     int                // pages and rows that could not be read
	Rows    map[string]int     // that were saved, by table
	Damaged []chela.SessionKey // sessions of which something is missing; what is left of them is there
	Loose   []string           // transcripts of which the session is not known; they are there under these ids
	Kept    string             // where [Recover] left the damaged file
}

// Salvage copies what can be read of the damaged database in the file src to a
// new one, dst, which must not exist. It does not change src, which nobody has
// open. It needs no schema and no index: it looks for rows on every page, so
// that a page that is gone costs the rows on it and no others.
func Salvage(ctx context.Context, src, dst string) (Report, error) {
	report := Report{Rows: make(map[string]int)}
	if _, err := os.Stat(dst); !errors.Is(err, fs.ErrNotExist) {
		return report, fmt.Errorf("salvage: %s is there", dst)
	}
	p, err := page.Open(src)
	if err != nil {
		return report, fmt.Errorf("salvage: %w", err)
	}
	defer p.Close()
	report.Pages = p.Pages()
	temp := dst + ".part"
	if err := removeDatabase(temp); err != nil {
		return report, err
	}
	defer func() { _ = removeDatabase(temp) }()
	if err := rebuild(ctx, p, temp, &report); err != nil {
		return report, fmt.Errorf("salvage: %w", err)
	}
	return report, atomicfile.Settle(temp, dst)
}

// Recover salvages the damaged database in the file path, which nobody has
// open, and puts the outcome in its place. The damaged file is kept.
func Recover(ctx context.Context, path string) (Report, error) {
	temp := path + ".salvaged"
	if err := removeDatabase(temp); err != nil {
		return Report{}, err
	}
	report, err := Salvage(ctx, path, temp)
	if err != nil {
		return report, err
	}
	if report.Kept, err = aside(path); err != nil {
		return report, fmt.Errorf("keep the damaged database: %w", err)
	}
	return report, atomicfile.Settle(temp, path)
}

func removeDatabase(path string) error {
	for _, suffix := range [...]string{"-wal", "-shm", ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rebuild makes a database of the version that the rows were written in, fills
// it, and brings it up to date.
func rebuild(ctx context.Context, p *page.File, path string, report *Report) error {
	steps, err := schema()
	if err != nil {
		return err
	}
	version := p.Version()
	if version < 1 || version > int64(len(steps)) {
		version = int64(len(steps))
	}
	if err := atomicfile.Create(path); err != nil {
		return err
	}
	c, err := dial(path, "")
	if err != nil {
		return err
	}
	defer c.Close()
	// The file is synced as a whole when it is done.
	if err := c.script(ctx, common+"PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF"); err != nil {
		return err
	}
	for i, sql := range steps[:version] {
		if err := step(c, sql, int64(i+1)); err != nil {
			return err
		}
	}
	if err := c.script(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := fillFrom(ctx, p, c, report); err != nil {
		return err
	}
	if err := mendSessions(c, report); err != nil {
		return err
	}
	if err := c.script(ctx, "COMMIT"); err != nil {
		return err
	}
	for i, sql := range steps[version:] {
		if err := step(c, sql, version+int64(i)+1); err != nil {
			return err
		}
	}
	return nil
}

// table is where rows with a number of columns belong.
type table struct {
	name   string
	insert string
	types  []string // of the columns
	names  []string // likewise
	key    int      // column that is the rowid, -1: none
}

// tables returns the tables by their number of columns, in which they differ.
func tables(c *conn) (map[int]*table, error) {
	byColumns := make(map[int]*table)
	var all []*table
	err := c.query(func(r *row) error {
		name, column, kind, key := r.text(), r.text(), r.text(), r.bool()
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, &table{name: name, key: -1})
		}
		t := all[len(all)-1]
		if key && kind == "INTEGER" {
			t.key = len(t.types)
		}
		t.types = append(t.types, kind)
		t.names = append(t.names, column)
		t.insert += ", " + column
		return nil
	}, `SELECT m.name, i.name, i.type, i.pk FROM sqlite_schema m, pragma_table_info(m.name) i
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, i.cid`)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		n := len(t.types)
		if byColumns[n] != nil {
			return nil, fmt.Errorf("tables %s and %s have %d columns each", t.name, byColumns[n].name, n)
		}
		t.insert = "INSERT OR IGNORE INTO " + t.name + " (" + t.insert[2:] + ") VALUES (" + strings.Repeat("?, ", n-1) + "?)"
		byColumns[n] = t
	}
	return byColumns, nil
}

// fillFrom puts the rows where they belong.
func fillFrom(ctx context.Context, p *page.File, c *conn, report *Report) error {
	byColumns, err := tables(c)
	if err != nil {
		return err
	}
	for r, err := range p.Rows() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			report.Bad++
			continue
		}
		t := byColumns[len(r.Values)]
		if t == nil { // of the schema
			continue
		}
		if !t.takes(&r) {
			report.Bad++
			continue
		}
		n, err := c.exec(t.insert, r.Values...)
		if err != nil && fatal(err) {
			return err
		}
		if err != nil || n == 0 { // not what a row may be, or a second one
			report.Bad++
			continue
		}
		report.Rows[t.name]++
	}
	return nil
}

// readable reports whether a text is what those who read a column of that name,
// in whatever table, take: JSON that a flipped bit broke would be met by every
// one of them.
func readable(column, text string) bool {
	var v any
	switch column {
	case "meta":
		v = new(session.Meta)
	case "principal":
		v = new(chela.Principal)
	case "inbound":
		v = new(chela.Inbound)
	case "address":
		v = new(chela.Address)
	case "device", "media", "parts", "request":
		v = new(json.RawMessage)
	default:
		return true
	}
	return text == "" || utf8.ValidString(text) && json.Unmarshal([]byte(text), v) == nil
}

// takes reports whether the values are of the columns' types, and puts the
// rowid where it belongs.
func (t *table) takes(r *page.Row) bool {
	if t.key >= 0 {
		if r.Values[t.key] != nil {
			return false
		}
		r.Values[t.key] = r.ID
	}
	for i, v := range r.Values {
		_, number := v.(int64)
		if v != nil && number != (t.types[i] == "INTEGER") {
			return false
		}
		if text, ok := v.(string); ok && !readable(t.names[i], text) {
			return false
		}
	}
	return true
}

// lostText is shown where entries are missing.
const lostText = "A part of this conversation was lost when the database was damaged."

// mendSessions makes of the saved rows what the program relies on, and names
// the sessions of which something is missing.
func mendSessions(c *conn, report *Report) error {
	for _, f := range [...]func(*conn, *Report) error{nameTranscripts, restoreSessions, closeGaps, forgetDevices} {
		if err := f(c, report); err != nil {
			return err
		}
	}
	slices.Sort(report.Damaged)
	report.Damaged = slices.Compact(report.Damaged)
	_, err := c.exec("UPDATE session AS s SET entries = " + entriesOf)
	return err
}

// nameTranscripts gives transcripts whose name is lost another.
func nameTranscripts(c *conn, report *Report) error {
	_, err := c.exec(`INSERT INTO transcript (n, id, created)
SELECT DISTINCT pos >> 32, 'salvaged-' || (pos >> 32), 0 FROM entry WHERE pos >> 32 NOT IN (SELECT n FROM transcript)`)
	if err != nil {
		return err
	}
	return c.query(func(r *row) error {
		report.Loose = append(report.Loose, r.text())
		return nil
	}, `SELECT id FROM transcript WHERE id NOT IN (SELECT id FROM session UNION SELECT id FROM past UNION SELECT transcript FROM run) ORDER BY n`)
}

// restoreSessions makes the rows of sessions that are known from their runs
// only. What was set for them is lost.
func restoreSessions(c *conn, report *Report) error {
	var lost []session.Meta
	if err := c.query(func(r *row) error {
		lost = append(lost, session.Meta{
			Key: chela.SessionKey(r.text()), ID: r.text(), Agent: chela.AgentID(r.text()), Created: r.time(), Updated: r.time(),
		})
		return nil
	}, `SELECT session, transcript, agent, min(started), max(started) FROM run
WHERE session NOT IN (SELECT key FROM session) GROUP BY session ORDER BY session`); err != nil {
		return err
	}
	for _, m := range lost {
		m.Started, m.Active = m.Created, m.Updated
		if err := (sessions{c}).Put(m); err != nil {
			return err
		}
		report.Damaged = append(report.Damaged, m.Key)
	}
	return c.query(func(r *row) error {
		report.Damaged = append(report.Damaged, chela.SessionKey(r.text()))
		return nil
	}, `SELECT session FROM lease WHERE owner <> '' AND session NOT IN (SELECT key FROM session) ORDER BY session`)
}

// closeGaps numbers the entries of transcripts anew where some are missing,
// and says so at their end.
func closeGaps(c *conn, report *Report) error {
	type gap struct {
		n   int64
		id  string
		key chela.SessionKey
	}
	var gaps []gap
	if err := c.query(func(r *row) error {
		gaps = append(gaps, gap{r.int(), r.text(), chela.SessionKey(r.text())})
		return nil
	}, `WITH have AS (SELECT pos >> 32 AS n, count(*) AS entries, max(pos) - (pos >> 32 << 32) AS last FROM entry GROUP BY pos >> 32),
owner AS (SELECT id, key, entries FROM session UNION ALL SELECT id, session, entries FROM past)
SELECT ifnull(t.n, 0), o.id, o.key FROM owner o LEFT JOIN transcript t ON t.id = o.id LEFT JOIN have h ON h.n = t.n
WHERE ifnull(h.entries, 0) < max(o.entries, ifnull(h.last, 0)) ORDER BY o.key`); err != nil {
		return err
	}
	for _, g := range gaps {
		report.Damaged = append(report.Damaged, g.key)
		if g.n > 0 {
			if err := renumber(c, g.n); err != nil {
				return err
			}
		}
		e := &session.Entry{ID: fmt.Sprintf("lost-%d", g.n), Kind: session.KindNotice, Time: time.Now(), Text: lostText}
		if err := (sessions{c}).Append(g.id, e); err != nil {
			return err
		}
	}
	return nil
}

// renumber closes the gaps of a transcript. A cut moves with what it is about.
func renumber(c *conn, n int64) error {
	base := n << seqBits
	var have []int64
	if err := c.query(func(r *row) error {
		have = append(have, r.int()-base)
		return nil
	}, "SELECT pos FROM entry WHERE pos > ? AND pos < ? ORDER BY pos", base, base+1<<seqBits); err != nil {
		return err
	}
	for i, seq := range have {
		if seq == int64(i+1) {
			continue
		}
		if _, err := c.exec("UPDATE entry SET pos = ? WHERE pos = ?", base+int64(i+1), base+seq); err != nil {
			return err
		}
	}
	cuts := make(map[int64]int64)
	if err := c.query(func(r *row) error {
		pos, first := r.int(), r.int()
		i, _ := slices.BinarySearch(have, first)
		cuts[pos] = int64(i + 1)
		return nil
	}, "SELECT pos, first FROM entry WHERE pos > ? AND pos < ? AND first > 0", base, base+1<<seqBits); err != nil {
		return err
	}
	for pos, first := range cuts {
		if _, err := c.exec("UPDATE entry SET first = ? WHERE pos = ?", first, pos); err != nil {
			return err
		}
	}
	return nil
}
