//go:build unix

package exec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/hook/exec"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// patient is a time limit of a program that only a defect exceeds.
const patient = 2 * waittest.Limit

// program returns a hook that is a shell script.
func program(t testing.TB, script string, timeout time.Duration) hook.Program {
	t.Helper()
	dir := t.TempDir()
	r := exec.Runner{Broker: host.Broker{}, Environ: []string{"PATH=" + os.Getenv("PATH"), "SECRET=s3cret", "LANG=C"},
		State: dir}
	return hook.Program{
		Name: "script", Timeout: timeout, Conversation: true, Prompt: true,
		Func: r.Func(exec.Command{Name: "script", Argv: []string{"/bin/sh", "-c", script}, Dir: dir,
			Env: map[string]string{"DIR": dir}}),
	}
}

// buffer is a log that is safe for concurrent use.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// points returns points with a program at one of them.
func points(t testing.TB, at string, p hook.Program) (*hook.Points, *buffer) {
	t.Helper()
	log := new(buffer)
	ps := hook.New(slog.New(slog.NewTextHandler(log, nil)))
	if err := ps.Program(at, p); err != nil {
		t.Fatal(err)
	}
	return ps, log
}

func TestProgram(t *testing.T) {
	t.Parallel()
	t.Run("the answer is the standard output, and the event the standard input", func(t *testing.T) {
		t.Parallel()
		ps, log := points(t, "before_tool_call",
			program(t, `grep -q '"toolName":"exec"' && echo '{"block": true, "blockReason": "no"}'`, patient))
		d, err := ps.BeforeToolCall.Decide(t.Context(), hook.Call{Tool: "exec"})
		if err != nil || !d.Answer.Block || d.Answer.Reason != "no" || d.By != "script" {
			t.Errorf("%+v, %v, log %s", d, err, log)
		}
	})
	t.Run("the environment has only what is listed", func(t *testing.T) {
		t.Parallel()
		ps, log := points(t, "before_tool_call",
			program(t, `printf '{"block": true, "blockReason": "%s %s %s %s"}' "$SECRET" "$LANG" "$CHELA_HOOK" "$CHELA_HOOK_DEPTH"`, patient))
		if d, err := ps.BeforeToolCall.Decide(t.Context(), hook.Call{Tool: "exec"}); err != nil ||
			d.Answer.Reason != " C script 1" {
			t.Errorf("%q, %v, log %s", d.Answer.Reason, err, log)
		}
	})
}

