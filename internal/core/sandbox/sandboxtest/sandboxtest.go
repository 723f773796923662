// Package sandboxtest is the conformance suite of sandbox.Broker. It requires
// a POSIX shell and a writable working directory inside the sandbox. It does
// not test the confinement itself.
package sandboxtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// Options describe the broker under test.
type Options struct {
	Shell string // path of a POSIX shell inside the sandbox; "": /bin/sh
	// Survives is the reason why the broker cannot find processes that left their
	// session; "": it finds all.
	Survives string
	// Confined gives the plans Rights to their working directory. Variables are the
	// variables that the broker adds to them.
	Confined  bool
	Variables []string
}

// Count returns small, or full if CHELA_TEST_CAGE is set. Floods of processes, cages and
// output would drown the tests that run beside them.
func Count(small, full int) int {
	if os.Getenv("CHELA_TEST_CAGE") != "" {
		return full
	}
	return small
}

// Run runs the suite on a broker.
func Run(t *testing.T, b sandbox.Broker, o Options) {
	o.Shell = cmp.Or(o.Shell, "/bin/sh")
	t.Setenv("CHELA_TEST_SECRET", "hunter2") // no program may see it
	s := suite{b, o}
	for _, c := range []struct {
		name string
		f    func(*testing.T)
	}{
		{"has a name", s.name},
		{"output in order, and the exit code", s.output},
		{"environment of the plan only", s.environment},
		{"working directory of the plan", s.directory},
		{"arguments are not expanded", s.arguments},
		{"standard input", s.stdin},
		{"separate standard error", s.separateStderr},
		{"terminal", s.terminal},
		{"typed input and signals", s.typed},
		{"write deadline of a terminal", s.writeDeadline},
		{"terminal settings are not shared", s.terminalSettings},
		{"a descendant that holds the terminal is killed", s.heldTerminal},
		{"signal name", s.signal},
		{"start errors", s.cannotStart},
		{"canceled context before the start", s.endedContext},
		{"canceled context ends the program", s.contextEnds},
		{"KILL after the grace period", s.ignoresTerm},
		{"TERM before KILL", s.termFirst},
		{"Kill", s.kill},
		{"remaining processes are ended and counted", s.left},
		{"a failing writer does not block the program", s.writerFails},
		{"large output in bounded writes", s.muchOutput},
		{"concurrent programs", s.manyAtOnce},
		{"other programs are not affected", s.neighbours},
	} {
		t.Run(c.name, func(t *testing.T) { t.Parallel(); c.f(t) })
	}
	for name, script := range escapes() {
		t.Run("no survivor: "+name, func(t *testing.T) {
			t.Parallel()
			if o.Survives != "" && name != "background" {
				t.Skip(o.Survives)
			}
			s.noSurvivor(t, script)
		})
	}
}

// endless is a command that does not end by itself while a test waits for its end.
const endless = "sleep 9999"

type suite struct {
	b sandbox.Broker
	o Options
}

func (s suite) plan(t *testing.T, script string) sandbox.Plan {
	p := sandbox.Plan{
		Path:  s.o.Shell,
		Argv:  []string{"sh", "-c", script},
		Dir:   t.TempDir(),
		Env:   []string{"PATH=/usr/local/bin:/usr/bin:/bin", "A=b c"},
		Grace: 300 * time.Millisecond,
	}
	if s.o.Confined {
		p.Rights = &sandbox.Rights{Workspace: p.Dir, Write: true}
	}
	return p
}

// run runs a plan and returns its output and exit.
func (s suite) run(ctx context.Context, t *testing.T, p sandbox.Plan) (string, sandbox.Exit) {
	t.Helper()
	var out bytes.Buffer
	pr, err := s.b.Start(ctx, p, &out)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	e, err := wait(t, pr)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return out.String(), e
}

