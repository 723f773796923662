package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/backup"
	"github.com/chela-ai/chela/internal/core/media"
)

// TestBackup makes copies of the database without an engine, and with one that has it
// open.
func TestBackup(t *testing.T) {
	for name, running := range map[string]bool{"no engine runs": false, "an engine runs": true} {
		t.Run(name, func(t *testing.T) {
			s := home(t, offlineConf)
			e := begun(t, s)
			if !running {
				if err := e.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			picture(t, s.State, "0")
			store, dir := Build(standardBuild.registry).Store, t.TempDir()
			file := filepath.Join(dir, "copy.db")
			if err := store.Backup(t.Context(), s, file); err != nil {
				t.Fatal(err)
			}
			if what, err := store.Verify(t.Context(), file); err != nil || what == "" {
				t.Errorf("the copy: %q, %v", what, err)
			}
			inside := filepath.Join(s.State, "workspace", "copy.db")
			if err := os.MkdirAll(filepath.Dir(inside), 0o700); err != nil {
				t.Fatal(err)
			}
			link := filepath.Join(dir, "link")
			if err := os.Symlink(filepath.Dir(inside), link); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{inside, filepath.Join(link, "copy.db")} {
				if err := store.Backup(t.Context(), s, file); err == nil ||
					!strings.Contains(err.Error(), "in the workspace of the agent main") {
					t.Errorf("a copy where the assistant can read it: %v", err)
				}
				if _, err := os.Stat(inside); err == nil {
					t.Error("it was written")
				}
			}
			if err := os.Mkdir(filepath.Join(s.State, "backups"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := store.Backup(t.Context(), s, filepath.Join(s.State, "backups", "copy.db")); err != nil {
				t.Errorf("a copy in the state directory: %v", err)
			}
			if err := store.Backup(t.Context(), s, dir); err == nil {
				t.Error("a copy in place of a folder is reported as made")
			}
			if n := pictures(t, file); n != 1 {
				t.Errorf("the copy has %d pictures, want 1", n)
			}
			blocked := filepath.Join(dir, "blocked.db")
			write(t, blocked+"."+media.Dir, "no folder")
			if err := store.Backup(t.Context(), s, blocked); err == nil {
				t.Error("a copy without its pictures is reported as made")
			}
		})
	}
}

// TestBackupMedia changes the media files while the database is copied.
func TestBackupMedia(t *testing.T) {
	state, file := t.TempDir(), filepath.Join(t.TempDir(), "copy.db")
	old := picture(t, state, "0")
	err := backup.WithMedia(state, file, func() error {
		picture(t, state, "1")
		return os.Remove(old)
	})
	if n := pictures(t, file); n != 2 || err != nil {
		t.Errorf("the copy has %d pictures, %v; want the one that was removed meanwhile, and the new one", n, err)
	}
	broken := errors.New("broken")
	if err := backup.WithMedia(state, file, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	err = backup.WithMedia(state, file, func() error {
		if err := os.RemoveAll(file + "." + media.Dir); err != nil {
			t.Fatal(err)
		}
		write(t, file+"."+media.Dir, "no folder")
		return nil
	})
	if err == nil {
		t.Error("a copy without the new pictures is reported as made")
	}
}

// picture stores a file among the media files of a state directory.
func picture(t *testing.T, state, digit string) string {
	t.Helper()
	path := filepath.Join(state, media.Dir, strings.Repeat(digit, 32))
	write(t, path, "a picture")
	return path
}

// pictures returns the number of media files of a copy.
func pictures(t *testing.T, file string) int {
	t.Helper()
	list, err := os.ReadDir(file + "." + media.Dir)
	if err != nil {
		t.Error(err)
	}
	return len(list)
}
