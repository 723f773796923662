package foreign_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/chela-ai/chela/internal/plugin/store/sqlite/foreign"
)

// source is a database that stays open, so that its last rows are in its log.
func source(t *testing.T) (dir string, c *sqlite.Conn) {
	t.Helper()
	dir = t.TempDir()
	c, err := sqlite.OpenConn(filepath.Join(dir, "x.db"), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := sqlitex.ExecuteScript(c, `CREATE TABLE "a ""b" (i INTEGER, t TEXT, r REAL, b BLOB);
INSERT INTO "a ""b" VALUES (2, 'two', 0.5, x'00ff'), (1, NULL, NULL, NULL);
CREATE VIEW v AS SELECT 1 AS i; PRAGMA user_version = 7;`, nil); err != nil {
		t.Fatal(err)
	}
	return dir, c
}

func open(t *testing.T, dir, temp string) (*foreign.Database, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return foreign.Open(t.Context(), root, "x.db", temp)
}

func TestRows(t *testing.T) {
	t.Parallel()
	dir, _ := source(t)
	before := contents(t, dir)
	temp := t.TempDir()
	d, err := open(t, dir, temp)
	if err != nil {
		t.Fatal(err)
	}
	if left := contents(t, temp); len(left) != 0 && runtime.GOOS != "windows" {
		t.Errorf("a killed process would leave %v", left)
	}
	var got []map[string]any
	for r, err := range d.Rows(`a "b`, nil, "i") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	want := []map[string]any{{"i": int64(1), "t": nil, "r": nil, "b": nil},
		{"i": int64(2), "t": "two", "r": 0.5, "b": []byte{0, 255}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	n := 0
	for r, err := range d.Rows(`a "b`, map[string]any{"t": "two", "i": int64(2)}) {
		if n++; err != nil || r["i"] != int64(2) {
			t.Errorf("%v, %v", r, err)
		}
	}
	if n != 1 {
		t.Errorf("%d rows", n)
	}
	for _, bad := range []struct {
		table string
		where map[string]any
		order string
	}{{"none", nil, ""}, {"v", nil, ""}, {`a "b`, map[string]any{"x": "1"}, ""}, {`a "b`, nil, "i; DROP TABLE x"}} {
		var order []string
		if bad.order != "" {
			order = []string{bad.order}
		}
		for _, err := range d.Rows(bad.table, bad.where, order...) {
			if !errors.Is(err, foreign.ErrNoTable) {
				t.Errorf("%+v: %v", bad, err)
			}
		}
	}
	if v, err := d.Version(); err != nil || v != 7 {
		t.Errorf("version %d, %v", v, err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if left := contents(t, temp); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if after := contents(t, dir); !reflect.DeepEqual(before, after) {
		t.Error("the database was changed")
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

func TestDamaged(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":         "",
		"no database":   "no database, no database, no database",
		"a header only": "SQLite format 3\x00",
	} {
		dir, temp := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.db"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := open(t, dir, temp)
		if err == nil {
			if text != "" {
				t.Errorf("%s: opened", name)
			}
			err = d.Close()
			if err != nil {
				t.Error(err)
			}
		}
		if left := contents(t, temp); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "x.db")); err == nil {
		if _, err := open(t, dir, t.TempDir()); err == nil {
			t.Error("a link was opened")
		}
	}
}
