package host_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// No file stays open for a program that has ended or could not start. The test
// is not parallel, because other tests open files.
func TestFilesAreClosed(t *testing.T) {
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	run := func() {
		for _, size := range []*sandbox.Size{nil, {Rows: 30, Cols: 120}} {
			p := plan(t.TempDir(), "echo x")
			p.Terminal = size
			if size == nil {
				p.Stderr = io.Discard
			}
			pr, err := host.Broker{}.Start(t.Context(), p, io.Discard)
			if errors.Is(err, sandbox.ErrNoTerminal) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := pr.Wait(); err != nil {
				t.Error(err)
			}
			p.Path = "/no/such/program"
			if _, err := (host.Broker{}).Start(t.Context(), p, io.Discard); err == nil {
				t.Error("a missing program was started")
			}
		}
	}
	run() // files that are opened once are open from here on
	before := files()
	for range 10 {
		run()
	}
	if after := files(); after > before {
		t.Errorf("%d files are open, want %d", after, before)
	}
}
