package app

import (
	"path/filepath"
	"testing"

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
			store, dir := Build(standardBuild.registry).Store, t.TempDir()
			file := filepath.Join(dir, "copy.db")
			if err := store.Backup(t.Context(), s, file); err != nil {
				t.Fatal(err)
			}
			if what, err := store.Verify(t.Context(), file); err != nil || what == "" {
				t.Errorf("the copy: %q, %v", what, err)
			}
			if err := store.Backup(t.Context(), s, dir); err == nil {
				t.Error("a copy in place of a folder is reported as made")
			}
			write(t, filepath.Join(s.State, media.Dir, "0123456789abcdef0123456789abcdef"), "a picture")
			blocked := filepath.Join(dir, "blocked.db")
			write(t, blocked+"."+media.Dir, "no folder")
			if err := store.Backup(t.Context(), s, blocked); err == nil {
				t.Error("a copy without its pictures is reported as made")
			}
		})
	}
}
