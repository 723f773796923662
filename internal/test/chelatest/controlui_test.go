package chelatest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestControlUIReconnects connects ten times as OpenClaw's Control UI does. The page
// compares versions from its second hello on unless the hello says that the page is not
// part of the gateway, and marks its first message after a reconnect.
func TestControlUIReconnects(t *testing.T) {
	t.Parallel()
	const cuts = 10
	var steps []llmtest.Step
	for i := range cuts {
		steps = append(steps, llmtest.Say(fmt.Sprintf("answer %d", i)))
	}
	g := Start(t, Options{Model: llmtest.NewScript(steps...)})
	var session string
	for i := range cuts {
		c, err := client.Dial(t.Context(), client.Options{
			Dial:    g.Dial,
			ID:      "openclaw-control-ui",
			Mode:    wire.ModeWebchat,
			Version: "2026.9.6",
			Once:    true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Hello().Server.UIBuild; got != wire.UIConfigured {
			t.Errorf("hello %d: the Control UI is %q", i, got)
		}
		message := map[string]any{
			"sessionKey": "main", "message": fmt.Sprintf("message %d", i), "idempotencyKey": fmt.Sprint("run-", i),
			"deliver": false,
		}
		if i > 0 {
			message["__controlUiReconnectResume"], message["sessionId"] = true, session
		}
		page := &Client{Client: c, t: t}
		if err := c.Call(t.Context(), wire.MethodChatSend, message, nil); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if got, want := page.Await(fmt.Sprint("run-", i)).Text, fmt.Sprintf("answer %d", i); got != want {
			t.Errorf("message %d: answered %q, want %q", i, got, want)
		}
		h, err := c.History(t.Context(), "main", 3*cuts)
		if err != nil {
			t.Fatal(err)
		}
		session = h.SessionID
		if i == cuts-1 {
			var all []string
			for _, m := range h.Messages {
				all = append(all, m.Text())
			}
			for n := range cuts {
				if got := strings.Count(strings.Join(all, "\n"), fmt.Sprintf("message %d", n)); got != 1 {
					t.Errorf("message %d is in the history %d times", n, got)
				}
			}
		}
		c.Close()
	}
}

// TestAgentModel chooses the model of a run, as `openclaw agent --model` does, and names
// the session by the id of its transcript.
func TestAgentModel(t *testing.T) {
	t.Parallel()
	service := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, got llmtest.ReceivedRequest) llmtest.Step {
		var asked struct{ Model string }
		if err := json.Unmarshal(got.Body, &asked); err != nil {
			t.Error(err)
		}
		return llmtest.Say("I am " + asked.Model)
	})
	url, hc := service.Pipe()
	c := Start(t, Options{HTTP: hc, Config: Config{
		"agents.defaults": json.RawMessage(`{"model": "mock/m"}`),
		"models.providers": json.RawMessage(
			fmt.Sprintf(`{"mock": {"baseUrl": %q, "api": "openai-completions", "apiKey": "none",
			"models": [{"id": "m", "name": "m"}, {"id": "m2", "name": "m2"}]}}`, url+"/v1")),
	}}).Client()
	for _, tt := range []struct {
		name string
		more map[string]any
		want string // the answer or the error
	}{
		{"the session's model", nil, "I am m"},
		{"another model", map[string]any{"model": "mock/m2"}, "I am m2"},
		{"another model of a provider", map[string]any{"model": "m2", "provider": "mock"}, "I am m2"},
		{"the session's model again", map[string]any{"deliver": false, "lane": "main"}, "I am m"},
		{"a model of an unknown provider", map[string]any{"model": "nowhere/m3"}, "nowhere"},
		{"the session, by its id", map[string]any{"sessionKey": "", "sessionId": "ID"}, "I am m"},
		{"another session's id", map[string]any{"sessionKey": "", "sessionId": "none"},
			"no session with the id none: not found"},
		{"the transcript that was seen", map[string]any{"expectedExistingSessionId": "ID"}, "I am m"},
		{"another transcript", map[string]any{"expectedExistingSessionId": "none"}, "active branch changed"},
		{"a recipient without a session", map[string]any{"sessionKey": "", "to": "+15550100"},
			"a recipient does not name a session"},
		{"a prohibition", map[string]any{"disableMessageTool": true},
			"invalid agent params: at root: property 'disableMessageTool' is not supported"},
		{"a directory", map[string]any{"cwd": "/"}, "invalid agent params: at root: property 'cwd' is not supported"},
		{"an unknown property", map[string]any{"bogus": 1}, "invalid agent params: at root: unexpected property 'bogus'"},
	} {
		h, err := c.History(t.Context(), "main", 1)
		if err != nil {
			t.Fatal(err)
		}
		params := map[string]any{"sessionKey": "main", "message": "who are you?", "idempotencyKey": tt.name}
		for k, v := range tt.more {
			if v == "ID" {
				v = h.SessionID
			}
			if params[k] = v; v == "" {
				delete(params, k)
			}
		}
		var r wire.AgentResult
		err = c.Client.Await(t.Context(), wire.MethodAgent, params, nil, &r)
		got := fmt.Sprint(err)
		if err == nil && len(r.Result.Payloads) == 1 {
			got = r.Result.Payloads[0].Text
		}
		if err == nil && got != tt.want || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestControlUIPages calls the methods that pages of the Control UI wait for.
func TestControlUIPages(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Model: llmtest.NewScript()}).Client()
	for _, tt := range []struct {
		method string
		params map[string]any
		want   string // part of the result
	}{
		{"diagnostics.lanes", nil, `"lane":"main"`},
		{"last-heartbeat", nil, `null`},
		{"update.status", map[string]any{"refreshCheckout": true}, `{"sentinel":null,"updateAvailable":null}`},
		{"sessions.observer.visibility", map[string]any{"visible": true}, `{"ok":true}`},
		{"talk.catalog", map[string]any{"provider": "x"}, `"realtime":{"ready":false,"providers":[]}`},
		{"themes.list", nil, `"themes":[]`},
		{"users.list", nil, `{"profiles":[]}`},
		{"openclaw.chat", map[string]any{"sessionId": "s", "welcomeVariant": "new-agent"}, `chela agents add NAME`},
		{"wizard.start", map[string]any{"flow": "channels", "channel": "telegram"}, `chela channels add telegram"`},
		{"wizard.start", map[string]any{"flow": "setup", "mode": "local"}, `chela onboard"`},
		{"plugins.list", nil, `"plugins":[`},
		{"environments.list", map[string]any{"projection": "profiles"}, `"id":"gateway"`},
		{"status", map[string]any{"includeChannelSummary": false, "deep": true}, `"runtimeVersion"`},
	} {
		if !slices.Contains(c.Hello().Features.Methods, tt.method) {
			t.Errorf("%s is not advertised", tt.method)
		}
		var out json.RawMessage
		if err := c.Call(t.Context(), tt.method, tt.params, &out); err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: %s, %v, want %s", tt.method, out, err, tt.want)
		}
	}
}

// TestMessageTime checks that session.message has the time of the session's row: a client
// takes rows that are older than the message for outdated, so that its counter of tokens
// stands still.
func TestMessageTime(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Model: llmtest.NewScript(llmtest.Say("one"), llmtest.Say("two"))}).Client()
	if err := c.Call(t.Context(), wire.MethodSessionsMessagesSubscribe, map[string]any{"key": "main"}, nil); err != nil {
		t.Fatal(err)
	}
	dated := 0
	for _, text := range []string{"first", "second"} {
		for _, e := range c.Ask("main", text).Seen {
			var m wire.SessionMessage
			if e.Name != wire.EventSessionMessage || e.Decode(&m) != nil {
				continue
			}
			switch {
			case m.UpdatedAt == 0:
			case m.Row == nil || m.UpdatedAt != m.Row.UpdatedAt:
				t.Errorf("%s of %v, but the row is %+v", m.Message.Role, m.UpdatedAt, m.Row)
			default:
				dated++
			}
		}
	}
	if dated == 0 {
		t.Error("no message has a time")
	}
}
