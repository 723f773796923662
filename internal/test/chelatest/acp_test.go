package chelatest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/acp"
	"github.com/chela-ai/chela/wire"
)

// editor is an editor that speaks the Agent Client Protocol.
type editor struct {
	sdk.Client // what the agent must not ask for
	*sdk.ClientSideConnection

	mu      sync.Mutex
	updates []sdk.SessionUpdate
	asked   []sdk.RequestPermissionRequest
	option  sdk.PermissionOptionId // the answer to permission requests; empty: none comes
}

// edit starts an editor on a gateway.
func (g *Gateway) edit(o acp.Options) *editor {
	g.t.Helper()
	fromEditor, toAgent := io.Pipe()
	fromAgent, toEditor := io.Pipe()
	o.Client, o.In, o.Out, o.Log, o.Version = g.Client().Client, fromEditor, toEditor,
		slog.New(slog.DiscardHandler), "1.2.3"
	done := make(chan error, 1)
	go func() { done <- acp.Serve(context.WithoutCancel(g.t.Context()), o) }()
	e := &editor{}
	e.ClientSideConnection = sdk.NewClientSideConnection(e, toAgent, fromAgent)
	g.t.Cleanup(func() {
		toAgent.Close()
		toEditor.Close()
		if err := <-done; err != nil {
			g.t.Errorf("the agent ended with %v", err)
		}
	})
	r, err := e.Initialize(g.t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err != nil || r.ProtocolVersion != 1 || !r.AgentCapabilities.LoadSession || r.AgentInfo.Name != "chela" {
		g.t.Fatalf("initialize: %+v, %v", r, err)
	}
	return e
}

// SessionUpdate implements sdk.Client.
func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n.Update)
	return nil
}

// RequestPermission implements sdk.Client.
func (e *editor) RequestPermission(ctx context.Context,
	r sdk.RequestPermissionRequest) (out sdk.RequestPermissionResponse, _ error) {
	e.mu.Lock()
	e.asked = append(e.asked, r)
	option := e.option
	e.mu.Unlock()
	if option == "" {
		<-ctx.Done()
		return out, ctx.Err()
	}
	out.Outcome.Selected = &sdk.RequestPermissionOutcomeSelected{OptionId: option}
	return out, nil
}

// text returns what the agent said so far.
func (e *editor) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var b strings.Builder
	for _, u := range e.updates {
		if c := u.AgentMessageChunk; c != nil && c.Content.Text != nil {
			b.WriteString(c.Content.Text.Text)
		}
	}
	return b.String()
}

// has reports whether there is an update for which f is true.
func (e *editor) has(f func(sdk.SessionUpdate) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.updates, f)
}

// session begins a session.
func (e *editor) session(t *testing.T, cwd string) sdk.SessionId {
	t.Helper()
	s, err := e.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: cwd, McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	return s.SessionId
}

