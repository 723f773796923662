package db_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/plugin/store/sqlite/db"
)

func open(t *testing.T) *db.Conn {
	t.Helper()
	c, err := db.Open(filepath.Join(t.TempDir(), "a ?file#.db"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// run runs a statement and returns the texts of the first column.
func run(t *testing.T, c *db.Conn, sql string, args ...any) []string {
	t.Helper()
	s, err := c.Prepare(sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer s.Reset()
	if err := s.Bind(args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var got []string
	for {
		row, err := s.Step()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if !row {
			return got
		}
		text, err := s.Text(0)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		got = append(got, text)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	c := open(t)
	long := strings.Repeat("long ", 10_000)
	for _, want := range []any{"", "text", "zero\x00inside", "日本語", long, "short again", int64(0), int64(-1 << 63), nil} {
		s, err := c.Prepare("SELECT ?2, ?1, typeof(?2)")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Bind("before", want); err != nil {
			t.Fatal(err)
		}
		if row, err := s.Step(); !row || err != nil {
			t.Fatalf("row %v, %v", row, err)
		}
		var got any
		kind, err := s.Text(2)
		switch {
		case kind == "text":
			got, err = s.Text(0)
		case kind == "integer":
			got, err = s.Int(0)
		case !s.Null(0):
			got = kind
		}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("got %.30q, %v, want %.30q", got, err, want)
		}
		if first, err := s.Text(1); first != "before" || err != nil {
			t.Errorf("the other argument is %q, %v", first, err)
		}
		s.Reset()
	}
}

// TestReuse checks that a statement uses only its current arguments after other
// statements ran.
func TestReuse(t *testing.T) {
	t.Parallel()
	c := open(t)
	run(t, c, "CREATE TABLE t (a TEXT, b TEXT)")
	for _, v := range []string{"one", strings.Repeat("x", 9000), "two", ""} {
		run(t, c, "INSERT INTO t VALUES (?, ?)", v, nil)
		if n := c.Changes(); n != 1 {
			t.Errorf("%d rows changed, want 1", n)
		}
		if got := run(t, c, "SELECT a FROM t WHERE a = ?", v); !cmp.Equal(got, []string{v}) {
			t.Errorf("got %.20q, want %.20q", got, v)
		}
	}
	run(t, c, "UPDATE t SET b = 'b' WHERE a <> ?", "one")
	if n := c.Changes(); n != 3 {
		t.Errorf("%d rows changed, want 3", n)
	}
	if n := c.Memory(); n < 4096 || n > 1<<20 {
		t.Errorf("uses %d bytes", n)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	c := open(t)
	var got []string
	err := c.Script(t.Context(), `CREATE TABLE t (a TEXT); -- a word
INSERT INTO t VALUES ('x'), ('y'); SELECT a FROM t; SELECT 'z'; -- that is all `, func(s *db.Stmt) error {
		text, err := s.Text(0)
		got = append(got, text)
		return err
	})
	if want := []string{"x", "y", "z"}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	stop := errors.New("enough")
	if err := c.Script(t.Context(), "SELECT 1; SELECT 2", func(*db.Stmt) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of the function", err)
	}
}

func TestScriptEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := c.Script(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the error of the context", err)
	}
	if got := run(t, c, "SELECT 'well'"); !cmp.Equal(got, []string{"well"}) {
		t.Errorf("the connection returns %q afterwards", got)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	c := open(t)
	run(t, c, "CREATE TABLE t (a TEXT UNIQUE, n INTEGER) STRICT")
	run(t, c, "INSERT INTO t VALUES ('x', 1)")
	for _, tt := range []struct {
		name string
		do   func() error
		code int
		text string
	}{
		{"no such directory", func() error { _, err := db.Open(filepath.Join(t.TempDir(), "no", "file"), ""); return err }, lib.SQLITE_CANTOPEN, "unable to open"},
		{"no such VFS", func() error { _, err := db.Open(filepath.Join(t.TempDir(), "file"), "none"); return err }, lib.SQLITE_ERROR, "no such vfs"},
		{"not SQL", func() error { _, err := c.Prepare("SELEKT"); return err }, lib.SQLITE_ERROR, `near "SELEKT"`},
		{"not SQL in the second statement", func() error { return c.Script(t.Context(), "SELECT 1; SELEKT", nil) }, lib.SQLITE_ERROR, `near "SELEKT"`},
		{"unique", func() error { return c.Script(t.Context(), "INSERT INTO t VALUES ('x', 2)", nil) }, lib.SQLITE_CONSTRAINT_UNIQUE, "t.a"},
		{"too many arguments", func() error {
			s, err := c.Prepare("SELECT ?")
			if err != nil {
				return err
			}
			return s.Bind("a", "b")
		}, lib.SQLITE_RANGE, "out of range"},
		{"Text of a number", func() error {
			return c.Script(t.Context(), "SELECT n FROM t", func(s *db.Stmt) error { _, err := s.Text(0); return err })
		}, 0, "column 1: have type 1, want text"},
		{"Int of a text", func() error {
			return c.Script(t.Context(), "SELECT n, a FROM t", func(s *db.Stmt) error { _, err := s.Int(1); return err })
		}, 0, "column 2: have type 3, want a number"},
	} {
		err := tt.do()
		code := 0
		if e, ok := errors.AsType[*db.Error](err); ok {
			code = e.Code
		}
		if err == nil || code != tt.code || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: got %v, code %d; want %q, code %d", tt.name, err, code, tt.text, tt.code)
		}
	}
}
