package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestOrphan kills an engine with a running command. The next engine stops the
// command.
func TestOrphan(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.OpenAI,
		llmtest.Call("call_1", "exec",
			`{"command":"echo $$ >sh.pid; sleep 300 & echo $! >sleep.pid; wait; touch done","timeoutSeconds":600}`),
		llmtest.Say("I will look"),
	)
	url, hc := srv.Listen()
	dir := t.TempDir()
	conf := modelConfig(llmtest.OpenAI, url)
	conf["tools"] = json.RawMessage(`{"exec": {"mode": "full"}}`)
	cmd, c := startSubprocess(t, dir, conf, "")
	c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "wait", IdempotencyKey: "wait"}, nil)
	var pids []int
	for _, name := range []string{"sh.pid", "sleep.pid"} {
		pid := number(t, filepath.Join(dir, "workspace", name))
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
		pids = append(pids, pid)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if !alive(pids[1]) {
		t.Fatal("the command ended with its engine, so there is nothing to find")
	}

	next := Start(t, Options{Dir: dir, HTTP: hc, Config: conf}).Client()
	waittest.Until(t, "the command has ended", func() bool { return !alive(pids[0]) && !alive(pids[1]) })
	if _, err := os.Stat(filepath.Join(dir, "workspace", "done")); err == nil {
		t.Error("the command ran to its end")
	}
	var waited wire.AgentWaited
	next.must(wire.MethodAgentWait, wire.AgentWait{RunID: "wait", TimeoutMs: waittest.Limit.Milliseconds()}, &waited)
	if waited.Status != wire.StatusOK {
		t.Errorf("the interrupted run ended %s: %s", waited.Status, waited.Error)
	}
	if got := next.audited(); len(got) != 1 || got[0].Tool != "exec" || got[0].Principal != "owner" ||
		got[0].Outcome != "unknown" || got[0].Effect != "acts" {
		t.Errorf("recorded: %+v, want the call once, with an unknown outcome", got)
	}
}

// number waits for a file with a number.
func number(t *testing.T, path string) int {
	t.Helper()
	n := 0
	waittest.Until(t, "a number in "+path, func() bool {
		b, _ := os.ReadFile(path)
		var err error
		n, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return n
}