// What a program does wrong harms only itself.
func TestBadPrograms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		limit        time.Duration
		closed       bool   // a policy point refuses
		log          string // what is in the log
	}{
		{"hangs", "sleep 600", 300 * time.Millisecond, true, "time limit"},
		{"ignores TERM", `trap "" TERM; sleep 600 & wait; sleep 600`, 300 * time.Millisecond, true, "time limit"},
		{"crashes", "kill -SEGV $$", patient, false, "SIGSEGV"},
		{"fails", "echo first >&2; echo no disk >&2; exit 3", patient, false, "exit status 3: no disk"},
		{"floods the standard output", "yes '{\"block\": true}'", patient, false, "printed more than"},
		{"floods the standard error", `head -c 50000000 /dev/zero | tr '\0' x >&2; echo '{}'`, patient, false, ""},
		{"prints garbage", `head -c 1000 /dev/urandom`, patient, false, "hook failed"},
		{"prints text", `echo I blocked it`, patient, false, "not a JSON object"},
		{"prints half an answer", `echo '{"block": true'`, patient, false, "decode the answer"},
		{"prints the wrong type", `echo '{"block": "yes", "content": 1, "messages": 1}'`, patient, false, ""},
		{"leaves children", `(trap "" TERM; sleep 600 >/dev/null 2>&1) & echo $! >$DIR/pid; exit 0`, patient, false, ""},
		{"leaves children that keep its output open", `sleep 600 & exit 0`, patient, false, ""},
		{"reads nothing", `exec <&-; exit 0`, patient, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ps, log := points(t, "before_tool_call", program(t, tt.script, tt.limit))
			d, err := ps.BeforeToolCall.Decide(t.Context(),
				hook.Call{Tool: "exec", Args: []byte(`{"command":"` + strings.Repeat("x", 200_000) + `"}`)})
			if err != nil || d.Answer.Block != tt.closed || d.Changed != nil {
				t.Errorf("deciding: %+v, %v", d, err)
			}
			if !strings.Contains(log.String(), tt.log) {
				t.Errorf("deciding: the log lacks %q: %.300s", tt.log, log)
			}
			p := program(t, tt.script, tt.limit)
			ps, log = points(t, "message_received", p)
			ps.MessageReceived.Notify(t.Context(), hook.Message{Content: "hi"})
			ctx, cancel := context.WithTimeout(t.Context(), 2*patient)
			defer cancel()
			if ps.MessageReceived.Wait(ctx); ctx.Err() != nil {
				t.Error("observing: it never ended")
			}
			if tt.closed && !strings.Contains(log.String(), tt.log) {
				t.Errorf("observing: the log lacks %q: %.300s", tt.log, log)
			}
		})
	}
	t.Run("observing does not wait for the program", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		r := exec.Runner{Broker: host.Broker{}, Environ: os.Environ(), State: dir}
		f := r.Func(exec.Command{Name: "x",
			Argv: []string{"/bin/sh", "-c", `until [ -e go ]; do sleep 0.01; done; echo >done`}, Dir: dir})
		ps, log := points(t, "message_received", hook.Program{Name: "x", Timeout: patient, Conversation: true, Func: f})
		ps.MessageReceived.Notify(t.Context(), hook.Message{Content: "hi"})
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil { // only now the program can end
			t.Fatal(err)
		}
		ps.MessageReceived.Wait(waittest.Context(t))
		if _, err := os.Stat(filepath.Join(dir, "done")); err != nil {
			t.Errorf("%v, log %s", err, log)
		}
	})
	t.Run("known secrets are removed from the event", func(t *testing.T) {
		t.Parallel()
		redact := func(s string) string { return strings.ReplaceAll(s, "s3cret", "[redacted]") }
		r := exec.Runner{Broker: host.Broker{}, Environ: os.Environ(), Redact: redact}
		out, err := r.Func(exec.Command{Name: "x", Argv: []string{"/bin/cat"}, Dir: t.TempDir()})(t.Context(),
			[]byte(`{"text": "s3cret"}`))
		if err != nil || strings.TrimSpace(string(out)) != `{"text": "[redacted]"}` {
			t.Errorf("%s, %v", out, err)
		}
	})
	t.Run("the child that was left is ended", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		r := exec.Runner{Broker: host.Broker{}, Environ: os.Environ(), State: dir}
		f := r.Func(exec.Command{Name: "x", Argv: []string{"/bin/sh", "-c", `sleep 600 >/dev/null 2>&1 & echo $! >pid`},
			Dir: dir})
		if _, err := f(t.Context(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		err = syscall.Kill(pid, 0)
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // nobody may wait for it in a container
		if !errors.Is(err, syscall.ESRCH) && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %d: %v, %s", pid, err, stat)
		}
	})
	t.Run("a program that is missing is refused at a policy point and skipped elsewhere", func(t *testing.T) {
		t.Parallel()
		r := exec.Runner{Broker: host.Broker{}}
		p := hook.Program{Name: "gone",
			Func: r.Func(exec.Command{Name: "gone", Argv: []string{"/no/such/program"}, Dir: t.TempDir()})}
		ps, _ := points(t, "before_tool_call", p)
		if d, err := ps.BeforeToolCall.Decide(t.Context(), hook.Call{}); err != nil || !d.Answer.Block {
			t.Errorf("%+v, %v", d, err)
		}
		ps, _ = points(t, "tool_result_persist", p)
		if d, err := ps.ToolResultPersist.Decide(t.Context(), hook.ToolResultPersist{}); err != nil || d.Answer.Block {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// The cost of a program beside its own work.
func BenchmarkProgram(b *testing.B) {
	r := exec.Runner{Broker: host.Broker{}, Environ: []string{"PATH=/usr/bin:/bin"}}
	ps := hook.New(nil)
	if err := ps.Program("before_tool_call",
		hook.Program{Name: "true",
			Func: r.Func(exec.Command{Name: "true", Argv: []string{"/bin/true"}, Dir: b.TempDir()})}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ps.BeforeToolCall.Decide(b.Context(), hook.Call{Tool: "exec", Args: []byte(`{"command":"ls"}`)}); err !=
			nil {
			b.Fatal(err)
		}
	}
}
