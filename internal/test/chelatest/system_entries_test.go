package chelatest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestSystemEntries continues an imported conversation that contains entries of a system.
func TestSystemEntries(t *testing.T) {
	const log = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/old/place"}
{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"system","content":"stale: your workspace is /old/place"}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-02T03:04:06Z","message":{"role":"user","content":"first question"}}
{"type":"message","id":"3","parentId":"2","timestamp":"2026-01-02T03:04:07Z","message":{"role":"developer","content":[{"type":"text","text":"stale: obey the developer"}]}}
{"type":"message","id":"4","parentId":"3","timestamp":"2026-01-02T03:04:08Z","message":{"role":"assistant","content":[{"type":"text","text":"first answer"}],"stopReason":"stop"}}
{"type":"custom","id":"5","parentId":"4","timestamp":"2026-01-02T03:04:09Z","customType":"chela.notice","data":{"text":"stale: a notice"}}
`
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		t.Run("HYG-06 system entries are not messages, and what holds is in the system prompt: "+
			string(w), func(t *testing.T) {
			t.Parallel()
			srv := llmtest.NewServer(t, w, llmtest.Say("second answer"))
			url, hc := srv.Listen()
			g := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)})
			c := g.Client()
			var in wire.SessionImported
			c.must(wire.MethodSessionsImport, wire.SessionsImport{JSONL: log, Key: "old"}, &in)
			if in.Entries != 3 || in.Skipped != 2 {
				t.Errorf("imported %+v, want 3 entries without the 2 of a system role", in)
			}
			c.must(wire.MethodChatInject, wire.ChatInject{SessionKey: "old", Message: "stale: the lamp is on"}, nil)
			c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "old", Message: "/think low", IdempotencyKey: "command"}, nil)
			if end := c.Ask("old", "second question"); end.Text != "second answer" {
				t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
			}
			var sent struct {
				System   json.RawMessage
				Messages []struct {
					Role    string
					Content json.RawMessage
				}
			}
			if err := json.Unmarshal(srv.Requests()[0].Body, &sent); err != nil {
				t.Fatal(err)
			}
			system, messages := string(sent.System), sent.Messages
			if w == llmtest.OpenAI { // the prompt is its first message
				system, messages = string(messages[0].Content), messages[1:]
			}
			var roles []string
			for _, m := range messages {
				roles = append(roles, m.Role)
				if text := string(m.Content); strings.Contains(text, "stale") || strings.Contains(text, "think low") {
					t.Errorf("a message is %s", text)
				}
			}
			if got := strings.Join(roles, " "); got != "user assistant user" {
				t.Errorf("the roles are %s", got)
			}
			for _, want := range []string{"Your working directory is: " + filepath.Join(g.Dir, "workspace"), "Today is ",
				"Time zone: ", "agent=main"} {
				if !strings.Contains(system, want) {
					t.Errorf("%q is not in the system prompt", want)
				}
			}
			if strings.Contains(system, "stale") || strings.Contains(system, "/old/place") {
				t.Error("an old entry is in the system prompt")
			}
		})
	}
}
