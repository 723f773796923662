package wal_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"testing"

	_ "modernc.org/sqlite" // the driver

	"github.com/chela-ai/chela/internal/plugin/store/sqlite/wal"
	"github.com/chela-ai/chela/internal/test/power"
)

// connect opens a connection to the database on the disk, through a layer.
func connect(t *testing.T, d *power.Disk, vfs string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: d.Path(), RawQuery: "vfs=" + vfs}).String())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, stmts ...string) {
	t.Helper()
	for _, s := range stmts {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func number(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// fresh returns a disk with an empty table, the layer and the connection over it.
func fresh(t *testing.T) (*power.Disk, *wal.Layer, *sql.DB) {
	t.Helper()
	d := power.New(t)
	l, err := wal.New(d.Options().VFS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	db := connect(t, d, l.Name())
	run(t, db, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA wal_autocheckpoint = 0", "PRAGMA cache_size = 5",
		"CREATE TABLE a (n INTEGER PRIMARY KEY, text TEXT)")
	return d, l, db
}

// after returns the number of rows after a power cut.
func after(t *testing.T, m power.Image) int {
	t.Helper()
	d := m.Disk(t)
	return number(t, connect(t, d, d.Options().VFS), "SELECT count(*) FROM a")
}

func TestRelax(t *testing.T) {
	t.Parallel()
	d, l, db := fresh(t)
	syncs := 0
	d.Fail(func(_ int, op power.Op, _ string) power.Fault {
		if op == power.Sync {
			syncs++
		}
		return power.None
	})
	for _, c := range []struct {
		name        string
		relax       bool
		stmt        string
		syncs, rows int
	}{
		{"synced", false, "INSERT INTO a (text) VALUES ('one')", 1, 1},
		{"relaxed", true, "INSERT INTO a (text) VALUES ('two')", 0, 1},
		{"relaxed again", true, "INSERT INTO a (text) VALUES ('three')", 0, 1},
		{"synced together with the earlier commits", false, "INSERT INTO a (text) VALUES ('four')", 1, 4},
		{"relaxed before a checkpoint", true, "INSERT INTO a (text) VALUES ('five')", 0, 4},
		{"a checkpoint syncs the log before and the database after", true, "PRAGMA wal_checkpoint", 2, 5},
		{"the header of a log that restarts is synced", true, "INSERT INTO a (text) VALUES ('six')", 1, 5},
	} {
		l.Relax(c.relax)
		syncs = 0
		run(t, db, c.stmt)
		if got := after(t, d.Cut()); syncs != c.syncs || got != c.rows {
			t.Errorf("%s: %d syncs and %d rows after a cut, want %d and %d", c.name, syncs, got, c.syncs, c.rows)
		}
	}
	if got := after(t, d.AfterKill()); got != 6 {
		t.Errorf("%d rows after a kill, want 6", got)
	}
}

// TestBuffer commits transactions larger than the buffer and the cache: SQLite
// writes and reads the log in the middle of them.
func TestBuffer(t *testing.T) {
	t.Parallel()
	d, l, db := fresh(t)
	other := connect(t, d, d.Options().VFS)
	rows := 0
	for i, size := range []int{1, 30, 1000, 3, 2000, 1} {
		l.Relax(i%2 == 0)
		fill := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO a (text) SELECT hex(randomblob(300)) FROM n", size)
		run(t, db, "BEGIN", fill)
		// Descending order reads the last written rows first.
		if got := number(t, db, fmt.Sprintf("SELECT n FROM a ORDER BY n DESC LIMIT 1 OFFSET %d", rows+size-1)); got != 1 {
			t.Errorf("in transaction %d: the first row is %d", i, got)
		}
		run(t, db, "UPDATE a SET text = text || 'x'", "SAVEPOINT s", "DELETE FROM a WHERE n % 2", "ROLLBACK TO s")
		if got := number(t, db, "SELECT count(*) FROM a WHERE text LIKE '%x'"); got != rows+size {
			t.Errorf("in transaction %d: %d rows, want %d", i, got, rows+size)
		}
		if got := number(t, other, "SELECT count(*) FROM a"); got != rows {
			t.Errorf("during transaction %d: %d rows, want %d", i, got, rows)
		}
		end := "COMMIT"
		if i == 2 {
			end = "ROLLBACK"
		} else {
			rows += size
		}
		run(t, db, end)
		for name, db := range map[string]*sql.DB{"the same connection": db, "another": other} {
			if got := number(t, db, "SELECT count(*) FROM a"); got != rows {
				t.Errorf("after transaction %d, %s: %d rows, want %d", i, name, got, rows)
			}
		}
	}
	var text string
	if err := other.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&text); err != nil || text != "ok" {
		t.Errorf("integrity: %s, %v", text, err)
	}
}

// TestFault makes a write fail in the middle of a commit: the commit fails, none of
// it is stored, and the next commit succeeds.
func TestFault(t *testing.T) {
	t.Parallel()
	for _, relax := range []bool{false, true} {
		for _, fault := range []power.Fault{power.NoRoom, power.Broken} {
			d, l, db := fresh(t)
			l.Relax(relax)
			run(t, db, "INSERT INTO a (text) VALUES ('one')")
			writes := 0
			d.Fail(func(_ int, op power.Op, _ string) power.Fault {
				if op == power.Write {
					if writes++; writes == 2 {
						return fault
					}
				}
				return power.None
			})
			const large = "INSERT INTO a (text) VALUES (hex(randomblob(9000)))"
			if _, err := db.ExecContext(t.Context(), large); err == nil {
				t.Errorf("fault %d: no error", fault)
			}
			if got := number(t, db, "SELECT count(*) FROM a"); got != 1 {
				t.Errorf("fault %d: %d rows, want 1", fault, got)
			}
			run(t, db, large)
			if got := after(t, d.AfterKill()); got != 2 {
				t.Errorf("fault %d: %d rows after a kill, want 2", fault, got)
			}
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := wal.New("no such"); err == nil {
		t.Error("unknown VFS: no error")
	}
}
