//go:build unix

package chelatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestGiveUp has the process die each time that it carries out the same turn.
func TestGiveUp(t *testing.T) {
	for _, c := range []struct {
		step    string // before which each process dies
		asked   int    // model calls until the turn is given up
		written int    // times that the tool ran
		result  string // of the call, in the next request
	}{
		{"run.execute:1", 0, 0, ""}, // before the model is asked
		{"model.end:1", 3, 0, ""},   // before the call that it asks for is stored
		{"tool.start:1", 1, 0, "Not run: interrupted 3 times"},
		{"run.end:1", 4, 1, "no output"}, // before the answer is stored
	} {
		t.Run("REC-03 a turn that crashes the process at "+c.step+" each time stops after 3 attempts", func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
				switch body := string(r.Body); {
				case strings.Contains(body, "next message"):
					return llmtest.Say("fine")
				case strings.Contains(body, `"role":"tool"`):
					return llmtest.Say("written")
				}
				return llmtest.Call("call_1", "exec", `{"command":"echo x >>effects"}`)
			})
			url, hc := srv.Listen()
			dir := t.TempDir()
			conf := modelConfig(llmtest.OpenAI, url)
			conf["tools"] = []byte(`{"exec": {"mode": "full"}}`)
			cmd, first := startSubprocess(t, dir, conf, c.step)
			_ = first.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "write it", IdempotencyKey: "m1"}, nil) // the answer may be lost
			for n := 1; ; n++ {
				died(t, cmd)
				if n == 3 {
					break
				}
				next := spawn(t, dir, c.step) // it resumes the turn by itself
				defer next.in.Close()
				cmd = next.Cmd
			}
			if n := len(srv.Requests()); n != c.asked {
				t.Errorf("the model was asked %d times in three attempts, want %d", n, c.asked)
			}

			for start := range 2 { // the turn ends, and stays ended
				g := Start(t, Options{Dir: dir, HTTP: hc, Config: conf})
				cl := g.Client()
				if w := cl.waited("m1"); w.Status != wire.StatusError || !strings.Contains(w.Error, "interrupted 3 times") {
					t.Errorf("start %d: the turn is %s: %q", start, w.Status, w.Error)
				}
				if n := strings.Count(strings.Join(cl.lines("main"), "\n"), "system: interrupted 3 times"); n != 1 {
					t.Errorf("start %d: the person is told %d times:\n%s", start, n, strings.Join(cl.lines("main"), "\n"))
				}
				if n := len(srv.Requests()); n != c.asked {
					t.Errorf("start %d: %d more model calls", start, n-c.asked)
				}
				cl.Close()
				g.Stop()
			}
			if end := Start(t, Options{Dir: dir, HTTP: hc, Config: conf}).Client().Ask("main", "next message"); end.Text != "fine" {
				t.Errorf("the next message: %s %q %s", end.State, end.Text, end.Error)
			}
			next := srv.Requests()[c.asked] // the server checks that it is valid
			if got := strings.Count(string(next.Body), `"role":"tool"`); got != min(1, len(c.result)) || !strings.Contains(string(next.Body), c.result) {
				t.Errorf("the next request has %d results, want %q", got, c.result)
			}
			b, _ := os.ReadFile(filepath.Join(dir, "workspace", "effects"))
			if n := strings.Count(string(b), "x"); n != c.written {
				t.Errorf("the tool ran %d times, want %d", n, c.written)
			}
		})
	}
}

// died waits until a process has been killed.
func died(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	late := time.AfterFunc(waittest.Limit, func() { cmd.Process.Signal(syscall.SIGTERM) })
	defer late.Stop()
	_ = cmd.Wait()
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("the engine was not killed: %s", cmd.ProcessState)
	}
}
