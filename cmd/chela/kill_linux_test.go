package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestKillStarting kills gateways 10 times, or CHELA_TEST_KILLS times, while they start
// commands. A child that does not run its own program yet has the lock, the socket and
// the port of the gateway; it is stopped for a while. The next gateway, on the same
// port, must start nevertheless.
func TestKillStarting(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	kills := 10
	many := os.Getenv("CHELA_TEST_KILLS")
	if many != "" {
		var err error
		if kills, err = strconv.Atoi(many); err != nil {
			t.Fatal(err)
		}
	}
	srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(n int, _ llmtest.ReceivedRequest) llmtest.Step {
		var calls []llm.ToolCall
		for i := range 4 {
			calls = append(calls, llmtest.ToolCall(fmt.Sprintf("call_%d_%d", n, i), "exec", `{"command":"true"}`))
		}
		return llmtest.Calls(calls...)
	})
	url, _ := srv.Listen()
	dir := home(t, url)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	caught := 0
	for k := range kills {
		cmd, err := start(t, dir, port)
		if err != nil {
			t.Fatalf("start %d was refused, after %d children: %v", k, caught, err)
		}
		c := connect(t, dir)
		for i := range 2 {
			key := fmt.Sprintf("s%d-%d", k, i)
			call(t, c, wire.MethodChatSend, wire.ChatSend{SessionKey: key, Message: "go", IdempotencyKey: key}, nil)
		}
		child := stopChild(cmd, 300*time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if child > 0 {
			caught++
			time.AfterFunc(100*time.Millisecond, func() { _ = syscall.Kill(child, syscall.SIGCONT) })
		}
		c.Close()
	}
	t.Logf("%d kills, %d of them with a child", kills, caught)
	if many != "" && caught < kills/4 { // whether a child is seen in time is chance
		t.Errorf("only %d of %d gateways were killed while they started a command", caught, kills)
	}
}

// stopChild stops a child of a process that does not run its own program yet, and
// returns its id; 0 if there is none in time.
func stopChild(cmd *exec.Cmd, limit time.Duration) int {
	dir := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
	program, _ := os.Readlink(dir + "/exe")
	starting := func(pid string) bool {
		exe, err := os.Readlink("/proc/" + pid + "/exe")
		return err == nil && exe == program
	}
	for end := time.Now().Add(limit); time.Now().Before(end); {
		tasks, _ := filepath.Glob(dir + "/task/*/children")
		for _, task := range tasks {
			b, _ := os.ReadFile(task) // a thread may have ended
			for _, pid := range strings.Fields(string(b)) {
				n, err := strconv.Atoi(pid)
				if err != nil || !starting(pid) || syscall.Kill(n, syscall.SIGSTOP) != nil {
					continue
				}
				if starting(pid) {
					return n
				}
				_ = syscall.Kill(n, syscall.SIGCONT)
			}
		}
	}
	return 0
}
