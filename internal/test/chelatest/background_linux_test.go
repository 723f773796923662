package chelatest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

func TestBackground(t *testing.T) {
	full := Config{"tools": json.RawMessage(`{"exec": {"mode": "full"}}`)}
	dir := t.TempDir()
	g := Start(t, Options{Dir: dir, Model: eventModel(), Config: full})
	c := g.Client()
	t.Run("EX-15 the end of a background command wakes its session", func(t *testing.T) {
		end := c.Ask("main", `exec {"command":"sleep 0.5; echo all done; exit 3","background":true}`)
		if !strings.Contains(end.Text, "still running in the background as sessionId ") {
			t.Fatalf("answer %q %s", end.Text, end.Error)
		}
		got := c.answer("heard: ")
		if !strings.Contains(got, "has ended: exit code 3") || !strings.Contains(got, "all done") {
			t.Errorf("heard %q", got)
		}
	})
	t.Run("PR-05 another session does not see it", func(t *testing.T) {
		end := c.Ask("main", `exec {"command":"echo here; sleep 300","background":true}`)
		_, id, _ := strings.Cut(end.Text, "sessionId ")
		id, _, _ = strings.Cut(id, ",")
		poll := `process {"action":"poll","sessionId":"` + id + `","timeout":300}`
		if got := c.Ask("other", poll).Text; !strings.Contains(got, "there is no command") {
			t.Errorf("other session: %q", got)
		}
		if got := c.Ask("main", poll).Text; !strings.Contains(got, "[running]") {
			t.Errorf("own session: %q", got)
		}
	})
	t.Run("background commands end with the gateway, and the next one reports it", func(t *testing.T) {
		c.Ask("main", `exec {"command":"echo $$ > pid; exec sleep 300","background":true,"timeoutSeconds":0}`)
		pid := number(t, filepath.Join(dir, "workspace", "pid"))
		g.Stop()
		if alive(pid) {
			t.Error("the command is still running")
		}
		next := Start(t, Options{Dir: dir, Model: eventModel(), Config: full})
		got := awaitHistory(t, next.Client(), "exec sleep 300")
		if !strings.Contains(got, "Chela stopped while the background command") {
			t.Errorf("heard %q", got)
		}
	})
}

// awaitHistory waits for an answer in the history that contains a text.
func awaitHistory(t *testing.T, c *Client, piece string) string {
	t.Helper()
	found := ""
	waittest.Until(t, "an answer with "+piece, func() bool {
		var h wire.History
		c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
		for _, m := range h.Messages {
			if text := m.Text(); m.Role == "assistant" && strings.HasPrefix(text, "heard: ") && strings.Contains(text, piece) {
				found = text
			}
		}
		return found != ""
	})
	return found
}

// TestBackgroundKilled kills an engine with a command in the background. The
// next engine stops the command and notifies the session.
func TestBackgroundKilled(t *testing.T) {
	srv := llmtest.NewServer(t, llmtest.OpenAI,
		llmtest.Call("call_1", "exec", `{"command":"echo $$ >sh.pid; sleep 300","background":true}`),
		llmtest.Say("it runs"), llmtest.Say("heard: it was ended, exec sleep 300"),
	)
	url, hc := srv.Listen()
	dir := t.TempDir()
	conf := modelConfig(llmtest.OpenAI, url)
	conf["tools"] = json.RawMessage(`{"exec": {"mode": "full"}}`)
	cmd, c := startSubprocess(t, dir, conf, "")
	if end := c.Ask("main", "start it"); end.Text != "it runs" {
		t.Fatalf("answer %q %s", end.Text, end.Error)
	}
	pid := number(t, filepath.Join(dir, "workspace", "sh.pid"))
	t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	cmd.Process.Kill()
	cmd.Wait()
	if !alive(pid) {
		t.Fatal("the command ended with its engine, so there is nothing to find")
	}
	next := Start(t, Options{Dir: dir, HTTP: hc, Config: conf}).Client()
	awaitHistory(t, next, "it was ended")
	waittest.Until(t, "the command has ended", func() bool { return !alive(pid) })
	var h wire.History
	next.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
	told := 0
	for _, m := range h.Messages {
		told += strings.Count(m.Text(), "Chela stopped while the background command")
	}
	if told != 1 {
		t.Errorf("the session was notified %d times", told)
	}
}
