//go:build unix

package chelatest

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestForgetKill kills the engine at each step of a removal. The next engine completes
// it without being asked again.
func TestForgetKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	for _, step := range []string{"forget.marked:1", "forget.outputs:1", "forget.rows:1", "forget.attachments:1",
		"forget.notes:1", "forget.logs:1", "forget.scrub:1"} {
		t.Run("killed at "+step, func(t *testing.T) {
			t.Parallel()
			srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
				return llmtest.Say("ok")
			})
			url, _ := srv.Listen()
			dir := t.TempDir()
			writeUnder(t, dir, "workspace/MEMORY.md", "- The Zanzibar trip is in March.\n- The router runs on the NAS.\n")
			cmd, c := startSubprocess(t, dir, modelConfig(llmtest.OpenAI, url), step)
			c.Ask("main", "we fly to Zanzibar")
			c.Ask("main", "Bob likes tea")
			id, err := c.Client.Send(t.Context(), "main", "a file", wire.Attachment{Type: "file", MIME: "text/plain",
				FileName: "a.txt", Content: []byte("Zanzibar is an island.\nTea.\n")})
			if err != nil {
				t.Fatal(err)
			}
			c.Await(id)
			if end := c.Ask("main", "/forget zanzibar"); !strings.Contains(end.Text, "/forget yes") {
				t.Fatalf("list: %q %s", end.Text, end.Error)
			}
			if _, err := c.Client.Send(t.Context(), "main", "/forget yes"); err == nil {
				t.Fatal("the engine answered")
			}
			if err := cmd.Wait(); err == nil {
				t.Fatal("the engine exited normally")
			}
			var st store.Store
			g := Start(t, Options{Dir: dir, Config: modelConfig(llmtest.OpenAI, url), Wrap: func(s store.Store) store.Store {
				st = s
				return s
			}})
			waittest.Until(t, "the end of the removal", func() bool {
				left, err := store.Get(t.Context(), st, func(r store.Reader) (string, error) { return r.Setting("forget") })
				if err != nil {
					t.Fatal(err)
				}
				return left == ""
			})
			if names := containing(t, dir, "zanzibar"); len(names) > 0 {
				t.Errorf("%q contain it", names)
			}
			c = g.Client()
			if history := strings.Join(c.lines("main"), "\n"); !strings.Contains(history, "Bob likes tea") {
				t.Errorf("history:\n%s", history)
			}
			if end := c.Ask("main", "and now?"); end.Text != "ok" {
				t.Errorf("next: %s %q %s", end.State, end.Text, end.Error)
			}
			if got := g.readIn("MEMORY.md"); got != "- The router runs on the NAS.\n" {
				t.Errorf("MEMORY.md: %q", got)
			}
		})
	}
}
