package allowlist_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/test/strace"
)

// The programs of a traced machine that run. All others do nothing.
const (
	wrappers = "env nice nohup timeout stdbuf flock xargs sh bash dash"
	readers  = "ls cat echo wc find head tail cut tr uniq"
	owners   = "make git go python3 rg" // they start programs of their own, which no command names
)

// traced is a machine on which commands can be run.
func traced(t *testing.T) (allowlist.Env, shell.Judge) {
	t.Helper()
	pl, j := machine(t)
	list, err := os.ReadDir(pl.Path[0])
	if err != nil {
		t.Fatal(err)
	}
	idle := needtest.Program(t, "true")
	for _, e := range list {
		path := filepath.Join(pl.Path[0], e.Name())
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		to := idle
		if slices.Contains(strings.Fields(wrappers+" "+readers+" "+owners), e.Name()) {
			if found, err := exec.LookPath(e.Name()); err == nil {
				to = found
			} else if slices.Contains(strings.Fields(wrappers), e.Name()) {
				continue
			}
		} else if e.Name() == "busybox" || e.Name() == "toybox" {
			continue
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	return pl, j
}

// started is a program that was started.
type started struct {
	path string
	argv []string
}

// workspace makes the files that commands of the corpus read.
func workspace(t *testing.T, dir string) {
	t.Helper()
	for _, name := range strings.Fields("README.md a.txt b.txt data.csv main.go notes.md x safe.py") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all test:\n\tls\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// trace runs a command and returns the programs that were started, without
// the shell that runs the command and without those that an owner started.
func trace(t *testing.T, pl allowlist.Env, command string) []started {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	args := append(strace.Arguments(log, 20000, "execve", "execveat", "clone", "clone3", "fork", "vfork"),
		"/bin/bash", "-c", command)
	cmd := exec.CommandContext(waittest.Context(t), "strace", args...)
	cmd.Dir, cmd.Env = pl.Workspace, []string{"PATH=" + pl.Path[0], "HOME=" + pl.Workspace, "LANG=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if _, err := os.Stat(log); err != nil {
		t.Logf("strace: %v %s", err, out)
		needtest.Missing(t, "strace that may trace processes")
	}
	var list []started
	owned := map[*strace.Process]bool{} // processes that run an owner, or that such a process started
	readErr := strace.Read(log, func(c *strace.Call) {
		if _, known := owned[c.Process]; !known {
			owned[c.Process] = owned[c.Process.Parent]
		}
		if c.Child != nil {
			owned[c.Child] = owned[c.Child] || owned[c.Process]
		}
		if owned[c.Process] || c.Failed() || c.Makes() {
			return
		}
		p := started{argv: strace.Words(c.Arg(1))}
		p.path, _ = strace.Text(c.Arg(0))
		owned[c.Process] = slices.Contains(strings.Fields(owners), filepath.Base(p.path))
		list = append(list, p)
	})
	if readErr != nil {
		t.Fatal(readErr)
	}
	if len(list) == 0 {
		t.Fatalf("%q: no program was traced: %v %s", command, err, out)
	}
	return list[1:]
}

// planned reports whether a program is among those that a plan names, with
// the same arguments as far as they are known.
func planned(p shell.Plan, ran started) bool {
	return slices.ContainsFunc(p.Segments, func(s shell.Segment) bool {
		return filepath.Base(s.Argv[0].Text) == filepath.Base(ran.path) && fits(s.Argv[1:], ran.argv[1:], s.Transparent)
	})
}

// fits compares arguments. The arguments of a program that runs another one
// contain the other's file instead of its name.
func fits(want []shell.Word, got []string, through bool) bool {
	for i, w := range want {
		if !w.Literal || w.Glob {
			return true
		}
		if i >= len(got) || got[i] != w.Text && !strings.HasSuffix(got[i], "/"+w.Text) && !through {
			return false
		}
	}
	return len(got) == len(want)
}

// TestTraced checks with strace that a command on the list starts only
// programs that were matched.
func TestTraced(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "strace")
	t.Run("E3 every program that an allowed command starts is in its plan, with the same arguments", traceCorpus)
}

func traceCorpus(t *testing.T) {
	pl, j := traced(t)
	r := rules(t, list, allowlist.Config{}, pl)
	ran, programs := 0, map[string]int{}
	for i, s := range corpus(t) {
		if !s.match || s.verdict == "never" || strings.HasPrefix(s.class, "everyday") && i%4 != 0 {
			continue // a sample of the simple commands is enough
		}
		if strings.HasPrefix(s.command, "find / ") {
			continue // it would read the whole machine
		}
		workspace(t, pl.Workspace)
		plan := j.Parse(s.command)
		m, err := r.Match(r.Policy, r.Policy.Reads, plan, pl)
		if err != nil || len(plan.Segments) > 20 {
			continue // a program of the corpus that is not installed here
		}
		ran++
		for _, p := range trace(t, pl, m.Command) {
			programs[filepath.Base(p.path)]++
			if filepath.Dir(p.path) != pl.Path[0] || !planned(plan, p) {
				t.Errorf("S11 %q, run as %q: started %q %q", s.command, m.Command, p.path, p.argv)
			}
		}
	}
	t.Logf("%d commands started %v", ran, programs)
	if ran < 20 || programs["cat"] < 8 || programs["find"] < 3 || programs["wc"] < 2 {
		t.Errorf("only %d commands ran, with %v", ran, programs)
	}
}
