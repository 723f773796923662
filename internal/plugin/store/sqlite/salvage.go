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

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/page"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// Report is the result of a salvage.
type Report struct {
	Pages    int                // pages of the file
	Bad      int                // unreadable pages and rows
	Changed  int                // rows left out because they do not match their checksums
	Rows     map[string]int     // recovered rows by table
	Damaged  []chela.SessionKey // sessions with missing rows
	Orphaned []string           // ids of recovered transcripts without a session
	Renamed  string             // path of the damaged file after [Recover] renamed it
}

// Salvage copies the readable rows of the damaged database src to a new database
// dst, which must not exist. It does not change src, which must not be open. It
// does not use indexes but reads the rows of every page, so that only the rows of a
// damaged page are lost. If the pages that lead to a row are damaged, the row is
// assigned to the only table that it fits. A row that does not match its checksum is
// left out.
func Salvage(ctx context.Context, src, dst string) (Report, error) {
	report := Report{Rows: make(map[string]int)}
	if _, err := os.Stat(dst); !errors.Is(err, fs.ErrNotExist) {
		return report, fmt.Errorf("salvage: %s exists already", dst)
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
	return report, atomicfile.Rename(temp, dst)
}

// Recover replaces the damaged database path, which must not be open, by its
// readable rows. The damaged file is renamed, not deleted. A missing database is like
// an empty one.
func Recover(ctx context.Context, path string) (Report, error) {
	if err := atomicfile.Create(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return Report{}, err
	}
	temp := path + ".salvaged"
	if err := removeDatabase(temp); err != nil {
		return Report{}, err
	}
	report, err := Salvage(ctx, path, temp)
	if err != nil {
		return report, err
	}
	if report.Renamed, err = renameOld(path); err != nil {
		return report, fmt.Errorf("rename the damaged database: %w", err)
	}
	return report, atomicfile.Rename(temp, path)
}

func removeDatabase(path string) error {
	for _, suffix := range [...]string{"-wal", "-shm", ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rebuild creates a database with the schema version of the rows, inserts the rows,
// and migrates it.
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
	// The file is synced once, when it is complete.
	if err := c.script(ctx, common+"PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF"); err != nil {
		return err
	}
	if version == int64(len(steps)) {
		err = create(c, path, steps)
	} else {
		err = migrate(c, path, steps[:version])
	}
	if err != nil {
		return err
	}
	if err := c.script(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := fillFrom(ctx, p, c, report); err != nil {
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
	if err := c.script(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := repairSessions(c, report); err != nil {
		return err
	}
	return c.script(ctx, "COMMIT")
}

// rowTable is a table with rowids.
type rowTable struct {
	name  string
	types []string // types of the columns
	names []string // names of the columns
	key   int      // index of the rowid column, -1 if there is none
}

// insert returns the statement that inserts a row of n values. The other columns
// were added later and have defaults.
func (t *rowTable) insert(n int) string {
	return "INSERT OR IGNORE INTO " + t.name + " (" + strings.Join(t.names[:n], ", ") + ") VALUES (" + params(n) + ")"
}

// params returns n parameters.
func params(n int) string { return strings.Repeat("?, ", n-1) + "?" }

// tables returns the tables with rowids.
func tables(c *conn) ([]*rowTable, error) {
	var all []*rowTable
	err := c.Query(func(r *table.Row) error {
		name, column, kind, key := r.Text(), r.Text(), r.Text(), r.Bool()
		if len(all) == 0 || all[len(all)-1].name != name {
			all = append(all, &rowTable{name: name, key: -1})
		}
		t := all[len(all)-1]
		if key && kind == "INTEGER" {
			t.key = len(t.types)
		}
		t.types = append(t.types, kind)
		t.names = append(t.names, column)
		return nil
	}, `SELECT m.name, i.name, i.type, i.pk FROM sqlite_schema m, pragma_table_xinfo(m.name) i
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.sql NOT LIKE '%WITHOUT ROWID' ORDER BY m.name, i.cid`)
	return all, err
}

// fillFrom inserts the readable rows into their tables.
func fillFrom(ctx context.Context, p *page.File, c *conn, report *Report) error {
	all, err := tables(c)
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
		if r.Table == page.Schema {
			continue
		}
		t := tableOf(all, &r)
		if t == nil {
			report.Bad++
			continue
		}
		if last := len(r.Values) - 1; t.names[last] == "crc" {
			same, err := c.Number("SELECT crc32c("+params(last)+") = ?", r.Values...)
			if err != nil {
				return err
			}
			if same == 0 {
				report.Changed++
				continue
			}
			r.Values = r.Values[:last] // SQLite computes the checksum again
		}
		n, err := c.Exec(t.insert(len(r.Values)), r.Values...)
		if fatal(err) {
			return err
		}
		if err != nil || n == 0 { // a constraint failed, or the row is a duplicate
			report.Bad++
			continue
		}
		report.Rows[t.name]++
	}
	return nil
}

// tableOf returns the table of a row and sets the column that is the rowid; nil if
// the row fits no table. The table of a row that was not reached from the schema is
// the only one that the row fits.
func tableOf(all []*rowTable, r *page.Row) *rowTable {
	var found *rowTable
	for _, t := range all {
		if r.Table != "" && r.Table != t.name || r.Table == "" && len(r.Values) != len(t.types) || !t.accepts(r) {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	if found != nil && found.key >= 0 {
		r.Values[found.key] = r.ID
	}
	return found
}

// validText reports whether text is valid for a column of that name in any table.
// JSON with a flipped bit would fail in every later reader.
func validText(column, text string) bool {
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
	case "origin":
		v = new(chela.Origin)
	case "overrides":
		v = new(run.Overrides)
	case "result":
		v = new(queue.Result)
	case "voids":
		v = new(session.Ref)
	case "device", "media", "parts", "request", "rights":
		v = new(json.RawMessage)
	default:
		return true
	}
	return text == "" || utf8.ValidString(text) && json.Unmarshal([]byte(text), v) == nil
}

// accepts reports whether the values match the types of the columns.
func (t *rowTable) accepts(r *page.Row) bool {
	if len(r.Values) == 0 || len(r.Values) > len(t.types) {
		return false
	}
	for i, v := range r.Values {
		if i == t.key && v != nil { // the rowid is not stored twice
			return false
		}
		_, number := v.(int64)
		if v != nil && number != (t.types[i] == "INTEGER") {
			return false
		}
		if text, ok := v.(string); ok && !validText(t.names[i], text) {
			return false
		}
	}
	return true
}

// lostText is the notice that is added to a transcript with missing entries.
const lostText = "A part of this conversation was lost when the database was damaged."

// repairSessions restores the invariants between the recovered rows and reports the
// sessions with missing rows.
func repairSessions(c *conn, report *Report) error {
	for _, f := range [...]func(*conn, *Report) error{nameTranscripts, restoreSessions, fillGaps,
		removeDevices, removeGuests} {
		if err := f(c, report); err != nil {
			return err
		}
	}
	slices.Sort(report.Damaged)
	report.Damaged = slices.Compact(report.Damaged)
	_, err := c.Exec("UPDATE session AS s SET entries = " + entriesOf)
	return err
}

// nameTranscripts assigns new ids to transcripts whose ids are lost.
func nameTranscripts(c *conn, report *Report) error {
	_, err := c.Exec(`INSERT INTO transcript (n, id, created)
SELECT DISTINCT pos >> 32, 'salvaged-' || (pos >> 32), 0 FROM entry WHERE pos >> 32 NOT IN (SELECT n FROM transcript)`)
	if err != nil {
		return err
	}
	report.Orphaned, err = table.Collect(c.Tables, table.ScanText[string],
		`SELECT id FROM transcript WHERE id NOT IN (SELECT id FROM session UNION SELECT id FROM past UNION SELECT transcript FROM run) ORDER BY n`)
	return err
}

// restoreSessions creates the missing rows of sessions that have runs. The settings
// of these sessions are lost.
func restoreSessions(c *conn, report *Report) error {
	missing, err := table.Collect(c.Tables, func(r *table.Row) (session.Meta, error) {
		return session.Meta{
			Key: chela.SessionKey(r.Text()), ID: r.Text(), Agent: chela.AgentID(r.Text()), Created: r.Time(), Updated: r.Time(),
		}, nil
	}, `SELECT session, transcript, agent, min(started), max(started) FROM run
WHERE session NOT IN (SELECT key FROM session) GROUP BY session ORDER BY session`)
	if err != nil {
		return err
	}
	for _, m := range missing {
		m.Started, m.Active = m.Created, m.Updated
		if err := (table.Tx{C: c.Tables}).Sessions().Put(m); err != nil {
			return err
		}
		report.Damaged = append(report.Damaged, m.Key)
	}
	lost, err := table.Collect(c.Tables, table.ScanText[chela.SessionKey],
		`SELECT substr(name, 9) FROM lease WHERE since > 0 AND name LIKE 'session:%' AND substr(name, 9) NOT IN (SELECT key FROM session) ORDER BY name`)
	report.Damaged = append(report.Damaged, lost...)
	return err
}

// fillGaps puts entries in the places of the missing ones of a transcript, so that the
// others keep their places, which other rows and clients refer to. The first one of each gap
// is a notice.
func fillGaps(c *conn, report *Report) error {
	type gap struct {
		n, last int64
		id      string
		key     chela.SessionKey
	}
	gaps, err := table.Collect(c.Tables, func(r *table.Row) (gap, error) {
		return gap{r.Int(), r.Int(), r.Text(), chela.SessionKey(r.Text())}, nil
	}, `WITH have AS (SELECT pos >> 32 AS n, count(*) AS entries, max(pos) - (pos >> 32 << 32) AS last FROM entry GROUP BY pos >> 32),
owner AS (SELECT id, key, entries FROM session UNION ALL SELECT id, session, entries FROM past)
SELECT ifnull(t.n, 0), max(o.entries, ifnull(h.last, 0)), o.id, o.key FROM owner o LEFT JOIN transcript t ON t.id = o.id LEFT JOIN have h ON h.n = t.n
WHERE ifnull(h.entries, 0) < max(o.entries, ifnull(h.last, 0)) ORDER BY o.key`)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, g := range gaps {
		report.Damaged = append(report.Damaged, g.key)
		if g.n == 0 { // all entries are lost, with the transcript
			e := &session.Entry{ID: "lost", Kind: session.KindNotice, Time: now, Text: lostText}
			if err := (table.Tx{C: c.Tables}).Sessions().Append(g.id, e); err != nil {
				return err
			}
			continue
		}
		base := g.n << table.SeqBits
		have, err := table.Collect(c.Tables, func(r *table.Row) (int64, error) { return r.Int() - base, nil },
			"SELECT pos FROM entry WHERE pos > ? AND pos < ? ORDER BY pos", base, base+1<<table.SeqBits)
		if err != nil {
			return err
		}
		before := int64(0)
		for _, seq := range append(have, g.last+1) {
			for lost := before + 1; lost < seq; lost++ {
				e := &session.Entry{ID: fmt.Sprintf("lost-%d-%d", g.n, lost), Kind: session.KindVoid, Time: now} // of nothing
				if lost == before+1 {
					e.Kind, e.Text = session.KindNotice, lostText
				}
				if err := c.InsertEntry(base+lost, e); err != nil {
					return err
				}
			}
			before = seq
		}
	}
	return nil
}

// removeDevices deletes the recovered rows of devices that may connect: a row may
// be an old version, written before a grant was revoked. Tombstones stay.
func removeDevices(c *conn, report *Report) error {
	if _, err := c.Exec("DELETE FROM setting WHERE name = ?", table.InvitesKey); err != nil {
		return err
	}
	n, err := c.Exec("DELETE FROM device WHERE removed = 0")
	if report.Rows["device"] -= n; report.Rows["device"] <= 0 {
		delete(report.Rows, "device")
	}
	return err
}

// removeGuests deletes the recovered guests: a row may be an old version, of somebody who
// was excluded since. They can ask again.
func removeGuests(c *conn, report *Report) error {
	_, err := c.Exec("DELETE FROM guest")
	delete(report.Rows, "guest")
	return err
}
