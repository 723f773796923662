//go:build unix

package chelatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestModelKill kills the engine while it answers a request. The client repeats the request
// with its Idempotency-Key: it gets the answer of the first one, and the session has one
// question and one answer.
func TestModelKill(t *testing.T) {
	for _, step := range []string{"run.execute:1", "run.end:1", "run.ended:1"} {
		for path, body := range modelForms {
			t.Run("one run after a kill at "+step+", "+path, func(t *testing.T) {
				t.Parallel()
				srv := llmtest.ServerFunc(t, llmtest.OpenAI,
					func(int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Say("done") })
				url, _ := srv.Listen()
				dir := t.TempDir()
				conf := modelConfig(llmtest.OpenAI, url)
				conf["gateway"] = json.RawMessage(fmt.Sprintf(`{"auth": {"token": %q}, "http": {"endpoints": %s}}`, portToken,
					modelEndpoints))
				writeConfig(t, dir, conf)
				post := func() (modelAnswer, error) {
					at, err := os.ReadFile(filepath.Join(dir, "url.txt"))
					if err != nil {
						t.Fatal(err)
					}
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(string(at), "ws")+
						path, strings.NewReader(body("hi")))
					if err != nil {
						t.Fatal(err)
					}
					req.Header.Set("Authorization", "Bearer "+portToken)
					req.Header.Set("Idempotency-Key", "k")
					hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
					res, err := hc.Do(req)
					if err != nil {
						return modelAnswer{}, err
					}
					return readModelAnswer(t, res), nil
				}
				p := spawn(t, dir, step, childListen+"=1")
				if a, err := post(); err == nil {
					t.Fatalf("answered %s before the kill", a.body)
				}
				_ = p.Wait() // it killed itself
				p.in.Close()
				p = spawn(t, dir, "", childListen+"=1")
				t.Cleanup(p.kill)
				a, err := post()
				if err != nil || a.status != 200 || a.text() != "done" {
					t.Fatalf("repeated: %v %d %s", err, a.status, a.body)
				}
				cl, err := client.Dial(t.Context(), client.Options{Dial: dial(dir), Once: true})
				if err != nil {
					t.Fatal(err)
				}
				defer cl.Close()
				var said []string
				for _, m := range (&Client{Client: cl, t: t}).messages(a.header.Get("X-Chela-Session-Key")) {
					if m.Role == wire.RoleUser || m.Role == wire.RoleAssistant {
						said = append(said, m.Role+": "+m.Text())
					}
				}
				if got := strings.Join(said, ", "); got != "user: hi, assistant: done" {
					t.Errorf("the session contains %s", got)
				}
				p.stop(t)
			})
		}
	}
}
