package host_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// The test binary also acts as the process that is killed and as one that sweeps.
const (
	ownerEnv = "HOST_TEST_OWNER" // directory; runs the script in ownerScript
	sweepEnv = "HOST_TEST_SWEEP" // directory; sweeps and writes the result into it
	script   = "HOST_TEST_SCRIPT"
	adoptEnv = "HOST_TEST_ADOPT" // directory; runs the script repeatedly as a reaper and prints remaining children
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(ownerEnv) != "":
		if err := runOwner(os.Getenv(ownerEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case os.Getenv(sweepEnv) != "":
		dir := os.Getenv(sweepEnv)
		n, err := sweepDir(context.Background(), io.Discard, dir)
		if err := os.WriteFile(filepath.Join(dir, "swept"), fmt.Append(nil, n, " ", err), 0o600); err != nil {
			os.Exit(1)
		}
	case os.Getenv(adoptEnv) != "":
		if err := runReaper(os.Getenv(adoptEnv)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		host.SetSweepTime(waittest.Limit)
		flag.Parse()
		if err := flag.Set("test.parallel", "8"); err != nil { // the tests mostly wait for processes
			panic(err)
		}
		os.Exit(m.Run())
	}
}

// runOwner runs the script for a directory until it is killed.
func runOwner(dir string) error {
	mark, err := host.Mark(dir)
	if err != nil {
		return err
	}
	p, err := host.New(mark).Start(context.Background(), plan(dir, os.Getenv(script)), io.Discard)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

func plan(dir, script string) sandbox.Plan {
	return sandbox.Plan{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}}
}

func sweepDir(ctx context.Context, log io.Writer, dir string) (int, error) {
	mark, err := host.Mark(dir)
	if err != nil {
		return 0, err
	}
	return host.Sweep(ctx, slog.New(slog.NewTextHandler(log, nil)), mark)
}

// orphan runs a script under the mark of dir in a process that it then kills,
// and returns the process ids that the script wrote to files *.pid.
func orphan(t *testing.T, dir, text string, pids int) []int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), ownerEnv+"="+dir, script+"="+text)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var left []int
	waittest.Until(t, "the script runs", func() bool {
		left = nil
		names, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
		for _, name := range names {
			b, _ := os.ReadFile(name)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
				left = append(left, pid)
			}
		}
		return len(left) == pids
	})
	t.Cleanup(func() {
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return left
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(b, []byte(") Z "))
}

func count(pids []int) (n int) {
	for _, pid := range pids {
		if runs(pid) {
			n++
		}
	}
	return n
}

func TestSweep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		pids         int
	}{
		{"a child", "sleep 9999 & echo $! >a.pid; wait", 1},
		{"another session, forked twice",
			"(setsid sh -c 'sleep 9999 & echo $! >a.pid; wait' &) ; sleep 9999 & echo $! >b.pid; wait", 2},
		{"a cleared environment below a marked parent", "env -i sh -c '/bin/sleep 9999 & echo $! >a.pid; wait'; true", 1},
		{"a cleared environment, ignores TERM",
			"env -i sh -c '(trap \"\" TERM; exec /bin/sleep 9999) & echo $! >a.pid; wait'; true", 1},
		{"ignores TERM", "trap '' TERM; echo $$ >a.pid; while :; do sleep 0.01; done", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pids := orphan(t, dir, c.script, c.pids)
			if got := count(pids); got != c.pids {
				t.Fatalf("%d of %d processes outlived their owner; nothing is tested", got, c.pids)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			var log bytes.Buffer
			n, err := sweepDir(ctx, &log, dir)
			if err != nil || n < c.pids {
				t.Errorf("Sweep = %d, %v, want at least %d", n, err, c.pids)
			}
			if got := count(pids); got != 0 {
				t.Errorf("%d processes still run", got)
			}
			if lines := strings.Count(log.String(), "\n"); lines != n ||
				!strings.Contains(log.String(), fmt.Sprintf("pid=%d ", pids[0])) {
				t.Errorf("%d processes, log %q", n, log.String())
			}
			if n, err := sweepDir(t.Context(), &log, dir); n != 0 || err != nil {
				t.Errorf("second Sweep = %d, %v", n, err)
			}
		})
	}
	t.Run("TERM before KILL", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		orphan(t, dir, "exec >/dev/null 2>&1; trap 'echo bye >last; exit' TERM; echo $$ >a.pid; while :; do sleep 0.01; done",
			1)
		if n, err := sweepDir(t.Context(), io.Discard, dir); n == 0 || err != nil {
			t.Errorf("Sweep = %d, %v", n, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "last")); err != nil {
			t.Errorf("the process did not handle TERM: %v", err)
		}
	})
	t.Run("processes of another directory are not touched", func(t *testing.T) {
		t.Parallel()
		pids := orphan(t, t.TempDir(), "echo $$ >a.pid; exec sleep 9999", 1)
		if n, err := sweepDir(t.Context(), io.Discard, t.TempDir()); n != 0 || err != nil {
			t.Errorf("Sweep = %d, %v", n, err)
		}
		if n, err := host.Sweep(t.Context(), slog.New(slog.DiscardHandler), ""); n != 0 || err != nil {
			t.Errorf("Sweep without a mark = %d, %v", n, err)
		}
		if !runs(pids[0]) {
			t.Error("a command of another directory was ended")
		}
	})
	t.Run("commands of a running process are not touched", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		mark, err := host.Mark(dir)
		if err != nil {
			t.Fatal(err)
		}
		p, err := host.New(mark).Start(t.Context(), plan(dir, "sleep 9999"), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := sweepDir(t.Context(), io.Discard, dir); n != 0 || err != nil || !runs(p.PID()) {
			t.Errorf("Sweep = %d, %v; the command runs: %v", n, err, runs(p.PID()))
		}
		p.Kill()
		if _, err := p.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a sweep started by a command does not end its ancestors", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		text := fmt.Sprintf("echo $$ >a.pid; while kill -0 $PPID 2>/dev/null && [ ! -e go ]; do sleep 0.01; done; %s=%s %s; echo on >after; exec sleep 9999", sweepEnv, dir, os.Args[0])
		pids := orphan(t, dir, text, 1)
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the parent continues after the sweep", func() bool {
			_, err := os.Stat(filepath.Join(dir, "after"))
			return err == nil
		})
		if got, _ := os.ReadFile(filepath.Join(dir, "swept")); string(got) != "0 <nil>" || !runs(pids[0]) {
			t.Errorf("Sweep = %q", got)
		}
	})
}

func BenchmarkSweep(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if n, err := sweepDir(b.Context(), io.Discard, dir); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}
