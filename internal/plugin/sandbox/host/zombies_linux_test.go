package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

const reaperRuns = 25

// runReaper runs the script repeatedly as a process that adopts orphans, and
// prints the children that remain.
func runReaper(dir string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	for range reaperRuns {
		pl := plan(dir, os.Getenv(script))
		pl.Grace = 20 * time.Millisecond
		p, err := host.Broker{}.Start(context.Background(), pl, io.Discard)
		if err != nil {
			return err
		}
		if e, err := p.Wait(); err != nil || e.Left == 0 {
			return errors.Join(err, fmt.Errorf("%+v", e))
		}
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		stat, _ := os.ReadFile(name)
		if _, rest, _ := strings.Cut(string(stat), ") "); len(rest) > 2 &&
			strings.HasPrefix(rest[2:], fmt.Sprint(os.Getpid(), " ")) {
			fmt.Printf("%s", stat)
		}
	}
	return err
}

func TestReaper(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"R18 forked twice, own session, ignores TERM": `(setsid sh -c 'trap "" TERM HUP; setsid sh -c "trap \"\" TERM HUP; sleep 300" & sleep 300' &); sleep 0.02`,
		"a child and a grandchild in the session":     "(sleep 300 & sleep 300 &) ; (true &); sleep 0.02",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), adoptEnv+"="+t.TempDir(), script+"="+text)
			out, err := cmd.CombinedOutput()
			if err != nil || len(out) > 0 {
				t.Errorf("%v, left:\n%s", err, out)
			}
		})
	}
}
