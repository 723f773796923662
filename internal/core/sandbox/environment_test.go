package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	got := sandbox.Environment([]string{"PATH=/bin", "HOME=/home/p", "OPENAI_API_KEY=s3cret", "LANG=C", "nonsense"},
		map[string]string{"LANG": "de", "TOKEN": "t"})
	if want := []string{"HOME=/home/p", "LANG=de", "PATH=/bin", "TOKEN=t"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no permissions")
	}
	dir := t.TempDir()
	for name, perm := range map[string]os.FileMode{"tool": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), perm); err != nil {
			t.Fatal(err)
		}
	}
	look := sandbox.Look([]string{"PATH=/no/such/folder::" + dir})
	for name, want := range map[string]string{
		"tool":    filepath.Join(dir, "tool"),
		"text":    "",
		"missing": "",
		"../tool": "",
		"":        "",
	} {
		if got := look(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