// prompt sends a prompt of a text.
func (e *editor) prompt(ctx context.Context, id sdk.SessionId, text string) (sdk.PromptResponse, error) {
	return e.Prompt(ctx, sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
}

// running sends a prompt, waits until it runs, and returns where its answer will be.
func (e *editor) running(g *Gateway, id sdk.SessionId) <-chan sdk.PromptResponse {
	g.t.Helper()
	events := g.Client().Events()
	done := make(chan sdk.PromptResponse, 1)
	go func() {
		r, err := e.prompt(g.t.Context(), id, "wait")
		if err != nil {
			g.t.Error(err)
		}
		done <- r
	}()
	for ev := range events {
		if ev.Name == wire.EventAgent {
			break
		}
	}
	return done
}

func TestACP(t *testing.T) {
	t.Parallel()
	t.Run("ACP-01 an editor has a conversation", func(t *testing.T) {
		t.Parallel()
		long := strings.Repeat("All is well. ", 20)
		model := llmtest.NewScript(llmtest.Think("Hm.", "", llmtest.Call("a", "write", `{"path":"a.txt","content":"x"}`)),
			llmtest.Say(long), llmtest.Say("two"))
		g := Start(t, Options{Model: model})
		e := g.edit(acp.Options{})
		id := e.session(t, "/elsewhere")
		r, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{
			sdk.TextBlock("How is "), sdk.ResourceLinkBlock("a.go", "file:///p/a.go"), sdk.TextBlock("?"),
			sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///p/b.go",
				Text: "package b\n```"}}),
		}})
		if err != nil || r.StopReason != sdk.StopReasonEndTurn {
			t.Fatalf("%+v, %v", r, err)
		}
		waittest.Until(t, "the whole answer", func() bool { return strings.TrimSpace(e.text()) == strings.TrimSpace(long) })
		asked := model.Requests()[0].Messages
		if got := asked[len(asked)-1].PlainText(); !strings.Contains(got,
			"How is [a.go](file:///p/a.go)?file:///p/b.go\n\nFrom file:///p/b.go:\n````\npackage b\n```\n````") {
			t.Errorf("the model was asked %q", got)
		}
		if !e.has(func(u sdk.SessionUpdate) bool {
			return u.ToolCall != nil && u.ToolCall.ToolCallId == "a" && strings.Contains(u.ToolCall.Title, "a.txt") &&
				u.ToolCall.Kind == sdk.ToolKindEdit
		}) || !e.has(func(u sdk.SessionUpdate) bool {
			return u.ToolCallUpdate != nil && u.ToolCallUpdate.ToolCallId == "a" && u.ToolCallUpdate.Status != nil &&
				*u.ToolCallUpdate.Status == sdk.ToolCallStatusCompleted
		}) {
			t.Errorf("updates %+v", e.updates)
		}
		waittest.Until(t, "the commands, and where it works", func() bool {
			return e.has(func(u sdk.SessionUpdate) bool { return u.AvailableCommandsUpdate != nil }) &&
				e.has(func(u sdk.SessionUpdate) bool {
					return u.AgentThoughtChunk != nil && strings.Contains(u.AgentThoughtChunk.Content.Text.Text, "not in /elsewhere")
				})
		})
		if h, err := g.Client().History(t.Context(), string(id), 10); err != nil || len(h.Messages) == 0 {
			t.Errorf("the session of the gateway: %+v, %v", h, err)
		}
		if _, err := e.prompt(t.Context(), id, "/status"); err != nil || !strings.Contains(e.text(), "mock/m") {
			t.Errorf("a command: %v, %q", err, e.text())
		}
		other := g.edit(acp.Options{}) // the editor was started anew
		if _, err := other.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/",
			McpServers: []sdk.McpServer{}}); err != nil || !strings.Contains(other.text(), "All is well.") {
			t.Errorf("loaded: %v, %q", err, other.text())
		}
		if _, err := other.prompt(t.Context(), id, "again"); err != nil {
			t.Error(err)
		}
		waittest.Until(t, "the answer in both editors",
			func() bool { return strings.HasSuffix(e.text(), "two") && strings.HasSuffix(other.text(), "two") })
	})
	t.Run("ACP-02 cancel", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			if r.Messages[len(r.Messages)-1].PlainText() == "go on" {
				return llmtest.Say("later")
			}
			slow := llmtest.Say("never said")
			slow.Fault.Hang = llmtest.HangHeaders
			return slow
		})})
		e := g.edit(acp.Options{})
		id := e.session(t, "/")
		done := e.running(g, id)
		if err := e.Cancel(t.Context(), sdk.CancelNotification{SessionId: id}); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.StopReason != sdk.StopReasonCancelled {
			t.Errorf("%+v", r)
		}
		if r, err := e.prompt(t.Context(), id, "go on"); err != nil || r.StopReason != sdk.StopReasonEndTurn ||
			e.text() != "later" {
			t.Errorf("%+v, %v, %q", r, err, e.text())
		}
	})
	t.Run("sessions are listed, resumed and closed", func(t *testing.T) {
		t.Parallel()
		slow := llmtest.Say("never said")
		slow.Fault.Hang = llmtest.HangHeaders
		g := Start(t, Options{Model: llmtest.NewScript(llmtest.Say("one"), slow)})
		e := g.edit(acp.Options{})
		id := e.session(t, "/p")
		if _, err := e.prompt(t.Context(), id, "hello"); err != nil {
			t.Fatal(err)
		}
		cwd := "/p"
		list, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &cwd})
		if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || list.Sessions[0].Cwd != "/p" ||
			list.Sessions[0].Title == nil || list.NextCursor != nil {
			t.Fatalf("%+v, %v", list, err)
		}
		if list, err = e.ListSessions(t.Context(), sdk.ListSessionsRequest{}); err != nil || len(list.Sessions) != 1 ||
			!filepath.IsAbs(list.Sessions[0].Cwd) {
			t.Errorf("%+v, %v", list, err)
		}
		if _, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{Cursor: sdk.Ptr("x")}); err == nil {
			t.Error("a wrong cursor is accepted")
		}
		other := g.edit(acp.Options{})
		if _, err := other.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/p"}); err != nil ||
			other.text() != "" {
			t.Errorf("resumed: %v, %q", err, other.text())
		}
		if _, err := other.ResumeSession(t.Context(),
			sdk.ResumeSessionRequest{SessionId: "agent:main:nowhere", Cwd: "/p"}); err == nil {
			t.Error("an unknown session is resumed")
		}
		done := other.running(g, id)
		if _, err := other.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.StopReason != sdk.StopReasonCancelled {
			t.Errorf("closed: %+v", r)
		}
	})
	t.Run("the model and its thinking are settings", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: llmtest.NewScript()})
		e := g.edit(acp.Options{})
		s, err := e.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/", McpServers: []sdk.McpServer{}})
		if err != nil || len(s.ConfigOptions) == 0 || s.ConfigOptions[0].Select.Id != "model" ||
			s.ConfigOptions[0].Select.CurrentValue != "mock/m" {
			t.Fatalf("%+v, %v", s.ConfigOptions[0].Select, err)
		}
		set := func(id sdk.SessionConfigId, value sdk.SessionConfigValueId) (sdk.SetSessionConfigOptionResponse, error) {
			return e.SetSessionConfigOption(t.Context(),
				sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{SessionId: s.SessionId, ConfigId: id,
					Value: value}})
		}
		if r, err := set("model", "offline/assistant"); err != nil ||
			r.ConfigOptions[0].Select.CurrentValue != "offline/assistant" {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := e.prompt(t.Context(), s.SessionId, "hello"); err != nil || !strings.Contains(e.text(), "offline") {
			t.Errorf("%v, %q", err, e.text())
		}
		for id, value := range map[sdk.SessionConfigId]sdk.SessionConfigValueId{
			"model":    "nope/x",
			"thinking": "sideways",
			"mood":     "good",
		} {
			if r, err := set(id, value); err == nil {
				t.Errorf("%s %s: %+v", id, value, r)
			}
		}
	})
	t.Run("a permission is asked for in the editor", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			if r.Messages[len(r.Messages)-1].Role == llm.RoleTool {
				return llmtest.Say("seen: " + r.Messages[len(r.Messages)-1].PlainText())
			}
			return llmtest.Call("x", "exec", `{"command":"echo hi"}`)
		})
		g := Start(t,
			Options{Model: model,
				Config: Config{"tools": json.RawMessage(`{"exec": {"host": "gateway", "ask": "always", "security": "full"}}`)}})
		e := g.edit(acp.Options{Session: "agent:main:shared"})
		if _, err := e.prompt(t.Context(), "agent:main:shared", "/whoami"); err != nil {
			t.Errorf("a prompt before session/new: %v", err)
		}
		id := e.session(t, "/")
		if id != "agent:main:shared" {
			t.Errorf("session %s", id)
		}
		for option, want := range map[sdk.PermissionOptionId]string{wire.AllowOnce: "seen: hi", wire.Deny: "denied"} {
			e.mu.Lock()
			e.option = option
			e.mu.Unlock()
			if _, err := e.prompt(t.Context(), id, "run it"); err != nil || !strings.Contains(e.text(), want) {
				t.Errorf("%s: %v, %q", option, err, e.text())
			}
		}
		ask := e.asked[0]
		if ask.ToolCall.ToolCallId != "x" || ask.ToolCall.Title == nil || !strings.Contains(*ask.ToolCall.Title, "echo hi") ||
			len(ask.Options) < 2 {
			t.Errorf("asked %+v", ask)
		}
	})
	t.Run("what is wrong is said", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: llmtest.NewScript(llmtest.Status(401, "wrong key"))})
		e := g.edit(acp.Options{})
		id := e.session(t, "/")
		_, err := e.NewSession(t.Context(),
			sdk.NewSessionRequest{Cwd: "/",
				McpServers: []sdk.McpServer{{Stdio: &sdk.McpServerStdio{Name: "x", Command: "x", Args: []string{},
					Env: []sdk.EnvVariable{}}}}})
		if err == nil || !strings.Contains(err.Error(), "chela mcp add") {
			t.Errorf("a server of the session: %v", err)
		}
		if _, err := e.prompt(t.Context(), id, " "); err == nil || !strings.Contains(err.Error(), "the prompt is empty") {
			t.Errorf("an empty prompt: %v", err)
		}
		if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "agent:main:acp-bridge:nowhere", Cwd: "/",
			McpServers: []sdk.McpServer{}}); err == nil || !strings.Contains(err.Error(), "there is no session") {
			t.Errorf("an unknown session: %v", err)
		}
		if _, err := e.prompt(t.Context(), "nope", "hi"); err == nil ||
			!strings.Contains(err.Error(), "there is no session nope") {
			t.Errorf("a prompt for an unknown session: %v", err)
		}
		if _, err := e.prompt(t.Context(), id, "hi"); err == nil || !strings.Contains(err.Error(), "wrong key") {
			t.Errorf("a model that fails: %v", err)
		}
	})
}
