package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/store/storetest"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	steps, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	now := int64(len(steps))
	// prepare creates a database of the current version with one setting.
	prepare := func(t *testing.T) (string, *conn) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "chela.db")
		d, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		mustSet(t, d, "a", "1")
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		c, err := dial(path, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return path, c
	}
	version := func(t *testing.T, c *conn) int64 {
		t.Helper()
		n, err := c.Number("PRAGMA user_version")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Run("the steps lead to the tables of a new database", func(t *testing.T) {
		const tables = `SELECT group_concat(concat_ws(' ', t.name, t.ncol, t.wr, t.strict, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden), char(10) ORDER BY t.name, c.cid)
FROM pragma_table_list t, pragma_table_xinfo(t.name) c WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'`
		const indexes = `SELECT group_concat(concat_ws(' ', m.name, m.tbl_name, m.sql, x.seqno, x.name, x."desc"), char(10) ORDER BY m.tbl_name, m.name, x.seqno)
FROM sqlite_schema m, pragma_index_xinfo(m.name) x WHERE m.type = 'index'`
		_, created := prepare(t)
		path := filepath.Join(t.TempDir(), "chela.db")
		migrated, err := dial(path, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { migrated.Close() })
		if err := migrate(migrated, path, steps); err != nil {
			t.Fatal(err)
		}
		for _, query := range [...]string{tables, indexes} {
			want, err1 := migrated.Text(query)
			got, err2 := created.Text(query)
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); err1 != nil || err2 != nil || diff != "" {
				t.Errorf("migrated and created (-migrated +created): %v, %v\n%s", err1, err2, diff)
			}
		}
	})
	t.Run("a step copies the old database", func(t *testing.T) {
		path, c := prepare(t)
		next := append(steps, "CREATE TABLE x (a); INSERT INTO x VALUES (7)")
		if err := migrate(c, path, next); err != nil {
			t.Fatal(err)
		}
		if v := version(t, c); v != now+1 {
			t.Errorf("version %d, want %d", v, now+1)
		}
		if n, err := c.Number("SELECT a FROM x"); n != 7 {
			t.Errorf("the step: %d, %v", n, err)
		}
		copied := fmt.Sprintf("%s.bak-v%d", path, now)
		checkPrivate(t, path, copied)
		old := openAt(t, copied)
		if v := settingOf(t, old, "a"); v != "1" {
			t.Errorf("in the copy: %q, want 1", v)
		}
	})
	t.Run("no step without a copy of the old database", func(t *testing.T) {
		path, c := prepare(t)
		copied := fmt.Sprintf("%s.bak-v%d", path, now)
		if err := os.MkdirAll(filepath.Join(copied, "x"), 0o700); err != nil { // the copy cannot replace it
			t.Fatal(err)
		}
		if err := migrate(c, path, append(steps, "CREATE TABLE x (a)")); err == nil ||
			!strings.Contains(err.Error(), "copy before migration") {
			t.Errorf("error: %v", err)
		}
		if v := version(t, c); v != now {
			t.Errorf("version %d, want %d", v, now)
		}
	})
	t.Run("a step that fails changes nothing", func(t *testing.T) {
		path, c := prepare(t)
		next := append(steps, "CREATE TABLE x (a); INSERT INTO nowhere VALUES (7)")
		if err := migrate(c, path, next); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("migration %d", now+1)) {
			t.Errorf("error: %v", err)
		}
		if v := version(t, c); v != now {
			t.Errorf("version %d, want %d", v, now)
		}
		if n, err := c.Number("SELECT count(*) FROM sqlite_schema WHERE name = 'x'"); n != 0 || err != nil {
			t.Errorf("the step was applied partially: %v", err)
		}
	})
	t.Run("earlier calls get no invented outcome", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.db")
		c, err := dial(path, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := migrate(c, path, steps[:5]); err != nil {
			t.Fatal(err)
		}
		for _, state := range []string{"closed", "started"} {
			err := c.script(t.Context(), fmt.Sprintf(
				"INSERT INTO call (id, run, session, wire, name, raw, state, effect, approval, detached, updated) VALUES ('%[1]s', 'r', 's', '{}', 'x', '', '%[1]s', 'acts', '', 0, 0)", state))
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := migrate(c, path, steps); err != nil {
			t.Fatal(err)
		}
		n, err := c.Number(
			"SELECT count(*) FROM call WHERE (state, outcome) IN (VALUES ('closed', 'not recorded'), ('started', ''))")
		if n != 2 || err != nil {
			t.Errorf("%d of 2 calls are migrated as expected, %v", n, err)
		}
	})
	t.Run("taken items of an older database are found by their run", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.db")
		c, err := dial(path, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := migrate(c, path, steps[:7]); err != nil {
			t.Fatal(err)
		}
		for _, it := range [...]struct{ id, run string }{{"r", "r"}, {"steered", "r"}, {"other", "other"}} {
			if _, err := c.Exec(`INSERT INTO item (id, session, kind, principal, inbound, call, state, run, note, created)
VALUES (?, 's', 'message', '{}', '{}', '', 'taken', ?, '', 0)`, it.id, it.run); err != nil {
				t.Fatal(err)
			}
		}
		if err := migrate(c, path, steps); err != nil {
			t.Fatal(err)
		}
		if err := (table.Tx{C: c.Tables}).Queue().Finish("r"); err != nil {
			t.Fatal(err)
		}
		left, err := c.Text("SELECT group_concat(id) FROM item WHERE state = 'taken'")
		if left != "other" || err != nil {
			t.Errorf("taken: %q, %v; want only the other run's item", left, err)
		}
	})
	t.Run("rows of version 8 keep their values", func(t *testing.T) {
		path := version8(t, steps)
		if s, err := Verify(t.Context(), path); err != nil || s.Version != 8 {
			t.Errorf("verify, without checksums: %+v, %v", s, err)
		}
		testVersion8(t, path)
	})
	t.Run("recovered rows of version 8 keep their values", func(t *testing.T) {
		path := version8(t, steps)
		report, err := Recover(t.Context(), path)
		if err != nil || report.Bad > 0 || len(report.Damaged) > 0 || len(report.Orphaned) > 0 {
			t.Fatalf("recover: %+v, %v", report, err)
		}
		testVersion8(t, path)
	})
	t.Run("recovered rows get the columns that were added after them", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.db")
		c, err := dial(path, "")
		if err != nil {
			t.Fatal(err)
		}
		const rewrite = "UPDATE call SET rights = '';"
		if !strings.Contains(steps[8], rewrite) {
			t.Fatal("the step does not rewrite the calls")
		}
		err = errors.Join(migrate(c, path, steps[:8]),
			c.script(t.Context(),
				`INSERT INTO call (id, run, session, wire, name, raw, state, effect, approval, detached, updated)
VALUES ('old', 'r', 's', '{}', 'x', '', 'closed', 'acts', '', 0, 0)`),
			step(c, strings.Replace(steps[8], rewrite, "", 1), 9), c.Close())
		if err != nil {
			t.Fatal(err)
		}
		if report, err := Recover(t.Context(), path); err != nil || report.Bad > 0 || report.Rows["call"] != 1 {
			t.Fatalf("recover: %+v, %v", report, err)
		}
		if c, err = dial(path, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if n, err := c.Number("SELECT count(*) FROM call WHERE id = 'old' AND state = 'closed' AND rights = ''"); n != 1 ||
			err != nil {
			t.Errorf("%d calls are as they were, want 1; %v", n, err)
		}
	})
	t.Run("rows of version 18 say in columns what their ids and notes said", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.db")
		c, err := dial(path, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if err := errors.Join(migrate(c, path, steps[:18]), c.script(t.Context(), storetest.Version18),
			migrate(c, path, steps), checkRows(c)); err != nil {
			t.Fatal(err)
		}
		storetest.CheckVersion18(t, table.Reader{C: c.Tables})
	})
	t.Run("a newer database is refused", func(t *testing.T) {
		path, c := prepare(t)
		if err := c.script(t.Context(), "PRAGMA user_version = 99"); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), Options{Path: path})
		if err == nil || !strings.Contains(err.Error(), "version 99") || chela.HintOf(err) == "" {
			t.Errorf("open: %v (hint %q)", err, chela.HintOf(err))
		}
	})
	t.Run("a new database is not copied", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.db")
		openAt(t, path)
		names, err := filepath.Glob(path + ".bak*")
		if err != nil || len(names) > 0 {
			t.Errorf("copies: %v, %v", names, err)
		}
		checkPrivate(t, path, path+"-wal", path+"-shm")
	})
}