// wait calls Wait and fails the test if it does not return.
func wait(t *testing.T, p sandbox.Process) (sandbox.Exit, error) {
	t.Helper()
	type end struct {
		e   sandbox.Exit
		err error
	}
	c := make(chan end, 1)
	go func() {
		e, err := p.Wait()
		c <- end{e, err}
	}()
	e := waittest.For(t, "the end of Wait", c)
	return e.e, e.err
}

func (s suite) name(t *testing.T) {
	if n := s.b.Name(); n == "" || n != strings.ToLower(n) {
		t.Errorf("Name() = %q, want a lower-case word", n)
	}
}

func (s suite) output(t *testing.T) {
	out, e := s.run(t.Context(), t, s.plan(t, "echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7"))
	if out != "1\n2\n3\n4\n" || e.Code != 7 || e.Signal != "" || e.Left != 0 {
		t.Errorf("got %q %+v", out, e)
	}
}

func (s suite) environment(t *testing.T) {
	out, _ := s.run(t.Context(), t, s.plan(t, "env; echo \"<$A>\""))
	if !strings.Contains(out, "<b c>") {
		t.Errorf("a variable of the plan is missing in %q", out)
	}
	allowed := []string{"PATH", "A", "PWD", "OLDPWD", "SHLVL", "_"}
	allowed = append(allowed, s.o.Variables...)
	for line := range strings.Lines(out) {
		name, _, ok := strings.Cut(line, "=")
		if ok && !slices.Contains(allowed, name) {
			t.Errorf("the program has the unexpected variable %s", name)
		}
	}
}

