//go:build unix

package chelatest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// TestWebhookKill kills the engine while it accepts a request. The sender repeats the
// request, as it got no answer: there is one run and one answer in the chat.
func TestWebhookKill(t *testing.T) {
	for step, again := range map[string]bool{
		"webhook.accept:1":   false, // before the commit: nothing was accepted
		"webhook.accepted:1": true,  // between the commit and the answer
		"run.begin:1":        true,
		"run.end:1":          true,
		"run.ended:1":        true,
		"channel.sent:1":     true,
	} {
		t.Run("one run and one answer after a kill at "+step, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI,
				func(int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Say("done") })
			url, _ := srv.Listen()
			dir := t.TempDir()
			conf := modelConfig(llmtest.OpenAI, url)
			conf["hooks"] = json.RawMessage(`{"enabled": true, "token": "` + hookToken + `"}`)
			writeConfig(t, dir, conf)
			post := func() (hookAnswer, error) {
				at, err := os.ReadFile(filepath.Join(dir, "url.txt"))
				if err != nil {
					t.Fatal(err)
				}
				hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				return hookRequest(t.Context(), hc, http.MethodPost, "http"+strings.TrimPrefix(string(at), "ws")+"/hooks/agent",
					strings.NewReader(`{"message": "m", "channel": "file", "to": "7", "idempotencyKey": "k"}`),
					map[string]string{"Authorization": "Bearer " + hookToken})
			}
			p := spawn(t, dir, step, childListen+"=1")
			first, err := post()
			_ = p.Wait() // it killed itself
			p.in.Close()
			if err != nil && strings.HasPrefix(step, "run.end") {
				t.Errorf("no answer: %v", err)
			}
			p = spawn(t, dir, "", childListen+"=1")
			t.Cleanup(p.kill)
			second, err := post()
			if err != nil || second.status != http.StatusOK || second.Run == "" || second.Again != again ||
				first.Run != "" && first.Run != second.Run {
				t.Fatalf("repeated: %+v %v, after %+v", second, err, first)
			}
			sent := filepath.Join(dir, "sent.txt")
			waittest.Until(t, "the answer", func() bool {
				b, _ := os.ReadFile(sent)
				return len(b) > 0
			})
			p.stop(t)
			if b, err := os.ReadFile(sent); !strings.HasPrefix(string(b), "done\n") ||
				bytes.Count(b, []byte("\n"))-doubts(b) != 1 {
				t.Errorf("sent %q %v", b, err)
			}
		})
	}
}
