package chelatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

// TestFullDisk fills a small file system under a running engine: only stored
// messages are acknowledged, the process keeps running, and it continues when
// there is space again.
func TestFullDisk(t *testing.T) {
	t.Run("REC-08 on a full disk the user gets one message, and the database and the configuration are not damaged",
		fullDisk)
}

func fullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m,mode=0700"); err != nil {
		t.Skipf("needs a mount of a small file system: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	held, proceed := make(chan struct{}), make(chan struct{})
	reached, release := sync.OnceFunc(func() { close(held) }), sync.OnceFunc(func() { close(proceed) })
	defer release()
	srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
		switch body := string(r.Body); {
		case strings.Contains(body, "hold on"):
			reached()
			<-proceed
			return llmtest.Say("held " + strings.Repeat("x", 300_000))
		}
		return llmtest.Say("done")
	})
	url, _ := srv.Listen()
	conf := fmt.Sprintf(`{agents: {defaults: {model: "mock/m", skipBootstrap: true}},
		models: {providers: {mock: {baseUrl: %q, api: "openai-completions", apiKey: "k", models: [{id: "m"}]}}}}`, url)
	if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	e, c := open(t, dir)
	if end := c.Ask("main", "hello"); end.Text != "done" {
		t.Fatalf("%q %s", end.Text, end.Error)
	}
	held1 := c.Send("held", "hold on")
	<-held
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()

	n := 0
	send := func() error {
		n++
		return c.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{
			SessionKey: "main", Message: strings.Repeat("x", 40_000), IdempotencyKey: fmt.Sprint("m", n),
		}, nil)
	}
	var refused error
	for n < 40 && refused == nil {
		refused = send()
	}
	we, ok := errors.AsType[*wire.Error](refused)
	if !ok || !strings.Contains(we.Message, "space") || strings.ContainsAny(we.Message, "\n{}") {
		t.Fatalf("a full disk was reported as %v", refused)
	}
	accepted := n - 1
	if err := c.Call(t.Context(), wire.MethodHealth, nil, nil); err != nil {
		t.Errorf("health: %v", err)
	}
	if _, err := c.History(t.Context(), "main", 100); err != nil {
		t.Errorf("history: %v", err)
	}
	// The run in progress cannot store its answer.
	release()
	told := 0
	count := func(ev wire.Event) {
		var a wire.Agent
		var notice wire.Notice
		if ev.Name == wire.EventAgent && ev.Decode(&a) == nil && a.RunID == held1 && a.Stream == wire.StreamNotice &&
			json.Unmarshal(a.Data, &notice) == nil && strings.Contains(notice.Text, "cannot be written") {
			told++
		}
	}
	for told == 0 {
		count(waittest.For(t, "the user is told about the run in progress", c.Events()))
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	end := c.Await(held1)
	for _, ev := range end.Seen {
		count(ev)
	}
	if told != 1 || end.State != wire.StateFinal || !strings.HasPrefix(end.Text, "held x") {
		t.Errorf("told %d times, then %s %.20q %s", told, end.State, end.Text, end.Error)
	}
	if answers := strings.Count(strings.Join(c.lines("held"), "\n"), "assistant: held"); answers != 1 {
		t.Errorf("%d answers", answers)
	}
	for id := range accepted {
		var w wire.AgentWaited
		if err := c.Call(t.Context(), wire.MethodAgentWait, wire.AgentWait{RunID: fmt.Sprint("m", id+1),
			TimeoutMs: waittest.Limit.Milliseconds()}, &w); err != nil || w.Status != "ok" {
			t.Errorf("m%d was accepted and ended %q: %v %s", id+1, w.Status, err, w.Error)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "chela.json")); string(b) != conf {
		t.Errorf("the configuration has %d bytes now, want %d (%v)", len(b), len(conf), err)
	}
	c.Close()
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	db, err := sqlite.Open(t.Context(),
		sqlite.Options{Path: filepath.Join(dir, "chela.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Check(t.Context()); err != nil {
		t.Errorf("the database: %v", err)
	}
}