func (s suite) directory(t *testing.T) {
	p := s.plan(t, "pwd -P")
	want, err := filepath.EvalSymlinks(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := s.run(t.Context(), t, p); strings.TrimSpace(out) != want {
		t.Errorf("pwd = %q, want %q", out, want)
	}
}

func (s suite) arguments(t *testing.T) {
	p := s.plan(t, `printf '<%s>' "$@"`)
	p.Argv = append(p.Argv, "sh", "a b", "$HOME", "*", "", "x\ny")
	if out, _ := s.run(t.Context(), t, p); out != "<a b><$HOME><*><><x\ny>" {
		t.Errorf("got %q", out)
	}
}

func (s suite) stdin(t *testing.T) {
	p := s.plan(t, "cat")
	if out, e := s.run(t.Context(), t, p); out != "" || e.Code != 0 {
		t.Errorf("without input: got %q %+v, want empty input", out, e)
	}
	p.Stdin = strings.NewReader("some input")
	if out, _ := s.run(t.Context(), t, p); out != "some input" {
		t.Errorf("got %q", out)
	}
	// A program may end before its input does.
	r, w := io.Pipe()
	defer w.Close()
	p = s.plan(t, "read -r line; echo $line")
	p.Stdin = r
	go func() { _, _ = io.WriteString(w, "one line\n") }() // the output shows it
	if out, _ := s.run(t.Context(), t, p); out != "one line\n" {
		t.Errorf("got %q", out)
	}
}

func (s suite) signal(t *testing.T) {
	_, e := s.run(t.Context(), t, s.plan(t, "kill -KILL $$"))
	if e.Code != -1 || e.Signal != "SIGKILL" {
		t.Errorf("got %+v, want code -1 and SIGKILL", e)
	}
}

func (s suite) cannotStart(t *testing.T) {
	missing := s.plan(t, "true")
	missing.Path = "/no/such/program"
	nowhere := s.plan(t, "true")
	nowhere.Dir = filepath.Join(nowhere.Dir, "missing")
	file := s.plan(t, "true")
	file.Dir = filepath.Join(file.Dir, "file")
	if err := os.WriteFile(file.Dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	plans := []sandbox.Plan{missing, nowhere, file}
	if s.o.Confined {
		free := s.plan(t, "true")
		free.Rights = nil
		plans = append(plans, free)
	}
	for _, p := range plans {
		pr, err := s.b.Start(t.Context(), p, io.Discard)
		if err == nil {
			t.Errorf("Start of %s in %s with the rights %v: no error", p.Path, p.Dir, p.Rights)
			_, _ = wait(t, pr)
		}
	}
}

func (s suite) endedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := s.plan(t, "echo x > f")
	if _, err := s.b.Start(ctx, p, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Start: %v, want context.Canceled", err)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "f")); err == nil {
		t.Error("the program ran")
	}
}

func (s suite) contextEnds(t *testing.T) {
	_, out, e := s.runUntilUp(t, s.plan(t, "echo up; "+endless)) // it would not end by itself
	if out != "up\n" || e.Code == 0 {
		t.Errorf("got %q %+v", out, e)
	}
}

func (s suite) ignoresTerm(t *testing.T) {
	began, _, e := s.runUntilUp(t, s.plan(t, "trap '' TERM; echo up; while :; do sleep 0.1; done"))
	if e.Signal != "SIGKILL" {
		t.Errorf("got %+v, want SIGKILL", e)
	}
	if d := time.Since(began); d < 250*time.Millisecond {
		t.Errorf("killed after %v, want after the grace period", d)
	}
}

func (s suite) termFirst(t *testing.T) {
	p := s.plan(t, "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
	p.Grace = time.Hour
	_, out, e := s.runUntilUp(t, p)
	if !strings.HasSuffix(out, "bye\n") || e.Code != 5 { // the shell may report its child's end first
		t.Errorf("got %q %+v, want the exit code of the program's trap", out, e)
	}
}

// runUntilUp runs a plan whose context ends as soon as it prints something, and
// returns when that was.
func (s suite) runUntilUp(t *testing.T, p sandbox.Plan) (began time.Time, out string, e sandbox.Exit) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var b bytes.Buffer
	pr, err := s.b.Start(ctx, p, writer(func(text []byte) (int, error) {
		if began.IsZero() {
			began = time.Now()
			cancel()
		}
		return b.Write(text)
	}))
	if err != nil {
		t.Fatal(err)
	}
	e, err = wait(t, pr)
	if err != nil {
		t.Fatal(err)
	}
	return began, b.String(), e
}

func (s suite) kill(t *testing.T) {
	p := s.plan(t, "trap '' TERM; echo up; "+endless+" & "+endless)
	p.Grace = time.Hour
	up := make(chan struct{})
	pr, err := s.b.Start(t.Context(), p, writer(func(b []byte) (int, error) {
		close(up)
		return len(b), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if pr.PID() <= 0 {
		t.Errorf("PID() = %d", pr.PID())
	}
	waittest.For(t, "output", up)
	pr.Kill()
	pr.Kill()
	if e, err := wait(t, pr); err != nil || e.Signal != "SIGKILL" {
		t.Errorf("got %+v, %v", e, err)
	}
	pr.Kill()
}

func (s suite) left(t *testing.T) {
	out, e := s.run(t.Context(), t, s.plan(t, endless+" & "+endless+" & echo started"))
	if out != "started\n" || e.Code != 0 {
		t.Errorf("got %q %+v", out, e)
	}
	if s.o.Survives == "" && e.Left != 2 {
		t.Errorf("Left = %d, want 2", e.Left)
	}
}

func (s suite) writerFails(t *testing.T) {
	p := s.plan(t, "i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; i=$((i+1)); done; echo x > done")
	pr, err := s.b.Start(t.Context(), p, writer(func([]byte) (int, error) { return 0, errors.New("full") }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wait(t, pr); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("Wait: %v, want the writer's error", err)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "done")); err != nil {
		t.Error("the program did not finish")
	}
}

func (s suite) muchOutput(t *testing.T) {
	var n int64
	size := int64(Count(8_000_000, 200_000_000))
	pr, err := s.b.Start(t.Context(), s.plan(t, fmt.Sprintf("head -c %d /dev/zero", size)),
		writer(func(b []byte) (int, error) {
			if len(b) > 1<<20 {
				t.Errorf("a write of %d bytes", len(b))
			}
			n += int64(len(b))
			return len(b), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wait(t, pr); err != nil || n != size {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func (s suite) manyAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if out, e := s.run(t.Context(), t, s.plan(t, fmt.Sprintf("%s & echo %d; exit %d", endless, i, i))); out !=
				fmt.Sprintf("%d\n", i) || e.Code != i {
				t.Errorf("%d: got %q %+v", i, out, e)
			}
		})
	}
	wg.Wait()
}

// neighbours starts programs while others end.
func (s suite) neighbours(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range Count(5, 40) {
				if out, e := s.run(t.Context(), t, s.plan(t, "echo x")); out != "x\n" || e.Code != 0 ||
					e.Signal != "" || e.Left != 0 {
					t.Errorf("got %q %+v", out, e)
				}
			}
		})
	}
	wg.Wait()
}

// escapes returns scripts that leave a process behind which appends to the
// file beat forever.
func escapes() map[string]string {
	const (
		beat   = `while :; do echo x >> beat; sleep 0.05; done`
		stoic  = `trap "" TERM HUP INT; ` + beat
		detach = `exec </dev/null >/dev/null 2>&1; `
		begun  = `while [ ! -s beat ]; do sleep 0.02; done`
	)
	return map[string]string{
		"background":   "(" + beat + ") & " + begun,
		"ignores TERM": "(" + stoic + ") & " + begun,
		"own session":  "setsid sh -c '" + beat + "' & " + begun,
		"forked twice": "setsid sh -c 'setsid sh -c \"" + beat + "\" & exit' & " + begun,
		"forked twice, ignores TERM": "setsid sh -c '" + detach + `setsid sh -c "trap \"\" TERM HUP; ` + beat +
			"\" & exit' & " + begun,
		"no environment":               "env -i PATH=$PATH setsid sh -c '" + beat + "' & " + begun,
		"no environment and no output": "env -i PATH=$PATH setsid sh -c '" + detach + stoic + "' & " + begun,
		"holds the output":             "setsid sh -c '" + beat + "' 2>&1 & " + begun + "; exit 3",
		"closed descriptors": "setsid sh -c '" + detach + "exec 3>&- 4>&- 5>&-; setsid sh -c \"" + beat +
			"\" & exit' & " + begun,
		"found only by its parent": "(env -i PATH=$PATH setsid sh -c '" + detach + "exec 3>&- 4>&- 5>&-; " + stoic +
			"' & wait) & " + begun,
		"disowned": "nohup setsid sh -c '" + beat + "' >/dev/null 2>&1 & " + begun,
	}
}

// noSurvivor runs a script that leaves a process behind, once until the
// script ends and once until a context ends, and checks that the process is
// gone.
func (s suite) noSurvivor(t *testing.T, script string) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		if e := s.beats(t.Context(), t, script, func() {}); e.Left == 0 && s.o.Survives == "" {
			t.Error("after the program's end: Left = 0")
		}
	})
	wg.Go(func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.beats(ctx, t, script+"; "+endless, cancel)
	})
}

// beats runs a script, calls begun when the file beat has been written, and fails
// if the file grows after Wait returned.
func (s suite) beats(ctx context.Context, t *testing.T, script string, begun func()) sandbox.Exit {
	p := s.plan(t, script)
	var out bytes.Buffer
	pr, err := s.b.Start(ctx, p, &out)
	if err != nil {
		t.Errorf("Start: %v", err)
		return sandbox.Exit{}
	}
	file := filepath.Join(p.Dir, "beat")
	// not the test's goroutine
	for deadline := time.Now().Add(waittest.Limit); size(file) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the script left no process behind, so nothing is tested")
			pr.Kill()
			break
		}
	}
	begun()
	e, err := pr.Wait()
	if err != nil {
		t.Errorf("Wait: %v: %s", err, out.String())
	}
	before := size(file)
	time.Sleep(250 * time.Millisecond) // the absence of a write has no event; wait for five periods
	if after := size(file); after != before {
		t.Errorf("a process still runs: %d bytes, then %d", before, after)
	}
	return e
}

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
