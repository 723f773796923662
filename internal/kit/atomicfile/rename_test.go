package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

func TestRename(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	temp, dst := filepath.Join(dir, "temp"), filepath.Join(dir, "dst")
	if err := atomicfile.Create(temp); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(temp); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("created %v, %v", info, err)
	}
	if err := atomicfile.Create(temp); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created twice: %v", err)
	}
	if err := errors.Join(os.WriteFile(temp, []byte("new"), 0o600), os.WriteFile(dst, []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Rename(temp, dst); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(dst); err != nil || string(b) != "new" {
		t.Errorf("Rename: %q, %v", b, err)
	}
	if err := atomicfile.Rename(temp, dst); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Rename of a missing file: %v", err)
	}
	if err := errors.Join(os.WriteFile(temp, nil, 0o600), os.Mkdir(filepath.Join(dir, "d"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Rename(temp, filepath.Join(dir, "d")); err == nil {
		t.Error("Rename replaced a directory")
	}
	if err := atomicfile.SyncDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("SyncDir of a missing directory: %v", err)
	}
}
