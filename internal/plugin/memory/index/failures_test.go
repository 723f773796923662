package index_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/memory/index"
)

// TestNotes is about notes that are not as they should be.
func TestNotes(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("Nothing of interest was said in this long line about the weather of the day.\n", 3<<20/77)
	for _, c := range []struct {
		name, text string
		question   string // that finds the note; "": none does
		problem    string // why the note is not searched
	}{
		{"3 MB", big[:len(big)/2] + "The zeppelin landed.\n" + big[len(big)/2:], "zeppelin landed", ""},
		{"2 MB in one line", strings.ReplaceAll(big[:2<<20], "\n", " ") + "zeppelin", "zeppelin", ""},
		{"too large", strings.Repeat(big, 6), "", "larger than 16 MB"},
		{"a zero byte", "The zeppelin\x00landed.", "", "not text"},
		{"invalid UTF-8", "The \xff\xfe zeppelin \xc3\x28 landed \xf0\x9f.", "zeppelin landed", ""},
		{"marks of direction", "The \u202ezeppe\u2066lin\u202c landed, rou\u00adter.", "zeppelin router", ""},
		{"a mark at the beginning", "\ufeffZeppelin landed.", "zeppelin", ""},
		{"empty", "", "", ""},
		{"only headings", "# Zeppelin\n## Landing\n", "zeppelin landing", ""},
		{"carriage returns", "# One\r\n\r\nThe zeppelin\r\nlanded.\r\n", "zeppelin landed", ""},
		{"a heading of 1 MB", "# " + strings.Repeat("long ", 200<<10) + "zeppelin\n", "zeppelin", ""},
		{"too many sections", strings.Repeat("# Zeppelin\n", 60_000), "", "more than 50000 sections"},
		{"an open fence", "```\n# not a heading\nzeppelin\n", "zeppelin", ""},
		{"SQL", "'); DROP TABLE note; -- \" OR zeppelin NEAR(", "zeppelin NEAR(\"", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, map[string]string{"memory/note.md": c.text, "memory/other.md": "The cat.\n"})
			if c.question != "" {
				hits := v.find(c.question)
				if len(hits) == 0 || hits[0].Path != "memory/note.md" || len(hits[0].Snippet) > memory.SnippetSize ||
					strings.ToValidUTF8(hits[0].Snippet, "") != hits[0].Snippet {
					t.Errorf("found %.300v", hits)
				}
			}
			if got := v.paths("cat"); !slices.Contains(got, "memory/other.md") {
				t.Errorf("another note: %v", got)
			}
			st, err := v.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(st.Skipped) > 0 {
				got = st.Skipped[0].Reason
			}
			if most := int64(10*len(c.text) + 1<<20); st.Size > most {
				t.Errorf("the index has %d bytes, want at most %d", st.Size, most)
			}
			if (got == "") != (c.problem == "") || !strings.Contains(got, c.problem) {
				t.Errorf("skipped: %+v, want %q", st.Skipped, c.problem)
			}
		})
	}
	t.Run("links", func(t *testing.T) {
		t.Parallel()
		v := newVault(t, map[string]string{"outside/secret.md": "The zeppelin.\n", "memory/a.md": "The cat.\n"})
		for name, to := range map[string]string{
			"memory/link.md": "../outside/secret.md",
			"memory/folder":  "../outside",
			"memory/loop":    ".",
			"MEMORY.md":      "outside/secret.md",
		} {
			if err := os.Symlink(to, filepath.Join(v.dir, filepath.FromSlash(name))); err != nil {
				needtest.Missing(t, "symbolic links")
			}
		}
		if got := v.paths("zeppelin"); len(got) > 0 {
			t.Errorf("a link was followed: %v", got)
		}
		for _, name := range []string{"memory/link.md", "memory/folder/secret.md", "MEMORY.md",
			"memory/../outside/secret.md"} {
			if b, err := v.Read(t.Context(), name); !errors.Is(err, memory.ErrOutside) {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
		if got := v.paths("cat"); fmt.Sprint(got) != "[memory/a.md]" {
			t.Errorf("%v", got)
		}
		if got, want := v.skipped(),
			"MEMORY.md: it is a link, memory/folder: it is a link, memory/link.md: it is a link, memory/loop: it is a link"; got != want {
			t.Errorf("skipped: %s, want %s", got, want)
		}
	})
	for name, make := range map[string]func(string) error{
		"the folder is a file": func(p string) error { return os.WriteFile(p, []byte("The cat.\n"), 0o600) },
		"the folder is a link": func(p string) error { return os.Symlink(t.TempDir(), p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, map[string]string{"MEMORY.md": "The zeppelin.\n"})
			if err := make(filepath.Join(v.dir, "memory")); err != nil {
				needtest.Missing(t, "files as the test makes them: "+err.Error())
			}
			if got := v.paths("zeppelin"); fmt.Sprint(got) != "[MEMORY.md]" {
				t.Errorf("the other notes: %v", got)
			}
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		t.Parallel()
		if os.Getuid() <= 0 {
			t.Skip("this user may read everything")
		}
		v := newVault(t, map[string]string{
			"memory/a.md":   "The cat.\n",
			"memory/b.md":   "The zeppelin.\n",
			"memory/c/d.md": "The router.\n",
		})
		set := func(file, folder os.FileMode) {
			t.Helper()
			if err := errors.Join(os.Chmod(filepath.Join(v.dir, "memory", "b.md"), file),
				os.Chmod(filepath.Join(v.dir, "memory", "c"), folder)); err != nil {
				t.Fatal(err)
			}
		}
		for _, at := range []string{"b.md", "c", "c/d.md"} { // else they are read again because they are new
			if err := os.Chtimes(filepath.Join(v.dir, "memory", at), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		set(0, 0)
		if got := v.skipped(); strings.Count(got, "permission denied") != 2 {
			t.Errorf("skipped: %s", got)
		}
		if got := fmt.Sprint(v.paths("cat"), v.paths("zeppelin"), v.paths("router")); got != "[memory/a.md] [] []" {
			t.Errorf("%s", got)
		}
		set(0o600, 0o700)
		if got := v.skipped(); got != "" {
			t.Errorf("they may be read, but are skipped: %s", got)
		}
		if got := fmt.Sprint(v.paths("cat"), v.paths("zeppelin"), v.paths("router")); got !=
			"[memory/a.md] [memory/b.md] [memory/c/d.md]" {
			t.Errorf("%s", got)
		}
	})
	t.Run("changed twice within a tick of the clock of the file system", func(t *testing.T) {
		t.Parallel()
		v := newVault(t, nil)
		now := time.Now()
		for _, text := range []string{"The code is 4071.\n", "The code is 8812.\n", "The code is 5555.\n"} {
			v.write("memory/a.md", text)
			if err := os.Chtimes(filepath.Join(v.dir, "memory", "a.md"), now, now); err != nil {
				t.Fatal(err)
			}
			v.status()
			if got := v.find("code"); len(got) != 1 || !strings.HasPrefix(text, got[0].Snippet) {
				t.Errorf("%+v, want %s", got, text)
			}
		}
	})
	t.Run("further folders", func(t *testing.T) {
		t.Parallel()
		v := newVault(t, map[string]string{
			"memory/imports/a.md": "The cat.\n",
			"notes/.private/b.md": "The cat.\n",
			"notes/c.md":          "The cat.\n",
			"top.md":              "The cat.\n",
		})
		v.reopen(func(o *index.Options) { o.Extra = []string{".", filepath.Join(v.dir, "x", "..", "notes")} })
		got := v.paths("cat")
		slices.Sort(got)
		if fmt.Sprint(got) != "[memory/imports/a.md notes/c.md top.md]" {
			t.Errorf("%v", got)
		}
		for name, want := range map[string]bool{
			"top.md":              true,
			"notes/c.md":          true,
			"memory/imports/a.md": true,
			"notes/.private/b.md": false,
			".private/b.md":       false,
			filepath.Join(v.dir, "memory", "imports", "a.md"): false, // it would not be marked as untrusted
		} {
			if b, err := v.Read(t.Context(), name); (err == nil) != want || err != nil && !errors.Is(err, memory.ErrOutside) {
				t.Errorf("%s: %q, %v", name, b, err)
			}
		}
		v.reopen(func(o *index.Options) { o.Extra = []string{filepath.Join(v.dir, "notes")} })
		if b, err := v.Read(t.Context(), "notes/.private/b.md"); !errors.Is(err, memory.ErrOutside) {
			t.Errorf("a hidden folder: %q, %v", b, err)
		}
	})
	t.Run("changed while it is read", func(t *testing.T) {
		t.Parallel()
		v := newVault(t, map[string]string{"memory/a.md": "The cat.\n"})
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				switch i % 3 {
				case 0:
					v.write("memory/a.md", strings.Repeat("The cat.\n", i%1000))
				case 1:
					v.write("memory/a.md", "The zeppelin.\n")
				case 2:
					_ = os.Remove(filepath.Join(v.dir, "memory", "a.md"))
				}
			}
		})
		for range 50 {
			if _, err := v.Status(t.Context()); err != nil {
				t.Error(err)
			}
		}
		close(stop)
		wg.Wait()
		v.write("memory/a.md", "The router.\n")
		if _, err := v.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(v.paths("router"), v.paths("zeppelin"), v.paths("cat")); got != "[memory/a.md] [] []" {
			t.Errorf("at the end: %s", got)
		}
	})
}

