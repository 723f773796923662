//go:build unix

package chelatest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/wire"
)

// configured writes a configuration with a model server to a state directory.
func configured(t testing.TB, dir string) {
	t.Helper()
	srv := httptest.NewServer(new(toolModel))
	t.Cleanup(srv.Close)
	conf := fmt.Sprintf(`{agents: {defaults: {model: "mock/m", skipBootstrap: true}}, tools: {exec: {mode: "full"}},
		models: {providers: {mock: {baseUrl: %q, api: "openai-completions", models: [{id: "m"}]}}}}`, srv.URL+"/v1")
	if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
}

// open starts or finds the engine of a directory, as a command does, and
// connects to it.
func open(t testing.TB, dir string) (cli.Engine, *Client) {
	t.Helper()
	e, err := app.Build(standard.New()).Start(t.Context(), cli.Start{
		State: dir, Config: filepath.Join(dir, "chela.json"), LastGood: filepath.Join(dir, "last-good"),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), client.Options{Dial: e.Dial, Caps: []string{wire.CapToolEvents}, Once: true})
	if err != nil {
		t.Fatal(err)
	}
	return e, &Client{Client: c, t: t}
}

// TestTakeover has a second process attach to the first one and take over when
// the first is killed in the middle of a turn.
func TestTakeover(t *testing.T) {
	t.Run("GW-12 the lock of a killed process is free, and its turn is resumed", takeover)
}

func takeover(t *testing.T) {
	dir := t.TempDir()
	writeConfig(t, dir, serveModel(t, new(toolModel)))
	configured(t, dir)
	p := spawn(t, dir, "tool.run:1") // killed when its first tool runs
	defer p.in.Close()
	first, c := open(t, dir)
	if _, ok := first.(*app.Engine); ok {
		t.Fatal("the second process did not attach to the first")
	}
	var sent wire.ChatSent
	err := c.Call(t.Context(), wire.MethodChatSend,
		wire.ChatSend{SessionKey: "main", Message: "effect 7", IdempotencyKey: "m7"}, &sent)
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done() // the owner is gone
	p.Wait()
	c.Close()

	second, c := open(t, dir)
	if _, ok := second.(*app.Engine); !ok {
		t.Fatal("no process took over")
	}
	var w wire.AgentWaited
	if err := c.Call(t.Context(), wire.MethodAgentWait,
		wire.AgentWait{RunID: "m7", TimeoutMs: waittest.Limit.Milliseconds()}, &w); err != nil || w.Status != "ok" {
		t.Errorf("the turn ended %q: %v", w.Status, err)
	}
	h, err := c.History(t.Context(), "main", 100)
	if err != nil {
		t.Fatal(err)
	}
	all, err := json.Marshal(h.Messages)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(all), "outcome is unknown") || !strings.Contains(string(all), "done 7") {
		t.Errorf("history %s", all)
	}
	c.Close()
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
