package chelatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// canary is a key that must not appear anywhere.
const canary = "sk-canary-0123456789abcdef"

// logged is a log that is safe for concurrent use.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// TestSecrets has services reject a key in every way, some of them repeating
// it, and searches for the key in all output.
func TestSecrets(t *testing.T) {
	said := "Incorrect API key provided: " + canary + "."
	faults := map[string]llmtest.Fault{
		"refused":         {Status: http.StatusUnauthorized, Message: said},
		"not understood":  {Status: http.StatusBadRequest, Message: said},
		"no JSON":         {Status: http.StatusForbidden, Body: func([]byte) []byte { return []byte("<p>" + said) }},
		"in the stream":   {Error: true, Kind: "authentication_error", Message: said},
		"garbage":         {Body: func([]byte) []byte { return []byte("data: {" + said + "\n\n") }},
		"in a redirect":   {Status: http.StatusFound, Header: func(set func(k, v string)) { set("Location", "http://127.0.0.1:1/?key="+canary) }},
		"in escaped text": {Body: func(b []byte) []byte { return append([]byte(canary+"\n\n"), b...) }},
	}
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		for name, fault := range faults {
			t.Run(fmt.Sprint(w, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { leak(t, w, name, fault) })
			})
		}
	}
}

// leak has one service fail in one way.
func leak(t *testing.T, w llmtest.Wire, name string, fault llmtest.Fault) {
	srv := llmtest.ServerFunc(t, w, func(int, llmtest.ReceivedRequest) llmtest.Step {
		return llmtest.Step{Parts: []llm.Part{llm.Text("well")}, Fault: fault}
	})
	srv.Key = canary
	srv.Lenient = true
	url, hc := srv.Pipe()
	log := &logged{}
	conf := Config{
		"agents.defaults": json.RawMessage(`{"model": "mock/m"}`),
		"models": json.RawMessage(fmt.Sprintf(
			`{"providers": {"mock": {"baseUrl": %q, "api": %q, "apiKey": %q, "models": [{"id": "m"}]}}}`, url, w, canary)),
	}
	g := Start(t, Options{HTTP: hc, Config: conf, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	c := g.Client()
	look := func(where string, b []byte) {
		t.Helper()
		if i := bytes.Index(b, []byte(canary)); i >= 0 {
			t.Errorf("%s: …%s…", where, b[max(0, i-100):min(len(b), i+len(canary)+20)])
		}
	}
	end := c.Ask("main", "hi")
	if name == "refused" && !strings.Contains(end.Error, "provided: [redacted].") {
		t.Errorf("the service did not repeat the key: %q", end.Error)
	}
	for _, ev := range end.Seen {
		look("event "+ev.Name, ev.Payload)
	}
	for method, params := range map[string]any{
		wire.MethodChatHistory: wire.ChatHistory{SessionKey: "main"}, wire.MethodSessionsExport: wire.SessionKey{Key: "main"},
		wire.MethodStatus: nil, wire.MethodHealth: nil, wire.MethodModelsList: nil, wire.MethodAgentWait: wire.AgentWait{RunID: end.Run},
	} {
		var answer json.RawMessage
		c.must(method, params, &answer)
		look(method, answer)
	}
	look("/status", []byte(c.Ask("main", "/status").Text))
	c.Close()
	g.Stop()
	srv.Close()
	look("log", log.buf.Bytes())
	err := filepath.WalkDir(g.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		look(path, b)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestToolSecret has a tool return a known key.
func TestToolSecret(t *testing.T) {
	t.Run("LG-01 a known secret in a tool result is in no transcript, event, log or request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			state := t.TempDir()
			file := filepath.Join(state, "workspace", "found.txt")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("the key is "+canary+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			args, err := json.Marshal(map[string]string{"path": "found.txt"})
			if err != nil {
				t.Fatal(err)
			}
			model := llmtest.NewScript(
				llmtest.Step{Parts: []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "t1", Name: "read", Args: args}}}},
				llmtest.Step{Parts: []llm.Part{llm.Text("read")}},
			)
			log := &logged{}
			g := Start(t, Options{
				Dir: state, Model: model, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
				Config: Config{"models": json.RawMessage(fmt.Sprintf(`{"providers": {"other": {"baseUrl": "http://127.0.0.1:1", "apiKey": %q}}}`, canary))},
			})
			c := g.Client()
			end := c.Ask("main", "what is in the file?")
			if end.Text != "read" {
				t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
			}
			all := log.buf.Bytes()
			for _, e := range end.Seen {
				all = append(all, e.Payload...)
			}
			for _, r := range model.Requests() {
				b, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, b...)
			}
			c.Close()
			g.Stop()
			for _, name := range []string{"chela.db", "chela.db-wal"} {
				b, _ := os.ReadFile(filepath.Join(state, name)) // may be deleted by now
				all = append(all, b...)
			}
			if i := bytes.Index(all, []byte(canary)); i >= 0 {
				t.Errorf("…%s…", all[max(0, i-200):i+len(canary)])
			}
			if !bytes.Contains(all, []byte("the key is [redacted]")) {
				t.Error("the rest of the result is missing, too")
			}
		})
	})
}