// TestIndexFile is about the file of the index: it may be deleted, damaged, of another
// version and in use by another process at any time.
func TestIndexFile(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, v *vault) {
		t.Helper()
		if got := v.paths("router"); fmt.Sprint(got) != "[MEMORY.md]" {
			t.Errorf("%v", got)
		}
		if st := v.status(); st.Vectors == nil || st.Vectors.Waiting > 0 || st.Vectors.Problem != "" {
			t.Errorf("%+v", st.Vectors)
		}
	}
	opened := func(t *testing.T) *vault {
		v := withEmbedders(t, household, true, newConcepts())
		check(t, v)
		return v
	}
	t.Run("deleted while it is open", func(t *testing.T) {
		t.Parallel()
		v := opened(t)
		if err := os.RemoveAll(filepath.Join(v.dir, "cache")); err != nil {
			t.Skip(err) // an open file cannot be deleted everywhere
		}
		check(t, v)
		v.write("memory/new.md", "The zeppelin landed.\n")
		v.status()
		if got := v.paths("zeppelin landed"); fmt.Sprint(got) != "[memory/new.md]" {
			t.Errorf("a change afterwards: %v", got)
		}
		v.reopen(withConcepts())
		check(t, v)
	})
	t.Run("made by two processes at once", func(t *testing.T) {
		t.Parallel()
		for range 20 {
			v := newVault(t, household)
			other := index.New(index.Options{Workspace: v.dir, File: v.file(), Log: slog.New(slog.DiscardHandler)})
			var wg sync.WaitGroup
			for _, x := range []*index.Index{v.Index, other} {
				wg.Go(func() {
					if hits, err := x.Search(t.Context(), memory.Query{Text: "router", Max: -1}); err != nil || len(hits) != 1 {
						t.Errorf("%v, %v", hits, err)
					}
				})
			}
			wg.Wait()
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("damaged in the middle", func(t *testing.T) {
		t.Parallel()
		for _, part := range []int{100, 4096, 5 * 4096, 12 * 4096} {
			v := opened(t)
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(v.file())
			if err != nil {
				t.Fatal(err)
			}
			for i := part; i < min(part+8192, len(b)); i++ {
				b[i] ^= 0x5a
			}
			v.write("cache/memory.db", string(b))
			v.reopen(withConcepts())
			check(t, v)
		}
	})
	t.Run("of another version", func(t *testing.T) {
		t.Parallel()
		v := opened(t)
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		v.sql("DROP TABLE vector; DROP TABLE sign; PRAGMA user_version = 1")
		v.reopen(withConcepts())
		check(t, v)
	})
	t.Run("without access", func(t *testing.T) {
		t.Parallel()
		v := newVault(t, household)
		v.write("cache", "a file")
		if hits, err := v.Search(t.Context(), memory.Query{Text: "router"}); err == nil {
			t.Errorf("%v", hits)
		}
	})
	t.Run("locked by another process", func(t *testing.T) {
		t.Parallel()
		v := opened(t)
		c, err := sqlite.OpenConn(v.file(), sqlite.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := sqlitex.ExecuteTransient(c, "BEGIN IMMEDIATE", nil); err != nil {
			t.Fatal(err)
		}
		check(t, v) // nothing has changed
		v.write("memory/new.md", "The zeppelin landed.\n")
		time.Sleep(1100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		// It ends although the other process does not.
		if _, err := v.Search(ctx, memory.Query{Text: "zeppelin"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if got := v.paths("zeppelin"); fmt.Sprint(got) != "[memory/new.md]" {
				t.Errorf("%v", got)
			}
		})
		time.Sleep(50 * time.Millisecond)
		soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := v.Search(soon, memory.Query{Text: "router"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while another search waits: %v", err)
		}
		if err := sqlitex.ExecuteTransient(c, "ROLLBACK", nil); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// skipped returns what is not searched, and why.
func (v *vault) skipped() string {
	v.t.Helper()
	var out []string
	for _, s := range v.status().Skipped {
		out = append(out, s.Path+": "+s.Reason)
	}
	return strings.Join(out, ", ")
}

// sql runs a script on the closed file of the index.
func (v *vault) sql(script string) {
	v.t.Helper()
	c, err := sqlite.OpenConn(v.file(), sqlite.OpenReadWrite)
	if err == nil {
		err = errors.Join(sqlitex.ExecuteScript(c, script, nil), c.Close())
	}
	if err != nil {
		v.t.Fatal(err)
	}
}
