package page

import (
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
)

// write creates a database with the statements and returns its path. The log is not
// checkpointed.
func write(tb testing.TB, statements ...string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "x.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			tb.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

func TestRows(t *testing.T) {
	t.Parallel()
	numbers := []int64{0, 1, -1, 127, -128, 1 << 15, -1 << 23, 1<<31 - 1, 1 << 40, -1 << 47, math.MaxInt64, math.MinInt64}
	for _, mode := range []string{"DELETE", "WAL"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			statements := []string{"PRAGMA journal_mode = " + mode, "CREATE TABLE t (n INTEGER PRIMARY KEY, a INTEGER, b TEXT)",
				"PRAGMA user_version = 42"}
			want := make(map[int64][]any)
			for i, n := range numbers {
				for k, size := range []int{0, 1, 100, 4050, 4061, 4062, 5000, 70_000} {
					id := int64(i)<<33 + int64(k)
					text := strings.Repeat("x", size)
					statements = append(statements, fmt.Sprintf("INSERT INTO t VALUES (%d, %d, '%s')", id, n, text))
					want[id] = []any{nil, n, text}
				}
			}
			statements = append(statements, "INSERT INTO t VALUES (-5, NULL, NULL)", "UPDATE t SET b = 'changed' WHERE n = 1")
			want[-5] = []any{nil, nil, nil}
			want[1][2] = "changed"
			f, err := Open(write(t, statements...))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got := make(map[int64][]any)
			for r, err := range f.Rows() {
				if err == nil && len(r.Values) == 3 {
					got[r.ID] = r.Values
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%.2000s", diff)
			}
			if v := f.Version(); v != 42 {
				t.Errorf("version %d, want 42", v)
			}
		})
	}
}

// TestTables checks which table each row belongs to, also if the way to it is
// damaged.
func TestTables(t *testing.T) {
	t.Parallel()
	const rows = "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 3000) SELECT n, 'a row of %[1]s' FROM i"
	var statements []string
	for _, table := range []string{"a", "b"} {
		statements = append(statements, "CREATE TABLE "+table+" (n INTEGER PRIMARY KEY, x TEXT)",
			fmt.Sprintf("INSERT INTO %[1]s "+rows, table))
	}
	path := write(t, statements...)
	// count returns the number of rows by table and text.
	count := func() map[[2]string]int {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n := make(map[[2]string]int)
		for r, err := range f.Rows() {
			if err == nil && r.Table != Schema {
				n[[2]string{r.Table, r.Values[1].(string)}]++
			}
		}
		return n
	}
	a, b := "a row of a", "a row of b"
	if diff := cmp.Diff(map[[2]string]int{{"a", a}: 3000, {"b", b}: 3000}, count()); diff != "" {
		t.Errorf("intact (-want +got):\n%s", diff)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var root int64
	if err := db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = 'a'").Scan(&root); err != nil {
		t.Fatal(err)
	}
	put := func(off int64, b ...byte) {
		if _, err := file.WriteAt(b, (root-1)*4096+off); err != nil {
			t.Fatal(err)
		}
	}
	put(8, 0, 0, 0, byte(root)) // the last child of the root is the root
	n := count()
	if lost := n[[2]string{"", a}]; lost == 0 || lost+n[[2]string{"a", a}] != 3000 || n[[2]string{"b", b}] != 3000 {
		t.Errorf("a cycle: %v", n)
	}
	put(0, 0x55)
	if diff := cmp.Diff(map[[2]string]int{{"", a}: 3000, {"b", b}: 3000}, count()); diff != "" {
		t.Errorf("no root (-want +got):\n%s", diff)
	}
}

// TestLog damages one frame of a log: its page becomes unreadable, the pages of
// later commits stay readable.
func TestLog(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 3000)
	statements := []string{"PRAGMA journal_mode = WAL", "CREATE TABLE t (n INTEGER PRIMARY KEY, a INTEGER, b TEXT)"}
	for n := range 20 {
		statements = append(statements, fmt.Sprintf("INSERT INTO t VALUES (%d, 1, '%s')", n, text))
	}
	path := write(t, statements...)
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const frame = frameHeader + defaultSize
	damaged := 0
	for at := logHeader; at < len(log); at += frame {
		b := append([]byte{}, log...)
		b[at+frameHeader+2000] ^= 4
		copied := filepath.Join(t.TempDir(), "x.db")
		db, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied, db, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+"-wal", b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(copied)
		if err != nil {
			t.Fatal(err)
		}
		rows, bad := 0, 0
		for r, err := range f.Rows() {
			switch {
			case err != nil:
				bad++
			case len(r.Values) == 3 && r.Values[2] == text:
				rows++
			}
		}
		f.Close()
		if bad > 0 {
			damaged++
		}
		if at+frame < len(log) && rows < 18 {
			t.Errorf("frame at %d: %d of 20 rows are readable", at, rows)
		}
	}
	if damaged == 0 {
		t.Error("no damage was found")
	}
}

func FuzzRows(f *testing.F) {
	path := write(f, "PRAGMA page_size = 512", "PRAGMA journal_mode = WAL",
		"CREATE TABLE t (n INTEGER PRIMARY KEY, a INTEGER, b TEXT)",
		"INSERT INTO t VALUES (1, 2, 'x')", "INSERT INTO t VALUES (2, -7, hex(zeroblob(500)))")
	db, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(db, log)
	f.Add(log[logHeader+frameHeader:], []byte{})
	f.Add([]byte{leaf}, log[:40])
	f.Fuzz(func(t *testing.T, db, log []byte) {
		file := read(strings.NewReader(string(db)), int64(len(db)))
		file.log = strings.NewReader(string(log))
		file.readLog()
		for r, err := range file.Rows() {
			if err == nil && (r.Page < 1 || r.Page > file.Pages()) {
				t.Errorf("row on page %d of %d", r.Page, file.Pages())
			}
		}
	})
}
