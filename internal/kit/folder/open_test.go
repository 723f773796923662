//go:build unix

package folder_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/kit/folder"
)

// TestOpen opens regular files only, without waiting.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o600),
		os.Symlink("file", filepath.Join(dir, "link")),
		os.Symlink("/dev/zero", filepath.Join(dir, "device")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Symlink("pipe", filepath.Join(dir, "to pipe")), os.Mkdir(filepath.Join(dir, "folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"file":    "",
		"link":    "",
		"pipe":    "not a regular file",
		"to pipe": "not a regular file",
		"folder":  "not a regular file",
		"device":  " ",
	} {
		t.Run("A1 "+name, func(t *testing.T) {
			b, err := folder.Read(root, name, 5)
			if want == "" && (err != nil || string(b) != "12345") ||
				want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q, %v", b, err)
			}
			b, err = folder.ReadPath(filepath.Join(dir, name), 5)
			if (err == nil) != (want == "") || want != "" && !errors.Is(err, folder.ErrNotRegular) {
				t.Errorf("by its path: %q, %v", b, err)
			}
			if b, err := folder.Read(root, name, 4); err == nil {
				t.Errorf("more than the limit: %q", b)
			}
		})
	}
}
