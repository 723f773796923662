package folder

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

func TestStamp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := Limits{Files: 5, Bytes: 100}
	if s, err := Stamp(dir, l); s != "" || err != nil {
		t.Errorf("the stamp of a file that was changed now: %q, %v", s, err)
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return
	}
	now := func() string {
		s, err := stamp(dir, l, time.Now().Add(time.Hour)) // as if the last change was long ago
		if err != nil || s == "" {
			t.Fatalf("%q, %v", s, err)
		}
		return s
	}
	first := now()
	if now() != first {
		t.Error("the stamp changes by itself")
	}
	// A program can restore the size and the time of a file that it changed.
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "another stamp after a change", func() bool { // the clock of a file system has steps
		if err := os.WriteFile(file, []byte("X"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		return now() != first
	})
}
