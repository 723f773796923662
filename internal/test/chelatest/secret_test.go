package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
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
		"refused":        {Status: http.StatusUnauthorized, Message: said},
		"not understood": {Status: http.StatusBadRequest, Message: said},
		"no JSON":        {Status: http.StatusForbidden, Body: func([]byte) []byte { return []byte("<p>" + said) }},
		"in the stream":  {Error: true, Kind: "authentication_error", Message: said},
		"garbage":        {Body: func([]byte) []byte { return []byte("data: {" + said + "\n\n") }},
		"in a redirect": {Status: http.StatusFound,
			Header: func(set func(k, v string)) { set("Location", "http://127.0.0.1:1/?key="+canary) }},
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
	g := Start(t,
		Options{HTTP: hc, Config: conf,
			Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
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
		wire.MethodChatHistory:    wire.ChatHistory{SessionKey: "main"},
		wire.MethodSessionsExport: wire.SessionKey{Key: "main"},
		wire.MethodStatus:         nil,
		wire.MethodHealth:         nil,
		wire.MethodModelsList:     nil,
		wire.MethodAgentWait:      wire.AgentWait{RunID: end.Run},
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
				Config: Config{
					"models": json.RawMessage(fmt.Sprintf(`{"providers": {"other": {"baseUrl": "http://127.0.0.1:1", "apiKey": %q}}}`,
						canary))},
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
			wantRedacted(t, canary, "the key is [redacted]", all, database(state))
		})
	})
}

// database returns the bytes of the database of a gateway that has stopped.
func database(state string) (all []byte) {
	for _, name := range []string{"chela.db", "chela.db-wal"} {
		b, _ := os.ReadFile(filepath.Join(state, name)) // the log may be deleted by now
		all = append(all, b...)
	}
	return all
}

// wantRedacted checks that no text has a secret, and that some text has what
// stands in its place.
func wantRedacted(t *testing.T, canary, instead string, texts ...[]byte) {
	t.Helper()
	all := bytes.Join(texts, nil)
	if i := bytes.Index(all, []byte(canary)); i >= 0 {
		t.Errorf("…%s…", all[max(0, i-200):i+len(canary)])
	}
	if !bytes.Contains(all, []byte(instead)) {
		t.Error("the rest of the text is missing, too")
	}
}

// leaky is a tool that puts a known key into each text that it can produce. Its
// argument selects where.
type leaky struct{}

func (leaky) Spec() tool.Spec {
	return tool.Spec{
		Name: "leaky", Description: "leaky", Effect: tool.Acts,
		Schema: json.RawMessage(`{"type": "object", "properties": {"in": {"type": "string"}, "with": {"type": "string"}}}`),
	}
}

func (leaky) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	p := tool.Plan{Effect: tool.Acts, Text: "act", Hash: strings.Join(c.Rights, ",")}
	switch in := leakyIn(c.Args); {
	case in == "plan error":
		return p, errors.New("no plan: " + canary)
	case in == "deny":
		p.Deny = "never with " + canary
	case in == "text":
		p.Ask, p.Text, p.Reason = true, "send "+canary, "it acts"
	case in == "reason":
		p.Ask, p.Reason = true, "it sends "+canary
	case in == "reason of rights" && len(c.Rights) > 0:
		p.Reason = "the network with " + canary
	}
	return p, nil
}

func (leaky) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	switch leakyIn(c.Args) {
	case "progress":
		c.Update("half of " + canary)
	case "details":
		return tool.Detailed("done", map[string]string{"found": canary}), nil
	case "error":
		return tool.Result{}, errors.New("failed with " + canary)
	case "reason of rights":
		if len(c.Rights) == 0 {
			return tool.Result{}, &tool.Blocked{Rights: []string{"net"}, Again: true}
		}
	}
	return tool.Text("done"), nil
}

func leakyIn(args json.RawMessage) string {
	var a struct{ In string }
	_ = json.Unmarshal(args, &a)
	return a.In
}

// TestToolTexts has a tool, hooks and a model put a known key into each of their texts,
// and searches for it in all that is stored, shown and sent to the model.
func TestToolTexts(t *testing.T) {
	t.Parallel()
	hooks := []hook.Before{{Name: "h", Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		switch leakyIn(c.Args) {
		case "hook block":
			return hook.Verdict{Block: true, Reason: "not with " + canary}, nil
		case "hook ask":
			return hook.Verdict{Ask: true, Reason: "is " + canary + " yours?"}, nil
		case "hook change":
			return hook.Verdict{Args: json.RawMessage(`{"in": "nothing", "with": "` + canary + `"}`)}, nil
		}
		return hook.Verdict{}, nil
	}}}
	for in, asks := range map[string]bool{
		"plan error":       false,
		"deny":             false,
		"text":             true,
		"reason":           true,
		"reason of rights": true,
		"progress":         false,
		"details":          false,
		"error":            false,
		"hook block":       false,
		"hook ask":         true,
		"hook change":      true,
		"model error":      false,
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			synctest.Test(t, func(t *testing.T) { leakTool(t, state, in, asks, hooks) })
		})
	}
}

