package chelatest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestControlUIReconnects connects ten times as OpenClaw's Control UI does. The page
// compares versions from its second hello on unless the hello says that the page is not
// part of the gateway, and marks its first message after a reconnect.
func TestControlUIReconnects(t *testing.T) {
	t.Parallel()
	const cuts = 10
	var steps []llmtest.Step
	for i := range cuts {
		steps = append(steps, llmtest.Say(fmt.Sprintf("answer %d", i)))
	}
	g := Start(t, Options{Model: llmtest.NewScript(steps...)})
	var session string
	for i := range cuts {
		c, err := client.Dial(t.Context(), client.Options{Dial: g.Dial, ID: "openclaw-control-ui", Mode: wire.ModeWebchat, Version: "2026.9.6", Once: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Hello().Server.UIBuild; got != wire.UIConfigured {
			t.Errorf("hello %d: the Control UI is %q", i, got)
		}
		message := map[string]any{
			"sessionKey": "main", "message": fmt.Sprintf("message %d", i), "idempotencyKey": fmt.Sprint("run-", i), "deliver": false,
		}
		if i > 0 {
			message["__controlUiReconnectResume"], message["sessionId"] = true, session
		}
		page := &Client{Client: c, t: t}
		if err := c.Call(t.Context(), wire.MethodChatSend, message, nil); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if got, want := page.Await(fmt.Sprint("run-", i)).Text, fmt.Sprintf("answer %d", i); got != want {
			t.Errorf("message %d: answered %q, want %q", i, got, want)
		}
		h, err := c.History(t.Context(), "main", 3*cuts)
		if err != nil {
			t.Fatal(err)
		}
		session = h.SessionID
		if i == cuts-1 {
			var all []string
			for _, m := range h.Messages {
				all = append(all, m.Text())
			}
			for n := range cuts {
				if got := strings.Count(strings.Join(all, "\n"), fmt.Sprintf("message %d", n)); got != 1 {
					t.Errorf("message %d is in the history %d times", n, got)
				}
			}
		}
		c.Close()
	}
}