// version8 creates a database with schema version 8 and some rows.
func version8(t *testing.T, steps []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chela.db")
	c, err := dial(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate(c, path, steps[:8]); err != nil {
		t.Fatal(err)
	}
	if err := c.script(t.Context(), `
INSERT INTO item (id, session, kind, principal, inbound, call, state, run, note, created) VALUES
 ('m', 's', 'message', '{"id":"owner"}', '{"id":"m","address":{},"text":"hi","think":"high","time":"2026-01-01T00:00:00Z"}', '', 'waiting', '', '', 1),
 ('owed', 's', 'system', '{"id":"owner"}', '{"id":"","address":{},"text":"ended","time":"0001-01-01T00:00:00Z"}', 'call-1', 'owed', '', '', 2),
 ('wake', 's', 'system', '{"id":"owner"}', '{"id":"","address":{},"text":"look","time":"0001-01-01T00:00:00Z"}', '', 'waiting', '', '', 3),
 ('resume', 's', 'resume', '{"id":"owner"}', '{"id":"","address":{},"text":"","time":"0001-01-01T00:00:00Z"}', 'call-1', 'waiting', '', '', 4);
INSERT INTO run (id, session, transcript, agent, trigger, lane, state, principal, address, think, model, attempts, error, text, footer, silent, started, ended, fence) VALUES
 ('r1', 's', 't', 'main', 'user', 'main', 'running', '{"id":"owner"}', '{}', 'low', 'a/b', 1, '', '', '', 0, 1, 0, 3),
 ('r2', 's', 't', 'main', 'system', 'main', 'suspended', '{"id":"owner"}', '{}', '', 'a/b', 1, '', '', '', 0, 2, 0, 2);
INSERT INTO lease (session, owner, fence, run) VALUES ('s', 'process-1', 3, 'r1');
INSERT INTO transcript (n, id, created) VALUES (1, 't', 1);
INSERT INTO entry (pos, id, kind, time, run, role, text, flags) VALUES
 ((1 << 32) + 1, 'e1', 'message', 1, 'r1', 'user', 'hi', 0),
 ((1 << 32) + 2, 'e2', 'message', 2, 'r1', 'user', '[System] a command ended', 0);
INSERT INTO session (key, id, agent, updated, entries, search, meta) VALUES ('s', 't', 'main', 1, 1, 's', '{"key":"s","sessionId":"t","agentId":"main"}');
`); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// testVersion8 checks the rows of version8 after a migration or a recovery.
func testVersion8(t *testing.T, path string) {
	d := openAt(t, path)
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := d.View(t.Context(), func(r store.Reader) error {
		waiting, err1 := r.Queue().Waiting("s")
		deferred, err2 := r.Queue().Deferred()
		active, err3 := r.Runs().Active("s")
		entries, err4 := r.Sessions().Entries("t", 0, 0)
		meta, err5 := r.Sessions().Get("s")
		held, err6 := r.Leases().Get(lease.Session("s"))
		orphans, err7 := r.Runs().Orphans("s", "process-2")
		if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
			return err
		}
		var got []string
		for _, it := range append(waiting, deferred...) {
			got = append(got, fmt.Sprintf("%s %s %s %s", it.ID, it.Kind, it.Origin.Kind, it.Overrides.Think))
		}
		for _, v := range active {
			got = append(got, fmt.Sprintf("%s %s %s %s %s", v.ID, v.Kind, v.Origin.Kind, v.Overrides.Think, v.Waits))
		}
		for _, e := range entries {
			got = append(got, fmt.Sprintf("%s %s %q %v", e.ID, e.Message.PlainText(), e.Origin.Kind, e.Voids))
		}
		got = append(got, fmt.Sprintf("%s %+v", meta.Key, meta.Bounds))
		got = append(got, fmt.Sprintf("%+v, %d orphans", held, len(orphans)))
		want := []string{
			"m message person high", "wake event process ", "resume resume  ", "owed event process ",
			"r1 turn person low ", "r2 turn process  approval",
			`e1 hi "" { }`, `e2 [System] a command ended "system" { }`, "s {Tools:[] ReadOnly:false Lane: Sandbox: Folder: Exec:{Host: Security: Ask:} SpawnedBy: Depth:0 Agents:[] Chat:{Channel: Account: Peer:{Kind: ID:} Thread:} Shared:false}",
			"{Name:session:s Owner:process-1 Fence:3}, 1 orphans",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none", "chela.db")
	if _, err := Open(t.Context(), Options{Path: none}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: have %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := Open(t.Context(), Options{Path: t.TempDir()}); err == nil {
		t.Error("a directory: no error")
	}
	garbage := put(t, []byte(strings.Repeat("garbage ", 5000)), nil)
	if _, err := Open(t.Context(), Options{Path: garbage}); !errors.As(err, new(*DamagedError)) {
		t.Errorf("garbage: have %v, want a *DamagedError", err)
	}
	empty := put(t, nil, nil)
	mustSet(t, openAt(t, empty), "a", "1")
}
