//go:build unix

package chelatest

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestCrash kills an engine during a tool call. A strict server for each wire
// format checks the requests of the next engine.
func TestCrash(t *testing.T) {
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		t.Run("HYG-01 HYG-07 "+string(w)+" accepts the requests after a crash, with calls, arguments and results",
			func(t *testing.T) {
				srv := llmtest.NewServer(t, w,
					llmtest.Calls(
						llmtest.ToolCall("call_1", "write", `{"path":"a.txt","content":"alpha and omega"}`),
						llmtest.ToolCall("call_2", "read", `{"path":"a.txt"}`),
					),
					llmtest.Say("first answer"),
					llmtest.Call("call_3", "write", `{"path":"b.txt","content":"beta"}`), // killed during this call
					llmtest.Say("second answer"),
					llmtest.Say("third answer"),
				)
				url, hc := srv.Listen()
				dir := t.TempDir()
				conf := modelConfig(w, url)
				crash(t, dir, conf)

				c := Start(t, Options{Dir: dir, HTTP: hc, Config: conf}).Client()
				if w := c.waited("second"); w.Status != wire.StatusOK {
					t.Errorf("the interrupted run ended %s: %s", w.Status, w.Error)
				}
				if end := c.Ask("main", "third"); end.Text != "third answer" {
					t.Errorf("next: %s %q %s", end.State, end.Text, end.Error)
				}
				rs := srv.Requests()
				last := string(rs[len(rs)-1].Body)
				at := 0
				for _, part := range []string{
					`alpha and omega`, `1\talpha and omega`, `first answer`, `second`, `beta`, `outcome is unknown`,
					`second answer`, `third`,
				} {
					i := strings.Index(last[at:], part)
					if i < 0 {
						t.Fatalf("%q is missing or misplaced in the last request", part)
					}
					at += i
				}
				if n := strings.Count(last, `"is_error":true`); w == llmtest.Anthropic && n != 1 {
					t.Errorf("%d results are marked as errors, want that of the interrupted call", n)
				}
				for _, id := range []string{"call_1", "call_2", "call_3"} {
					if n := strings.Count(last, id); n != 2 {
						t.Errorf("%s is in the last request %d times, want a call and a result", id, n)
					}
				}
			})
	}
}

// startSubprocess starts an engine in a separate process, which is to be killed, and
// returns a client of it. It uses the configuration if there is one; with a
// step, the engine kills itself there.
func startSubprocess(t *testing.T, dir string, conf Config, step string) (*exec.Cmd, *Client) {
	t.Helper()
	if conf != nil {
		writeConfig(t, dir, conf)
	}
	p := spawn(t, dir, step)
	t.Cleanup(func() { p.in.Close(); p.Wait() })
	cl, err := client.Dial(t.Context(), client.Options{Dial: dial(dir), Once: true})
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{Client: cl, t: t}
	t.Cleanup(func() { c.Close() })
	return p.Cmd, c
}

// crash starts an engine that answers one message and dies during the tool call
// of the next.
func crash(t *testing.T, dir string, conf Config) {
	t.Helper()
	cmd, c := startSubprocess(t, dir, conf, "tool.run:2") // calls of readers are not counted
	if end := c.Ask("main", "first"); end.Text != "first answer" {
		t.Fatalf("first: %s %q %s", end.State, end.Text, end.Error)
	}
	c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "second", IdempotencyKey: "second"}, nil)
	for ev := range c.Events() { // until it is dead
		var chat wire.Chat
		if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.RunID == "second" && chat.State != wire.StateDelta {
			t.Fatalf("the engine is still running: %s", chat.State)
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the engine exited normally")
	}
}
