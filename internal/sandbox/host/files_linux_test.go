package host_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/sandbox/host"
)

// Nothing stays open of a program that has ended, or never began. It is not
// parallel: others open files.
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
				t.Error("a program that is not there has begun")
			}
		}
	}
	run() // what is opened once is open now
	before := files()
	for range 10 {
		run()
	}
	if after := files(); after > before {
		t.Errorf("%d files are open, before %d", after, before)
	}
}
