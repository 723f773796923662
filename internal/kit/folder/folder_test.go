package folder_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/folder"
	"github.com/chela-ai/chela/internal/kit/needtest"
)

var limits = folder.Limits{Files: 5, Bytes: 1000}

// fill writes files, whose names end in a star if they are executable.
func fill(t testing.TB, dir string, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		name, executable := strings.CutSuffix(name, "*")
		mode := os.FileMode(0o600)
		if executable {
			mode = 0o700
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func hash(t testing.TB, dir string) string {
	t.Helper()
	sum, err := folder.Hash(dir, folder.Limits{Files: 1000, Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestHash(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs modes of files")
	}
	dir := fill(t, t.TempDir(),
		map[string]string{"HOOK.md": "a", "handler*": "#!/bin/sh\n", "lib/a.txt": "b", "lib-a": "c"})
	// Configurations have hashes: the algorithm must not change.
	const want = "151ab6a708d1f842501786a5d221eb893e0515883ff68b9bd43d4d917d30b365"
	if got := hash(t, dir); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, change := range []func() error{
		func() error { return os.Chmod(filepath.Join(dir, "lib-a"), 0o700) },
		func() error { return os.Rename(filepath.Join(dir, "lib-a"), filepath.Join(dir, "lib-b")) },
		func() error { return os.WriteFile(filepath.Join(dir, "lib", "a.txt"), []byte("B"), 0o600) },
		func() error { return os.WriteFile(filepath.Join(dir, "lib", "more"), nil, 0o600) },
	} {
		before := hash(t, dir)
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if hash(t, dir) == before {
			t.Error("the hash is the same after a change")
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(dir string) error
		want string
	}{
		{"too many files", func(dir string) error {
			for _, n := range "abcdef" {
				if err := os.WriteFile(filepath.Join(dir, string(n)), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, "more than 5 files"},
		{"too many folders", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "a/b/c/d/e/f"), 0o700) },
			"more than 5 files"},
		{"too large", func(dir string) error { return os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1001), 0o600) },
			"or 1000 bytes"},
		{"a link to a file", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "a")) },
			"a is not a regular file"},
		{"a link in the folder", func(dir string) error { return os.Symlink(".", filepath.Join(dir, "a")) },
			"a is not a regular file"},
		{"none", func(string) error { return nil }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(dir); err != nil {
				needtest.Missing(t, "files as the test makes them: "+err.Error())
			}
			_, err1 := folder.Hash(dir, limits)
			_, err2 := folder.Stamp(dir, limits)
			err3 := folder.Copy(dir, filepath.Join(t.TempDir(), "to"), limits)
			for _, err := range []error{err1, err2, err3} {
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
			}
		})
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	dir := fill(t, t.TempDir(), map[string]string{"a*": "1", "b/c/d": "2"})
	to := filepath.Join(t.TempDir(), "to")
	if err := folder.Copy(dir, to, limits); err != nil || hash(t, dir) != hash(t, to) {
		t.Error(err)
	}
	if err := folder.Copy(dir, to, limits); err == nil {
		t.Error("copied into a folder that exists")
	}
}
