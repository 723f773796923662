//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
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

// gateway starts the program as a gateway, and connects to it.
func gateway(t *testing.T, dir string) (*exec.Cmd, *client.Client) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "gateway", "run", "--port", "0")
	cmd.Env = []string{program + "=1", "CHELA_STATE_DIR=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "listens on") {
		t.Fatalf("the gateway did not start: %q %v", line, err)
	}
	c, err := client.Dial(t.Context(), client.Options{Once: true, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "chela.sock"))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return cmd, c
}

// call calls a method of the gateway.
func call(t *testing.T, c *client.Client, method string, params, result any) {
	t.Helper()
	if err := c.Call(t.Context(), method, params, result); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// TestSIGTERM ends the program during a run of one message, while a second one
// waits for it.
func TestSIGTERM(t *testing.T) {
	t.Run("REC-04 a run of 2 s completes before the process exits", func(t *testing.T) {
		asked := make(chan struct{}, 8)
		srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(n int, _ llmtest.ReceivedRequest) llmtest.Step {
			asked <- struct{}{}
			step := llmtest.Say(fmt.Sprint("answer ", n+1))
			if n == 0 {
				step.Delay = 2 * time.Second
			}
			return step
		})
		url, _ := srv.Listen()
		dir := t.TempDir()
		conf := fmt.Sprintf(`{agents: {defaults: {model: "mock/m"}}, messages: {queue: {mode: "followup"}},
			models: {providers: {mock: {baseUrl: %q, api: "openai-completions", apiKey: "k", models: [{id: "m"}]}}}}`, url)
		if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd, c := gateway(t, dir)
		for _, id := range []string{"m1", "m2"} {
			call(t, c, wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: id, IdempotencyKey: id}, nil)
			if id == "m1" {
				<-asked
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("exit: %v", err)
		}
		if n := len(srv.Requests()); n != 1 {
			t.Errorf("%d model calls, want that of the first message", n)
		}

		_, c = gateway(t, dir)
		for _, id := range []string{"m1", "m2"} {
			var w wire.AgentWaited
			call(t, c, wire.MethodAgentWait, wire.AgentWait{RunID: id, TimeoutMs: 20_000}, &w)
			if w.Status != wire.StatusOK {
				t.Errorf("%s ended %s: %s", id, w.Status, w.Error)
			}
		}
		h, err := c.History(t.Context(), "main", 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range h.Messages {
			got = append(got, m.Text())
		}
		if b, _ := json.Marshal(got); string(b) != `["m1","answer 1","m2","answer 2"]` {
			t.Errorf("the transcript is %s: a run was cut off, resumed or repeated", b)
		}
		if n := len(srv.Requests()); n != 2 {
			t.Errorf("%d model calls, want one for each message", n)
		}
	})
}
