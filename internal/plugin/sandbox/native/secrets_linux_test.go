package native

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

// TestSecrets finds private files in toolchains, and looks again into folders that changed.
func TestSecrets(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, toolchains[0])
	below := filepath.Join(dir, "a", "b")
	put := func(name string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, "x.key"))
	put(filepath.Join(below, "plain"))
	var s secrets
	found := func(name string) bool { return slices.Contains(s.of(home), name) }
	settle := func() { // until the times of the folders are old enough to tell later changes
		t.Helper()
		waittest.Until(t, "older folders", func() bool {
			info, err := os.Stat(below)
			return err == nil && time.Since(changedAt(info)) > tick
		})
	}
	if !found(filepath.Join(dir, "x.key")) || found(filepath.Join(below, "y.key")) {
		t.Errorf("at first: %q", s.of(home))
	}
	if len(s.known) > 0 {
		t.Errorf("folders that have just changed are known: %v", s.known)
	}
	settle()
	s.of(home)
	f := s.known[below]
	f.private = append(f.private, "not looked for again")
	s.known[below] = f
	if !found("not looked for again") {
		t.Error("a folder is looked into although it did not change")
	}
	put(filepath.Join(below, "y.key"))
	if !found(filepath.Join(below, "y.key")) || found("not looked for again") {
		t.Errorf("a new file: %q", s.of(home))
	}
	settle()
	s.of(home)
	if err := errors.Join(os.Rename(below, below+"2"), os.Mkdir(below, 0o700)); err != nil {
		t.Fatal(err)
	}
	if found(filepath.Join(below, "y.key")) || !found(filepath.Join(below+"2", "y.key")) {
		t.Errorf("another folder in its place: %q", s.of(home))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if found(filepath.Join(dir, "x.key")) || len(s.known) > 0 && s.known[dir].info != nil {
		t.Errorf("a folder that is gone: %q", s.of(home))
	}
}
