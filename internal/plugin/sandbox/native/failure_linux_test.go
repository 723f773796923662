package native_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// noNamespaces marks a process that is to find no namespaces.
const noNamespaces = "CHELA_TEST_NO_NAMESPACES"

// TestE2NotEffective refuses commands where namespaces cannot be made.
func TestE2NotEffective(t *testing.T) {
	if os.Getenv(noNamespaces) == "" {
		sandboxtest.NeedsNamespaces(t)
		cmd := exec.CommandContext(t.Context(), "unshare", "-Ur", "/bin/sh", "-c",
			`echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -test.run='^TestE2NotEffective$' -test.v`,
			"/proc/self/exe")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args[len(cmd.Args)-1] = self
		cmd.Env = append(os.Environ(), noNamespaces+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	w := newWork(t, native.Options{})
	if l := w.broker.Level(t.Context()); l.Complete || l.Name != "none" || l.Reason == "" ||
		!strings.Contains(l.Hint, "max_user_namespaces") {
		t.Errorf("level %+v", l)
	}
	p := sandbox.Plan{
		Path:   "/bin/sh",
		Argv:   []string{"sh", "-c", "echo > ran"},
		Dir:    w.rights.Workspace,
		Env:    []string{"PATH=/bin"},
		Rights: &w.rights,
	}
	if _, err := w.broker.Start(t.Context(), p, new(bytes.Buffer)); err == nil {
		t.Error("the command was started")
	}
	if _, err := os.Stat(filepath.Join(w.rights.Workspace, "ran")); err == nil {
		t.Error("the command ran")
	}
	// The same when the namespaces are used up later: a person is asked from then on.
	w.broker.Believe(sandbox.Level{Name: "full", Complete: true})
	if _, err := w.broker.Start(t.Context(), p, new(bytes.Buffer)); err == nil {
		t.Error("the command was started")
	}
	if l := w.broker.Level(t.Context()); l.Complete {
		t.Errorf("level %+v after a command could not be started", l)
	}
}

// TestLauncherKilled kills the launcher that is ready and the one that runs.
func TestLauncherKilled(t *testing.T) {
	t.Run("ready", func(t *testing.T) {
		w := newWork(t, native.Options{})
		w.run("true")
		w.broker.Settle()
		w.broker.KillReady()
		if out, e := w.run("echo fine"); out != "fine\n" || e.Code != 0 {
			t.Errorf("got %q %+v", out, e)
		}
	})
	t.Run("running", func(t *testing.T) {
		w := newWork(t, native.Options{})
		var out bytes.Buffer
		p, err := w.broker.Start(t.Context(), sandbox.Plan{
			Path:   "/bin/sh",
			Argv:   []string{"sh", "-c", "sleep 60"},
			Dir:    w.rights.Workspace,
			Env:    []string{"PATH=/bin"},
			Rights: &w.rights,
		}, &out)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if e, err := p.Wait(); err != nil || e.Code != -1 || e.Signal != "SIGKILL" {
			t.Errorf("got %+v, %v", e, err)
		}
	})
}

// TestLauncherKilledAnywhere kills the launcher at many points of a command's
// life. The command runs once or not at all, the caller is told, nothing of it
// is left, and the next command works.
func TestLauncherKilledAnywhere(t *testing.T) {
	pgrep := needtest.Program(t, "pgrep")
	w := newWork(t, native.Options{})
	w.run("true")
	log := filepath.Join(w.rights.Workspace, "log")
	const marker = "86421.5"
	const running = -1 // instead of a time: as soon as the command runs
	life := func(after time.Duration) (sandbox.Exit, error) {
		w.broker.Settle()
		w.broker.Forget()
		if err := os.WriteFile(log, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		killed := make(chan struct{})
		started := make(chan struct{})
		go func() {
			defer close(killed)
			pid := 0
			for pid == 0 {
				if children := launchers(); len(children) > 0 {
					pid = children[0]
				}
			}
			if after == running {
				for b := []byte(nil); len(b) == 0; b, _ = os.ReadFile(log) {
					time.Sleep(time.Millisecond)
				}
				<-started // the launcher has reported the start
			}
			select {
			case <-time.After(after):
				_ = syscall.Kill(pid, syscall.SIGKILL)
			case <-done:
			}
		}()
		pause := "0.01"
		if after == running { // it would not end by itself
			pause = "9999"
		}
		var out bytes.Buffer
		p, err := w.broker.Start(t.Context(), sandbox.Plan{
			Path: "/bin/sh",
			Argv: []string{"sh", "-c", "echo run >> log; (trap '' TERM; exec sleep " + marker + ") & sleep " +
				pause + "; echo end >> log"},
			Dir:    w.rights.Workspace,
			Env:    []string{"PATH=/bin:/usr/bin"},
			Rights: &w.rights,
			Grace:  10 * time.Millisecond,
		}, &out)
		close(started)
		var e sandbox.Exit
		if err == nil {
			if e, err = p.Wait(); err != nil {
				t.Errorf("wait: %v", err)
			}
		}
		close(done)
		<-killed
		if left, _ := exec.CommandContext(t.Context(), pgrep, "-f", "sleep "+marker).Output(); len(left) > 0 {
			t.Errorf("killed after %v: left are the processes %s", after, left)
		}
		return e, err
	}
	began := time.Now()
	if e, err := life(time.Hour); err != nil || e.Code != 0 || e.Left != 1 {
		t.Fatalf("without a kill: %v, %+v", err, e)
	}
	whole := time.Since(began)
	points := sandboxtest.Count(12, 40)
	if e, err := life(running); err != nil || e.Signal != "SIGKILL" {
		t.Errorf("killed while it runs: %v, %+v", err, e)
	}
	counts := map[string]int{}
	for i := range points {
		after := whole * time.Duration(i*4) / time.Duration(points*3)
		e, err := life(after)
		b, _ := os.ReadFile(log)
		runs, ends := strings.Count(string(b), "run"), strings.Count(string(b), "end")
		switch {
		case runs > 1:
			t.Errorf("killed after %v: it ran %d times", after, runs)
		case err != nil:
			counts["not started"]++
			if !strings.Contains(err.Error(), "sandbox") || !strings.Contains(err.Error(), "killed") {
				t.Errorf("killed after %v: unclear: %v", after, err)
			}
		case e.Signal == "SIGKILL":
			counts["killed"]++
		case e.Code == 0 && ends == 1:
			counts["ended"]++
		default:
			t.Errorf("killed after %v: %+v, but %q", after, e, b)
		}
	}
	t.Logf("in %v: %v", whole, counts)
	if sandboxtest.Count(0, 1) > 0 && (counts["not started"] == 0 || counts["killed"] == 0) { // it is up to chance
		t.Errorf("not all points were met: %v", counts)
	}
	w.expect("echo fine", "fine\n")
	w.broker.Close()
	if left := launchers(); len(left) > 0 {
		t.Errorf("left are the launchers %d", left)
	}
}

// launchers returns the launchers of this process.
func launchers() []int {
	var out []int
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, file := range files {
		b, _ := os.ReadFile(file) // a thread may have ended
		for _, f := range strings.Fields(string(b)) {
			if line, _ := os.ReadFile("/proc/" + f + "/cmdline"); bytes.HasPrefix(line, []byte("chela\x00")) {
				pid, _ := strconv.Atoi(f)
				out = append(out, pid)
			}
		}
	}
	return out
}

// TestGatewayKilled ends the processes of a cage with the process that started
// it.
func TestGatewayKilled(t *testing.T) {
	if dir := os.Getenv("CHELA_TEST_BEAT"); dir != "" {
		w := newWork(t, native.Options{})
		w.rights.Workspace = dir
		w.run("while :; do echo x >> beat; sleep 0.02; done")
		return
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestGatewayKilled$")
	cmd.Env = append(os.Environ(), "CHELA_TEST_BEAT="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	beat := filepath.Join(dir, "beat")
	waittest.Until(t, "the command runs", func() bool { // it is another process
		info, err := os.Stat(beat)
		return err == nil && info.Size() > 4
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	last := int64(-1)
	waittest.Until(t, "the command writes no more", func() bool {
		info, err := os.Stat(beat)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() == last {
			return true
		}
		last = info.Size()
		time.Sleep(200 * time.Millisecond) // the absence of a write has no event; ten periods
		return false
	})
}

// TestManyCommands starts many commands at once.
func TestManyCommands(t *testing.T) {
	w := newWork(t, native.Options{})
	var wg sync.WaitGroup
	for range sandboxtest.Count(12, 200) {
		wg.Go(func() {
			var out bytes.Buffer
			p, err := w.broker.Start(t.Context(), sandbox.Plan{
				Path:   "/bin/sh",
				Argv:   []string{"sh", "-c", "echo x"},
				Dir:    w.rights.Workspace,
				Env:    []string{"PATH=/bin"},
				Rights: &w.rights,
			}, &out)
			if err != nil {
				t.Error(err)
				return
			}
			if e, err := p.Wait(); err != nil || e.Code != 0 || out.String() != "x\n" {
				t.Errorf("got %q %+v, %v", out.String(), e, err)
			}
		})
	}
	wg.Wait()
}

// TestDiskBomb bounds what a command can write besides the workspace: folders in
// memory and single files.
func TestDiskBomb(t *testing.T) {
	w := newWork(t, native.Options{})
	for _, dir := range []string{"/tmp", "/var/tmp", "$HOME", "/dev/shm", "/run", "/dev"} {
		if out, e := w.run("fallocate -l 5G " + dir + "/bomb 2>&1"); e.Code == 0 ||
			!strings.Contains(out, "No space left") && !strings.Contains(out, "denied") && !strings.Contains(out, "Read-only") {
			t.Errorf("%s: %+v %q", dir, e, out)
		}
	}
	if out, e := w.run("truncate -s 20G big 2>&1"); e.Code == 0 {
		t.Errorf("a file of 20 GB: %+v %q", e, out)
	}
	if out, e := w.run("for d in /tmp /var/tmp $HOME /dev/shm /run /dev; do [ $(df --output=itotal $d | tail -n 1) -le 200000 ] || echo $d; done"); e.Code != 0 || out != "" {
		t.Errorf("files without limit: %+v %q", e, out)
	}
	w.expect("echo fine > /tmp/f; cat /tmp/f", "fine\n") // the next command has its own
}

// TestMemoryBomb ends a command that takes all memory of the gateway's group, and
// not the gateway.
func TestMemoryBomb(t *testing.T) {
	if os.Getenv("CHELA_TEST_MEMORY") == "" {
		group, limit := memoryGroup(t)
		if err := os.WriteFile(filepath.Join(group, limit), fmt.Appendf(nil, "%dM", sandboxtest.Count(100, 300)),
			0); err != nil {
			t.Skip("needs a group of processes whose memory can be limited: ", err)
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
			`echo $$ > "$0/cgroup.procs" && exec "$1" -test.run='^TestMemoryBomb$' -test.v`, group, "/proc/self/exe")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args[len(cmd.Args)-1] = self
		cmd.Env = append(os.Environ(), "CHELA_TEST_MEMORY=1")
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	w := newWork(t, native.Options{})
	w.run("true")
	for _, script := range []string{"head -c 2G /dev/zero > /tmp/bomb", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done"} {
		out, e := w.run("sh -c '" + script + "'; echo $?; exit 3")
		if e.Code == 0 || e.Code == 3 && out == "0\n" {
			t.Errorf("%s: %q, %+v", script, out, e)
		}
		w.expect("echo fine", "fine\n")
	}
}

// memoryGroup makes a group of processes whose memory can be limited, and
// returns its folder and the name of the file with the limit.
func memoryGroup(t *testing.T) (dir, limit string) {
	t.Helper()
	for parent, limit := range map[string]string{
		"/sys/fs/cgroup":        "memory.max",
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes",
	} {
		dir := filepath.Join(parent, fmt.Sprint("chela-test-", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) }) // its processes have ended
		if _, err := os.Stat(filepath.Join(dir, limit)); err == nil {
			return dir, limit
		}
	}
	t.Skip("needs a group of processes whose memory can be limited")
	return "", ""
}

// TestForkBomb ends a command that starts processes without end, and nothing
// else. If the user has used up the processes elsewhere, the command cannot start
// any.
func TestForkBomb(t *testing.T) {
	w := newWork(t, native.Options{})
	// By default the bomb is small: the command lowers its own limit, which shows that such
	// a limit holds for it. What the limit is when it starts is looked at.
	limit, forks, lower := sandboxtest.Count(60, 4096), sandboxtest.Count(100, 6000), ""
	if limit < 4096 {
		lower = fmt.Sprintf("ulimit -u %d; ", limit)
	}
	w.expect("grep -qE '^Max processes +([0-9]{1,3}|[1-3][0-9]{3}|40[0-9][0-6]) +([0-9]{1,3}|[1-3][0-9]{3}|40[0-9][0-6]) ' /proc/self/limits", "")
	beside, err := w.broker.Start(t.Context(), sandbox.Plan{
		Path:   "/bin/sh",
		Argv:   []string{"sh", "-c", "read x; echo $x > beside"},
		Dir:    w.rights.Workspace,
		Env:    []string{"PATH=/bin"},
		Rights: &w.rights,
		Stdin:  strings.NewReader("fine\n"),
	}, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	bomb := fmt.Sprintf("mkfifo /tmp/f; i=0; while [ $i -lt %d ]; do (read x < /tmp/f) & i=$((i+1)); done", forks)
	if out, e := w.run("exec bash -c '" + lower + `exec sh -c "$0"' '` + bomb + "'"); e.Code == 0 || e.Left > limit ||
		e.Left == 0 && !strings.Contains(out, "fork") {
		t.Errorf("%+v %.200q", e, out)
	}
	if e, err := beside.Wait(); err != nil || e.Code != 0 {
		t.Errorf("the command beside it: %+v, %v", e, err)
	}
	w.expect("echo fine", "fine\n")
}

// TestWorkspaceGone refuses a command whose workspace was removed.
func TestWorkspaceGone(t *testing.T) {
	w := newWork(t, native.Options{})
	w.run("true")
	w.broker.Settle()
	if err := os.RemoveAll(w.rights.Workspace); err != nil {
		t.Fatal(err)
	}
	_, err := w.broker.Start(t.Context(), sandbox.Plan{
		Path:   "/bin/true",
		Argv:   []string{"true"},
		Dir:    w.rights.Workspace,
		Env:    []string{"PATH=/bin"},
		Rights: &w.rights,
	}, new(bytes.Buffer))
	if err == nil {
		t.Error("the command was started")
	}
}

// TestIdle ends a cage that no command needs.
func TestIdle(t *testing.T) {
	w := newWork(t, native.Options{})
	w.broker.SetReadyTime(50 * time.Millisecond)
	w.run("true")
	w.broker.Settle()
	waittest.Until(t, "the cage is gone", func() bool { return w.broker.Ready() == 0 }) // its launcher is another process
}

// TestWithoutLandlock confines commands by namespaces and the filter alone.
func TestWithoutLandlock(t *testing.T) {
	if os.Getenv("CHELA_TEST_NO_LANDLOCK") == "" {
		t.Parallel() // with others: it is another process
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self, "__act", "without", "landlock", self, "-test.run=^TestWithoutLandlock$",
			"-test.v", fmt.Sprintf("-test.short=%t", testing.Short()))
		cmd.Env = append(os.Environ(), "CHELA_TEST_NO_LANDLOCK=1")
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION); errno ==
		0 {
		t.Fatal("there is Landlock")
	}
	w := newWork(t, native.Options{})
	if l := w.broker.Level(t.Context()); l.Complete || l.Name != "namespaces" || l.Reason == "" || l.Hint == "" {
		t.Errorf("level %+v", l)
	}
	if !testing.Short() && !race {
		escapes(t, false)
	}
}
