//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

// program is set in the environment of a process that is the program.
const program = "CHELA_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		main()
	}
	os.Exit(m.Run())
}

// home returns a state directory with the configuration of a model at the URL, and an
// empty directory for temporary files beside it.
func home(t *testing.T, url string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	conf := fmt.Sprintf(
		`{agents: {defaults: {model: "mock/m"}}, messages: {queue: {mode: "followup"}}, tools: {exec: {mode: "full"}},
		models: {providers: {mock: {baseUrl: %q, api: "openai-completions", apiKey: "k", models: [{id: "m"}]}}}}`, url)
	err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(temp(dir), 0o700),
		os.WriteFile(filepath.Join(dir, "chela.json"), []byte(conf), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func temp(dir string) string { return filepath.Join(filepath.Dir(dir), "tmp") }

// files returns the names of the files of a gateway that is stopped, with the
// temporary ones.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, root := range []string{dir, temp(dir)} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if path != root && err == nil {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// state returns the state of a run of a gateway that is stopped.
func state(t *testing.T, dir, id string) run.State {
	t.Helper()
	db, err := sqlite.Open(t.Context(),
		sqlite.Options{Path: filepath.Join(dir, "chela.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r, err := store.Get(t.Context(), db, func(r store.Reader) (run.Run, error) { return r.Runs().Get(chela.RunID(id)) })
	if err != nil {
		t.Fatalf("run %s: %v", id, err)
	}
	return r.State
}

// The program gives what is in progress 8 s to end, and the whole stop 10 s.
const (
	drainTime = 8 * time.Second
	stopTime  = 10 * time.Second
)

// stop sends SIGTERM, and returns how long the program ran after it. When it has used up
// its time, it may give up a part of the stop, and say so.
func stop(t *testing.T, cmd *exec.Cmd) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	took := time.Since(begin)
	if err != nil && took < stopTime {
		t.Errorf("exit: %v", err)
	}
	return took
}

// inTime calls f until it reports that the program was fast enough for its own time limits:
// only then does the test say anything about what they are not for.
func inTime(t *testing.T, f func() bool) {
	t.Helper()
	waittest.Until(t, "a stop within the program's time limits", func() bool { return f() || t.Failed() })
}

// gateway starts the program as a gateway, and connects to it.
func gateway(t *testing.T, dir string) (*exec.Cmd, *client.Client) {
	t.Helper()
	cmd, err := start(t, dir, "0")
	if err != nil {
		t.Fatal(err)
	}
	return cmd, connect(t, dir)
}

// start starts the program as a gateway on a port. The error says that it refused.
func start(t *testing.T, dir, port string) (*exec.Cmd, error) {
	t.Helper()
	return startWith(t, dir, port)
}

// startWith does the same with further descriptors.
func startWith(t *testing.T, dir, port string, files ...*os.File) (*exec.Cmd, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "gateway", "run", "--port", port)
	cmd.Env = []string{program + "=1", "CHELA_STATE_DIR=" + dir, "TMPDIR=" + temp(dir), "HOME=" + dir,
		"PATH=" + os.Getenv("PATH")}
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, files
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "listens on") {
		return nil, fmt.Errorf("the gateway did not start: %q %w", line, err)
	}
	return cmd, nil
}

// connect connects to the gateway of a state directory.
func connect(t *testing.T, dir string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{Once: true, Dial: func(ctx context.Context) (net.Conn, error) {
		return statedir.Dial(ctx, dir)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// call calls a method of the gateway.
func call(t *testing.T, c *client.Client, method string, params, result any) {
	t.Helper()
	if err := c.Call(t.Context(), method, params, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// turn sends a message and waits for its answer.
func turn(t *testing.T, c *client.Client, id, text string) {
	t.Helper()
	call(t, c, wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: text, IdempotencyKey: id}, nil)
	answered(t, c, id)
}

// answered waits for the answer to a message.
func answered(t *testing.T, c *client.Client, id string) {
	t.Helper()
	var w wire.AgentWaited
	call(t, c, wire.MethodAgentWait, wire.AgentWait{RunID: id, TimeoutMs: waittest.Limit.Milliseconds()}, &w)
	if w.Status != wire.StatusOK {
		t.Errorf("%s ended %s: %s", id, w.Status, w.Error)
	}
}

// texts returns the messages of a session.
func texts(t *testing.T, c *client.Client, session string) []string {
	t.Helper()
	h, err := c.History(t.Context(), session, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range h.Messages {
		got = append(got, m.Text())
	}
	return got
}

// TestSIGTERM ends the program during a run.
func TestSIGTERM(t *testing.T) {
	// A second message waits for the run.
	t.Run("GW-06 REC-04 a run of 2 s completes before the process exits", func(t *testing.T) {
		t.Parallel()
		inTime(t, func() bool { return stopDuringShortRun(t) })
	})
	t.Run("GW-06 runs that take too long are aborted, and the next process finishes them", func(t *testing.T) {
		t.Parallel()
		if testing.Short() {
			t.Skip("waits for the time limit of a stop")
		}
		inTime(t, func() bool { return stopDuringLongRuns(t) })
	})
}

// stopDuringShortRun reports false if the run did not end within the time limit of a stop,
// which is right only on a machine that is very slow.
func stopDuringShortRun(t *testing.T) bool {
	asked := make(chan struct{}, 8)
	srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(n int, _ llmtest.ReceivedRequest) llmtest.Step {
		asked <- struct{}{}
		step := llmtest.Say(fmt.Sprint("answer ", n))
		if n == 1 {
			step.Delay = 2 * time.Second
		}
		return step
	})
	url, _ := srv.Listen()
	dir := home(t, url)
	cmd, c := gateway(t, dir)
	turn(t, c, "m0", "m0")
	<-asked
	stop(t, cmd)
	before := files(t, dir)

	cmd, c = gateway(t, dir)
	for _, id := range []string{"m1", "m2"} {
		call(t, c, wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: id, IdempotencyKey: id}, nil)
		if id == "m1" {
			<-asked
		}
	}
	if stop(t, cmd) > drainTime {
		return false
	}
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d model calls, want those of the first two messages", n)
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("files after the stop (-idle +during a run):\n%s", diff)
	}
	if got := state(t, dir, "m1"); got != run.OK {
		t.Errorf("the run is %s", got)
	}

	_, c = gateway(t, dir)
	answered(t, c, "m1")
	answered(t, c, "m2")
	want := []string{"m0", "answer 0", "m1", "answer 1", "m2", "answer 2"}
	if diff := cmp.Diff(want, texts(t, c, "main")); diff != "" {
		t.Errorf("a run was cut off, resumed or repeated:\n%s", diff)
	}
	if n := len(srv.Requests()); n != 3 {
		t.Errorf("%d model calls, want one for each message", n)
	}
	return true
}

// stopDuringLongRuns reports false if the stop was not complete within its time limit, which
// is right only on a machine that is very slow.
func stopDuringLongRuns(t *testing.T) bool {
	var hangs atomic.Bool
	asked := make(chan struct{}, 8)
	srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
		body := string(r.Body)
		switch {
		case strings.Contains(body, `"role":"tool"`):
			return llmtest.Say("the command is over")
		case strings.Contains(body, "sleepy command"):
			return llmtest.Call("call_1", "exec", `{"command":"echo $$ >>began; exec sleep 600","yieldMs":600000}`)
		}
		step := llmtest.Say("here")
		if hangs.Load() {
			asked <- struct{}{}
			step.Delay = time.Hour
		}
		return step
	})
	url, _ := srv.Listen()
	dir := home(t, url)
	cmd, c := gateway(t, dir)
	turn(t, c, "m0", "hello")
	stop(t, cmd)
	before := files(t, dir)

	hangs.Store(true)
	cmd, c = gateway(t, dir)
	call(t, c, wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "hello?", IdempotencyKey: "m1"}, nil)
	call(t, c, wire.MethodChatSend,
		wire.ChatSend{SessionKey: "other", Message: "the sleepy command", IdempotencyKey: "m2"}, nil)
	waittest.For(t, "a call of the model", asked)
	began := filepath.Join(dir, "workspace", "began")
	var pid int
	waittest.Until(t, "the start of the command", func() bool {
		b, _ := os.ReadFile(began)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 0
	})
	took := stop(t, cmd)
	if took < drainTime-time.Second {
		t.Errorf("the stop took %s, want the time limit of %s", took, drainTime)
	}
	if took > stopTime {
		return false
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command is still running: %v", err)
	}
	after := slices.DeleteFunc(files(t, dir), func(name string) bool {
		return name == began || filepath.Base(filepath.Dir(name)) == media.Dir // kept for the history of the workspace
	})
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("files after the stop (-idle +during runs):\n%s", diff)
	}
	for _, id := range []string{"m1", "m2"} {
		if got := state(t, dir, id); got != run.Running {
			t.Errorf("%s is %s, want it to be resumed", id, got)
		}
	}

	hangs.Store(false)
	_, c = gateway(t, dir)
	answered(t, c, "m1")
	answered(t, c, "m2")
	if got := texts(t, c, "main"); len(got) == 0 || got[len(got)-1] != "here" {
		t.Errorf("transcript: %q", got)
	}
	got := strings.Join(texts(t, c, "other"), "\n")
	if !strings.Contains(got, "outcome is unknown") || !strings.HasSuffix(got, "the command is over") {
		t.Errorf("transcript: %s", got)
	}
	if b, err := os.ReadFile(began); err != nil || strings.Count(string(b), "\n") != 1 {
		t.Errorf("the command began more than once: %q, %v", b, err)
	}
	return true
}