// leakTool has the tool, or a hook, put the key into one text.
func leakTool(t *testing.T, state, in string, asks bool, hooks []hook.Before) {
	steps, want := []llmtest.Step{llmtest.Call("t1", "leaky", fmt.Sprintf(`{"in": %q}`, in)), llmtest.Say("told")}, "told"
	if in == "model error" {
		steps, want = []llmtest.Step{{Fault: llmtest.Fault{Status: 400, Message: "no answer with " + canary}}}, ""
	}
	model := llmtest.NewScript(steps...)
	g := Start(t, Options{
		// the log has its own filter
		Dir: state, Model: model, Tools: []tool.Tool{leaky{}}, Before: hooks, Log: slog.New(slog.DiscardHandler),
		Config: Config{
			"models": json.RawMessage(fmt.Sprintf(`{"providers": {"other": {"baseUrl": "http://127.0.0.1:1", "apiKey": %q}}}`,
				canary))},
	})
	c := g.Client()
	run := c.Send("main", "act")
	var all []byte
	add := func(v any) {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if asks {
		q := c.question()
		add(q)
		for method, params := range map[string]any{
			wire.MethodApprovalList: nil, wire.MethodApprovalGet: wire.ApprovalID{ID: q.ID},
			wire.MethodAnyApprovalGet: wire.ApprovalID{ID: q.ID},
		} {
			var answer json.RawMessage
			c.must(method, params, &answer)
			add(answer)
		}
		c.decide(q.ID, wire.AllowOnce)
	}
	end := c.Await(run)
	if end.Text != want {
		t.Errorf("%s %q %s", end.State, end.Text, end.Error)
	}
	add(end)
	add(model.Requests())
	for method, params := range map[string]any{
		wire.MethodApprovalHistory: nil, wire.MethodChatHistory: wire.ChatHistory{SessionKey: "main"},
		wire.MethodSessionsExport: wire.SessionKey{Key: "main"},
	} {
		var answer json.RawMessage
		c.must(method, params, &answer)
		add(answer)
	}
	c.Close()
	g.Stop()
	wantRedacted(t, canary, "[redacted]", all, database(state))
}

// TestPersonTexts sends a known key in every text of a person, and searches for it in
// all that is stored, shown and sent to the model.
func TestPersonTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"my key is K", "/new my key is K", "/new mock/m my key is K", "/reset my key is K", "/steer my key is K",
		"hello /status my key is K",
		"/name K", "/title K", "/model K", "/think K", "/queue K", "/config set agents.defaults.userTimezone K",
		"/approve K deny", "/unknown K",
	} {
		t.Run(text, func(t *testing.T) {
			tellKey(t, strings.HasPrefix(text, "/config"),
				func(c *Client) { c.Ask("main", strings.ReplaceAll(text, "K", canary)) })
		})
	}
	session, text := "agent:main:main", "my key is "+canary
	for name, tell := range map[string]func(c *Client){
		"file name": func(c *Client) {
			var sent wire.ChatSent
			c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "look", IdempotencyKey: "pic",
				Attachments: []wire.Attachment{
					{FileName: canary + ".png", MIME: "image/png", Content: dot(t)},
				}}, &sent)
			c.Await(sent.RunID)
		},
		"first message": func(c *Client) {
			var made struct{ RunID string }
			c.must(wire.MethodSessionsCreate, wire.SessionsCreate{Message: text}, &made)
			c.Await(made.RunID)
		},
		"note": func(c *Client) {
			c.Ask("main", "hi")
			c.must(wire.MethodChatInject, wire.ChatInject{SessionKey: session, Message: text}, nil)
		},
		"event": func(c *Client) {
			c.must(wire.MethodSystemEvent, wire.SystemEvent{SessionKey: session, Text: text}, nil)
			c.Ask("main", "hi")
		},
		"later wake": func(c *Client) {
			c.must(wire.MethodWake, wire.Wake{Mode: wire.WakeNext, Text: text}, nil)
			c.Ask("main", "hi")
		},
		"wake": func(c *Client) {
			c.must(wire.MethodWake, wire.Wake{Mode: wire.WakeNow, Text: text}, nil)
			c.Ask("main", "hi")
		},
	} {
		t.Run(name, func(t *testing.T) { tellKey(t, false, tell) })
	}
}

// tellKey has a person tell the key in one way. configures says that the configuration
// may be changed in the chat.
func tellKey(t *testing.T, configures bool, tell func(c *Client)) {
	t.Parallel()
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("well") })
		g := Start(t, Options{
			Dir: state, Model: model, Log: slog.New(slog.DiscardHandler), // the log has its own filter
			Config: Config{
				"models": json.RawMessage(fmt.Sprintf(`{"providers": {"other": {"baseUrl": "http://127.0.0.1:1", "apiKey": %q}}}`,
					canary)),
				"commands": json.RawMessage(fmt.Sprintf(`{"config": %t}`, configures)),
			},
		})
		c := g.Client()
		tell(c)
		all, err := json.Marshal(model.Requests())
		if err != nil {
			t.Fatal(err)
		}
		for method, params := range map[string]any{
			wire.MethodChatHistory:  wire.ChatHistory{SessionKey: "main"},
			wire.MethodSessionsList: nil,
		} {
			var answer json.RawMessage
			c.must(method, params, &answer)
			all = append(all, answer...)
		}
		c.Close()
		g.Stop()
		wantRedacted(t, canary, "[redacted]", all, database(state))
	})
}
