package app

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	lib "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// smallDisk returns a start on a disk of 8 MB.
func smallDisk(t *testing.T) cli.Start {
	t.Helper()
	s := home(t, offlineConf)
	s.State = t.TempDir()
	if err := unix.Mount("chela-test", s.State, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("mounting needs root: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.State, unix.MNT_DETACH) })
	return s
}

func TestDisk(t *testing.T) {
	t.Run("a gateway is not ready while the disk is full", func(t *testing.T) {
		s := smallDisk(t)
		e, err := standardBuild.serve(t.Context(), s, cli.Listen{Port: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(t.Context())
		ready := e.(*Engine).ready
		if got := ready(t.Context())["store"]; got != "ok" {
			t.Errorf("before: %s", got)
		}
		fill := filepath.Join(s.State, "fill")
		if err := os.WriteFile(fill, make([]byte, 16<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("the disk was not filled: %v", err)
		}
		if got := ready(t.Context())["store"]; !strings.Contains(got, "full") {
			t.Errorf("with a full disk: %s", got)
		}
		if err := os.Remove(fill); err != nil {
			t.Fatal(err)
		}
		if got := ready(t.Context())["store"]; got != "ok" {
			t.Errorf("with room again: %s", got)
		}
	})
	for _, used := range []bool{false, true} {
		t.Run("a state directory that cannot be written is reported with a hint", func(t *testing.T) {
			s := smallDisk(t)
			if used {
				if err := begun(t, s).Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Chmod(s.State, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("", s.State, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				t.Fatal(err)
			}
			_, err := standardBuild.start(t.Context(), s)
			if err == nil || !strings.Contains(err.Error(), "state directory "+s.State+" cannot be written") ||
				!strings.Contains(chela.HintOf(err), "--state-dir") {
				t.Errorf("%v (%s)", err, chela.HintOf(err))
			}
		})
	}
}

// TestLostDatabase takes away the content of the database of a state directory that was used.
func TestLostDatabase(t *testing.T) {
	const lost, damaged = "was used before", "chela.db is damaged"
	for name, c := range map[string]struct {
		lose func(string) error
		said string
	}{
		"an empty database":      {func(path string) error { return os.Truncate(path, 0) }, lost},
		"no database":            {os.Remove, lost},
		"a database of one byte": {func(path string) error { return os.Truncate(path, 1) }, damaged},
		"another byte":           {func(path string) error { return os.WriteFile(path, []byte{0}, 0o600) }, damaged},
		"the begin of a header":  {func(path string) error { return os.Truncate(path, 16) }, damaged},
		"a header":               {func(path string) error { return os.Truncate(path, 100) }, damaged},
		"the first page":         {func(path string) error { return os.Truncate(path, 4096) }, damaged},
		"zeros": {func(path string) error { return os.WriteFile(path, make([]byte, 8192), 0o600) },
			damaged},
		"a text": {
			func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("text\n"), 2000), 0o600) }, damaged},
		"a database without tables": {func(path string) error { return instead(path, "PRAGMA user_version = 0") }, lost},
		"a database of another program": {func(path string) error { return instead(path, "CREATE TABLE song (title TEXT)") },
			damaged},
	} {
		lose := c.lose
		t.Run(name+" beside a state that was used is refused, until it is salvaged", func(t *testing.T) {
			s := home(t, offlineConf)
			if err := begun(t, s).Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(s.State, "chela.db")
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			_, err := standardBuild.start(t.Context(), s)
			if err == nil || strings.Count(err.Error(), c.said) != 1 || strings.Count(err.Error(), path) != 1 ||
				!strings.Contains(chela.HintOf(err), "chela backup salvage") {
				t.Fatalf("%v (%s)", err, chela.HintOf(err))
			}
			if again, err2 := standardBuild.start(t.Context(), s); err2 == nil || err2.Error() != err.Error() {
				t.Fatalf("the second start: %v, %v", again, err2)
			}
			if _, err := sqlite.Verify(t.Context(), path); err == nil {
				t.Error("it is a good backup")
			}
			store := Build(standardBuild.registry).Store
			if err := store.Backup(t.Context(), s, filepath.Join(t.TempDir(), "b.db")); err == nil {
				t.Error("a backup of nothing was made")
			}
			if report, err := store.Salvage(t.Context(), s); err != nil || !strings.HasPrefix(report[0], "saved 0 rows") {
				t.Fatalf("salvage: %q %v", report, err)
			}
			health(t, begun(t, s))
		})
	}
	t.Run("a new state directory is not refused", func(t *testing.T) {
		s := home(t, offlineConf)
		if statedir.Used(s.State) {
			t.Error("it counts as used")
		}
		begun(t, s)
	})
}

// instead replaces a database by another one.
func instead(path, sql string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	c, err := lib.OpenConn(path)
	if err != nil {
		return err
	}
	return errors.Join(sqlitex.ExecuteScript(c, sql+";", nil), c.Close())
}
