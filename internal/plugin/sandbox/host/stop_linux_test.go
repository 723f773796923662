package host_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// TestRestless ends commands whose processes are hard to see: none lives for long, as each
// starts the next one and ends, or the only one executes a program all the time. A look at
// one process after the other can miss them.
func TestRestless(t *testing.T) {
	t.Parallel()
	const (
		relay  = `next() { echo x >>beat || exit; next & }; next & `
		again  = `echo x >>beat || exit; exec sh again`
		detach = `(setsid sh again >/dev/null 2>&1 3>&- &); `
	)
	size := func(dir string) int64 {
		info, err := os.Stat(filepath.Join(dir, "beat"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	for _, c := range []struct {
		name, script string
		stop         bool
	}{
		{"a relay, and the program ends", relay + "sleep 0.05", false},
		{"a relay, and it is stopped", relay + "sleep 9999", true},
		{"programs, and the program ends", detach + "sleep 0.05", false},
		{"programs, and it is stopped", detach + "sleep 9999", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 10 {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "again"), []byte(again), 0o600); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				p := plan(dir, c.script)
				p.Grace = 20 * time.Millisecond
				pr, err := host.Broker{}.Start(ctx, p, io.Discard)
				if err != nil {
					t.Fatal(err)
				}
				waittest.Until(t, "its processes run", func() bool { return size(dir) > 0 })
				if c.stop {
					cancel()
				}
				_, err = pr.Wait()
				cancel()
				if err != nil {
					t.Fatal(err)
				}
				before := size(dir)
				time.Sleep(20 * time.Millisecond) // the absence of a write has no event
				if after := size(dir); after != before {
					t.Errorf("a process still runs: %d bytes, then %d", before, after)
					if err := os.RemoveAll(dir); err != nil { // it ends without its folder
						t.Error(err)
					}
				}
			}
		})
	}
}
