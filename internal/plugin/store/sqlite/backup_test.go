package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/store"
)

func mustSet(tb testing.TB, d *DB, name, value string) {
	tb.Helper()
	if err := d.Update(tb.Context(), store.Synced, func(tx store.Tx) error { return tx.SetSetting(name, value) }); err !=
		nil {
		tb.Fatal(err)
	}
}

func settingOf(tb testing.TB, d *DB, name string) (v string) {
	tb.Helper()
	if err := d.View(tb.Context(), func(r store.Reader) (err error) {
		v, err = r.Setting(name)
		return err
	}); err != nil {
		tb.Fatal(err)
	}
	return v
}

// putUnclosed writes the files that a kill of the process that uses d leaves, with
// commits that are only in the log, and returns the path of the database.
func putUnclosed(t *testing.T, d *DB) string {
	t.Helper()
	db, err := os.ReadFile(d.opts.Path)
	log, lerr := os.ReadFile(d.opts.Path + "-wal")
	if err := errors.Join(err, lerr); err != nil || len(log) == 0 {
		t.Fatalf("%d bytes in the log, %v", len(log), err)
	}
	return put(t, db, log)
}

// checkPrivate checks that only the owner can read the databases and their logs.
func checkPrivate(t *testing.T, paths ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	for _, path := range paths {
		files, err := filepath.Glob(path + "*")
		if err != nil || !slices.Contains(files, path) {
			t.Errorf("%s: files %q, %v", path, files, err)
		}
		for _, file := range files {
			if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, %v; want 0600", file, fi.Mode(), err)
			}
		}
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openAt(t, filepath.Join(dir, "it's ä 100%?#.db")) // the name needs escaping in a URI
	conversations(t, d, 0, 5)
	copied := filepath.Join(dir, "copy'.db")

	// Each commit writes both settings, so a consistent backup has equal values.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := d.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
				return errors.Join(tx.SetSetting("a", fmt.Sprint(n)), tx.SetSetting("b", fmt.Sprint(n)))
			}); err != nil {
				t.Error(err)
			}
		}
	})
	steps, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := d.Backup(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
		s, err := Verify(t.Context(), copied)
		if err != nil {
			t.Fatal(err)
		}
		if s.Sessions != 5 || s.Version != int64(len(steps)) || s.Entries == 0 || s.Runs != 5 {
			t.Errorf("summary: %+v", s)
		}
	}
	close(stop)
	wg.Wait()
	checkPrivate(t, copied)

	t.Run("restored on another machine", func(t *testing.T) {
		dst := filepath.Join(t.TempDir(), "chela.db")
		if old, err := Restore(t.Context(), copied, dst); err != nil || old != "" {
			t.Fatalf("restore: renamed the old one to %q, %v", old, err)
		}
		checkPrivate(t, dst)
		have := openAt(t, dst)
		if a, b := settingOf(t, have, "a"), settingOf(t, have, "b"); a != b {
			t.Errorf("half a commit: a %s, b %s", a, b)
		}
		if diff := cmp.Diff(fmt.Sprint(readSessions(t, d.opts.Path)), fmt.Sprint(readSessions(t, dst))); diff != "" {
			t.Errorf("sessions (-want +got):\n%s", diff)
		}
	})
	t.Run("the replaced database is renamed", func(t *testing.T) {
		dst := filepath.Join(t.TempDir(), "chela.db")
		old := openAt(t, dst)
		conversations(t, old, 7, 8)
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		renamed, err := Restore(t.Context(), copied, dst)
		if err != nil {
			t.Fatal(err)
		}
		if n, m := len(readSessions(t, dst)), len(readSessions(t, renamed)); n != 5 || m != 1 {
			t.Errorf("%d sessions restored, %d in the old database; want 5 and 1", n, m)
		}
		checkPrivate(t, dst, renamed)
	})
	t.Run("the log of a database that was not closed stays with it", func(t *testing.T) {
		for _, missing := range []bool{false, true} { // somebody has deleted the database, but not its log
			killed := openAt(t, filepath.Join(t.TempDir(), "chela.db"))
			conversations(t, killed, 7, 8)
			dst := putUnclosed(t, killed)
			if missing {
				if err := os.Remove(dst); err != nil {
					t.Fatal(err)
				}
			}
			renamed, err := Restore(t.Context(), copied, dst)
			if err != nil || (renamed == "") != missing {
				t.Fatalf("restore: renamed the old one to %q, %v", renamed, err)
			}
			have := openAt(t, dst)
			if err := have.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(fmt.Sprint(readSessions(t, copied)), fmt.Sprint(readSessions(t, dst))); diff != "" {
				t.Errorf("restored sessions (-want +got):\n%s", diff)
			}
			if missing {
				continue
			}
			if diff := cmp.Diff(fmt.Sprint(readSessions(t, killed.opts.Path)), fmt.Sprint(readSessions(t, renamed))); diff !=
				"" {
				t.Errorf("sessions of the old database (-want +got):\n%s", diff)
			}
		}
	})
	t.Run("a log that cannot be moved stays, with its database", func(t *testing.T) {
		killed := openAt(t, filepath.Join(t.TempDir(), "chela.db"))
		conversations(t, killed, 7, 8)
		source := putUnclosed(t, killed)
		// The old database can get the time in its name, and its log would exceed the
		// length that file systems allow.
		dst := filepath.Join(filepath.Dir(source), strings.Repeat("x", 255-len(".old-")-len(timeSuffix)))
		for _, suffix := range []string{"", "-wal"} {
			if err := os.Rename(source+suffix, dst+suffix); err != nil {
				t.Fatal(err)
			}
		}
		if renamed, err := Restore(t.Context(), copied, dst); err == nil || renamed != "" {
			t.Errorf("restore: renamed the old one to %q, %v", renamed, err)
		}
		if diff := cmp.Diff(fmt.Sprint(readSessions(t, killed.opts.Path)), fmt.Sprint(readSessions(t, dst))); diff != "" {
			t.Errorf("sessions of the old database (-want +got):\n%s", diff)
		}
		if files, err := filepath.Glob(dst + ".*"); err != nil || len(files) > 0 {
			t.Errorf("left over: %q, %v", files, err)
		}
	})
	t.Run("a backup with a log of its own", func(t *testing.T) {
		other := openAt(t, filepath.Join(t.TempDir(), "chela.db"))
		conversations(t, other, 7, 9)
		dst := filepath.Join(t.TempDir(), "chela.db")
		if _, err := Restore(t.Context(), putUnclosed(t, other), dst); err != nil {
			t.Fatal(err)
		}
		if n := len(readSessions(t, dst)); n != 2 {
			t.Errorf("%d sessions restored, want 2", n)
		}
	})
	t.Run("leftovers of a killed process are replaced", func(t *testing.T) {
		leave := func(names ...string) {
			for _, name := range names {
				if err := os.WriteFile(name, []byte(strings.Repeat("half a file", 1000)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		only := func(dir string, want ...string) {
			t.Helper()
			got, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("files %q, %v; want %q", got, err, want)
			}
			checkPrivate(t, want...)
		}
		dir := t.TempDir()
		backup, dst := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
		leave(backup, backup+".part")
		if err := d.Backup(t.Context(), backup); err != nil {
			t.Fatal(err)
		}
		only(dir, backup)
		leave(dst+".part", dst+".part.part")
		if _, err := Restore(t.Context(), backup, dst); err != nil {
			t.Fatal(err)
		}
		only(dir, backup, dst)
		leave(dst+".salvaged", dst+".salvaged-wal", dst+".salvaged.part", dst+".salvaged.part-wal")
		report, err := Recover(t.Context(), dst)
		if err != nil {
			t.Fatal(err)
		}
		only(dir, backup, dst, report.Renamed)
		if n := len(readSessions(t, dst)); n != 5 {
			t.Errorf("%d sessions are left, want 5", n)
		}
	})
	t.Run("a file that is not a backup is refused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x")
		dst := filepath.Join(t.TempDir(), "chela.db")
		for _, c := range []struct {
			name    string
			content string
		}{{"text", strings.Repeat("no database\n", 1000)}, {"empty file", ""}} {
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Restore(t.Context(), path, dst); err == nil {
				t.Errorf("%s: no error", c.name)
			}
		}
		if _, err := Verify(t.Context(), path+"none"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("missing file: %v", err)
		}
		if _, err := os.Stat(dst); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("something was restored: %v", err)
		}
	})
	t.Run("damage is detected", func(t *testing.T) {
		b, err := os.ReadFile(copied)
		if err != nil {
			t.Fatal(err)
		}
		clear(b[8192:20480])
		path := put(t, b, nil)
		if _, err := Verify(t.Context(), path); !errors.As(err, new(*DamagedError)) {
			t.Errorf("verify: %v", err)
		}
	})
	t.Run("a row that its index does not contain is detected", func(t *testing.T) {
		db := openAt(t, filepath.Join(t.TempDir(), "chela.db"))
		mustSet(t, db, "needle", "1")
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := db.Backup(t.Context(), copied); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(copied)
		if err != nil || strings.Count(string(b), "needle") != 2 {
			t.Fatalf("%d times in the file, %v", strings.Count(string(b), "needle"), err)
		}
		b[strings.LastIndex(string(b), "needle")] = 'N'
		path := put(t, b, nil)
		_, verr := Verify(t.Context(), path)
		for what, err := range map[string]error{"verify": verr, "check": openAt(t, path).Check(t.Context())} {
			if !errors.As(err, new(*DamagedError)) || !strings.Contains(err.Error(), "index") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()
	d := open(t)
	conversations(t, d, 0, 30)
	if err := d.Check(t.Context()); err != nil {
		t.Errorf("intact file: %v", err)
	}
	if _, err := d.writer.c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(d.opts.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 3*4096), fi.Size()-6*4096); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); !errors.As(err, new(*DamagedError)) {
		t.Errorf("damaged file: have %v, want a *DamagedError", err)
	}
}
