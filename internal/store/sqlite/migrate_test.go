package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/chela"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	steps, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	now := int64(len(steps))
	// prepare makes a database of this version with a setting in it.
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
		n, err := c.number("PRAGMA user_version")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Run("a step keeps a copy of what was", func(t *testing.T) {
		path, c := prepare(t)
		next := append(steps, "CREATE TABLE x (a); INSERT INTO x VALUES (7)")
		if err := migrate(c, path, next); err != nil {
			t.Fatal(err)
		}
		if v := version(t, c); v != now+1 {
			t.Errorf("version %d, want %d", v, now+1)
		}
		if n, err := c.number("SELECT a FROM x"); n != 7 {
			t.Errorf("the step: %d, %v", n, err)
		}
		old := openAt(t, fmt.Sprintf("%s.bak-v%d", path, now))
		if v := settingOf(t, old, "a"); v != "1" {
			t.Errorf("in the copy: %q, want 1", v)
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
		if n, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name = 'x'"); n != 0 || err != nil {
			t.Errorf("half a step is there: %v", err)
		}
	})
	t.Run("what became of calls before it was recorded is not made up", func(t *testing.T) {
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
		n, err := c.number("SELECT count(*) FROM call WHERE (state, outcome) IN (VALUES ('closed', 'not recorded'), ('started', ''))")
		if n != 2 || err != nil {
			t.Errorf("%d of 2 calls are as they were, %v", n, err)
		}
	})
	t.Run("items that an older database held as taken are found by their run", func(t *testing.T) {
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
			if _, err := c.exec(`INSERT INTO item (id, session, kind, principal, inbound, call, state, run, note, created)
VALUES (?, 's', 'message', '{}', '{}', '', 'taken', ?, '', 0)`, it.id, it.run); err != nil {
				t.Fatal(err)
			}
		}
		if err := migrate(c, path, steps); err != nil {
			t.Fatal(err)
		}
		if err := (items{c}).Finish("r"); err != nil {
			t.Fatal(err)
		}
		left, err := c.text("SELECT group_concat(id) FROM item WHERE state = 'taken'")
		if left != "other" || err != nil {
			t.Errorf("taken still: %q, %v; want the other run's", left, err)
		}
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
	t.Run("a fresh one needs no copy", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.db")
		openAt(t, path)
		names, err := filepath.Glob(path + ".bak*")
		if err != nil || len(names) > 0 {
			t.Errorf("copies: %v, %v", names, err)
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			fi, err := os.Stat(path + suffix)
			if err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%q: mode %v, %v", suffix, fi.Mode(), err)
			}
		}
	})
	t.Run("tables differ in their number of columns", func(t *testing.T) {
		_, c := prepare(t)
		byColumns, err := tables(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(byColumns) != 13 {
			t.Errorf("%d tables, want 13", len(byColumns))
		}
		if byColumns[5] != nil {
			t.Errorf("table %s has 5 columns, as the schema's own", byColumns[5].name)
		}
	})
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
