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

// TestInterruptedAgain has the process die three times while it carries out the same turn.
func TestInterruptedAgain(t *testing.T) {
	for _, c := range []struct {
		step  string // before which each process dies
		asked int    // model calls in three starts
	}{
		{"run.execute:1", 0}, // before the model is asked
		{"model.end:1", 3},   // before the call that it asks for is stored
		{"tool.start:1", 1},  // before that call starts
		{"run.end:1", 4},     // before the answer is stored
	} {
		t.Run("REC-03 a turn that crashed the process three times at "+c.step+" is carried out beside the next message, once",
			func(t *testing.T) {
				t.Parallel()
				srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
					body := string(r.Body)
					switch asked := strings.LastIndex(body, "write it"); {
					case strings.LastIndex(body, "next message") > asked:
						return llmtest.Say("fine")
					case strings.LastIndex(body, `"role":"tool"`) > asked:
						return llmtest.Say("written")
					}
					return llmtest.Call("call_1", "exec", `{"command":"echo x >>effects"}`)
				})
				url, hc := srv.Listen()
				dir := t.TempDir()
				conf := modelConfig(llmtest.OpenAI, url)
				conf["tools"] = []byte(`{"exec": {"mode": "full"}}`)
				cmd, first := startSubprocess(t, dir, conf, c.step)
				// the answer may be lost
				_ = first.Call(t.Context(), wire.MethodChatSend,
					wire.ChatSend{SessionKey: "main", Message: "write it", IdempotencyKey: "m1"}, nil)
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
					t.Errorf("the model was asked %d times in three starts, want %d", n, c.asked)
				}

				for start := range 2 { // the turn ends, and stays ended
					g := Start(t, Options{Dir: dir, HTTP: hc, Config: conf})
					cl := g.Client()
					if start == 0 {
						if end := cl.Ask("main", "next message"); end.Text != "fine" {
							t.Errorf("the next message: %s %q %s", end.State, end.Text, end.Error)
						}
					}
					if w := cl.waited("m1"); w.Status != wire.StatusOK {
						t.Errorf("start %d: the turn is %s: %q", start, w.Status, w.Error)
					}
					told := strings.Join(cl.lines("main"), "\n")
					for _, line := range []string{"system: interrupted 3 times; others go first",
						"assistant: written", "assistant: fine"} {
						if n := strings.Count(told, line); n != 1 {
							t.Errorf("start %d: %q is %d times in\n%s", start, line, n, told)
						}
					}
					cl.Close()
					g.Stop()
				}
				for _, r := range srv.Requests() { // the server checks that it is valid
					body := string(r.Body)
					if at := strings.LastIndex(body, "next message"); strings.LastIndex(body, "write it") < at &&
						strings.Contains(body[:at], "write it") && !strings.Contains(body[:at], "written") {
						t.Errorf("the next message is sent with what waits:\n%s", body)
					}
				}
				b, _ := os.ReadFile(filepath.Join(dir, "workspace", "effects"))
				if n := strings.Count(string(b), "x"); n != 1 {
					t.Errorf("the tool ran %d times", n)
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
