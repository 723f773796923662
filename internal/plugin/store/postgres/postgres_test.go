package postgres_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/store/storetest"
	"github.com/chela-ai/chela/internal/plugin/store/postgres"
	"github.com/chela-ai/chela/internal/plugin/store/postgres/postgrestest"
	"github.com/google/go-cmp/cmp"
)

// patient is how long the ownership lasts in tests in which nobody takes it over.
const patient = 10 * time.Minute

// open opens a database for a test.
func open(t *testing.T, o postgres.Options) *postgres.DB {
	t.Helper()
	if o.TTL == 0 {
		o.TTL = patient
	}
	d, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func TestStore(t *testing.T) {
	server := postgrestest.Start(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, postgres.Options{URL: server.URL()}) })
}

// TestTables compares the tables with those of SQLite: the statements are the same.
func TestTables(t *testing.T) {
	server := postgrestest.Start(t)
	url := server.URL()
	open(t, postgres.Options{URL: url})
	b, err := os.ReadFile(filepath.Join("..", "sqlite", "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, table := range regexp.MustCompile(`(?ms)^CREATE TABLE (\w+) \(\n(.*?)^\) STRICT`).FindAllStringSubmatch(
		string(b), -1) {
		var columns []string
		for _, c := range regexp.MustCompile(
			`(?m)^  ([a-z_]+) +(TEXT|INTEGER)( NOT NULL| PRIMARY KEY)?`).FindAllStringSubmatch(table[2], -1) {
			if c[1] == "crc" {
				continue
			}
			kind := map[string]string{"TEXT": "text", "INTEGER": "bigint"}[c[2]]
			null := map[bool]string{true: " null"}[c[3] == ""]
			columns = append(columns, c[1]+" "+kind+null)
		}
		slices.Sort(columns)
		want[table[1]] = strings.Join(columns, ", ")
	}
	if len(want) < 20 {
		t.Fatalf("%d tables were found", len(want))
	}
	got := map[string]string{}
	for _, row := range strings.Split(server.Exec(t, url, `SELECT string_agg(table_name || ': ' || columns, '; ') FROM (
SELECT table_name, string_agg(column_name || ' ' || data_type || CASE is_nullable WHEN 'YES' THEN ' null' ELSE '' END, ', ' ORDER BY column_name COLLATE "C") AS columns
FROM information_schema.columns WHERE table_schema = current_schema() AND table_name NOT IN ('owner', 'alive', 'version')
AND NOT (table_name IN ('setting', 'lease') AND column_name = 'n') GROUP BY table_name) AS x`), "; ") {
		name, columns, _ := strings.Cut(row, ": ")
		got[name] = columns
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tables (-sqlite +postgres):\n%s", diff)
	}
}

// TestMigrate opens a database of version 1: it drops the columns that were added later.
func TestMigrate(t *testing.T) {
	server := postgrestest.Start(t)
	url := server.URL()
	if err := open(t, postgres.Options{URL: url}).Close(); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, url,
		"ALTER TABLE item DROP COLUMN result; ALTER TABLE run DROP COLUMN failure; UPDATE version SET n = 1;"+
			storetest.Version18)
	err := open(t, postgres.Options{URL: url}).View(t.Context(), func(r store.Reader) error {
		storetest.CheckVersion18(t, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOddTexts(t *testing.T) {
	server := postgrestest.Start(t)
	d := open(t, postgres.Options{URL: server.URL()})
	const key = "agent:main:main"
	err := d.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		return errors.Join(
			tx.SetSetting("a\x00b", "x\x00y\xffz"),
			tx.Sessions().Put(session.Meta{
				Key:     key,
				ID:      "t",
				Label:   "a \x00 label",
				Title:   `a \u0000 title \\u0000`,
				Updated: time.Now(),
			}))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := setting(t, d, "ab"), "xy\uFFFDz"; got != want {
		t.Errorf("setting %q, want %q", got, want)
	}
	for _, q := range []session.Query{{}, {Label: "a  label"}} { // the second one reads the document
		err := d.View(t.Context(), func(r store.Reader) error {
			list, n, err := r.Sessions().List(q)
			if err == nil && (n != 1 || list[0].Label != "a \x00 label" || list[0].Title != `a \u0000 title \\u0000`) {
				t.Errorf("%+v: %d sessions: %+v", q, n, list)
			}
			return err
		})
		if err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
