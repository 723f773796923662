//go:build unix

package chelatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
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
	err := c.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "effect 7", IdempotencyKey: "m7"}, &sent)
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
	if err := c.Call(t.Context(), wire.MethodAgentWait, wire.AgentWait{RunID: "m7", TimeoutMs: 20_000}, &w); err != nil || w.Status != "ok" {
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

// TestFullDisk fills a small file system under a running engine: only stored
// messages are acknowledged, the process keeps running, and it continues when
// there is space again.
func TestFullDisk(t *testing.T) {
	t.Run("REC-08 a message that cannot be stored is rejected with the reason, and accepted when there is space", fullDisk)
}

func fullDisk(t *testing.T) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root on Linux")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m,mode=0700"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	configured(t, dir)
	e, c := open(t, dir)
	if end := c.Ask("main", "plain 1"); end.Text != "done 1" {
		t.Fatalf("%q %s", end.Text, end.Error)
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()

	accepted := map[string]bool{}
	send := func(n int) error {
		id := fmt.Sprintf("m%d", n)
		err := c.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{
			SessionKey: "main", Message: fmt.Sprintf("plain %d %s", n, strings.Repeat("x", 40_000)), IdempotencyKey: id,
		}, nil)
		if err == nil {
			accepted[id] = true
		}
		return err
	}
	n := 1
	var refused error
	for n < 40 && refused == nil {
		n++
		refused = send(n)
	}
	we, ok := errors.AsType[*wire.Error](refused)
	if !ok || !strings.Contains(we.Message, "space") {
		t.Fatalf("a full disk was reported as %v", refused)
	}
	if err := c.Call(t.Context(), wire.MethodHealth, nil, nil); err != nil {
		t.Errorf("health: %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for err = send(n); err != nil && time.Now().Before(deadline); err = send(n) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("still rejected with free space: %v", err)
	}
	for id := range accepted {
		var w wire.AgentWaited
		if err := c.Call(t.Context(), wire.MethodAgentWait, wire.AgentWait{RunID: id, TimeoutMs: 20_000}, &w); err != nil || w.Status != "ok" {
			t.Errorf("%s was accepted and ended %q: %v %s", id, w.Status, err, w.Error)
		}
	}
	c.Close()
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
