package chelatest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/wire"
)

// rawClient is a client that sees the frames themselves.
type rawClient struct {
	t  *testing.T
	ws *websocket.Conn
}

// rawFrame is a frame with its members as they are sent.
type rawFrame struct {
	Type, ID, Event string
	OK              bool
	Payload         map[string]any
	Error           map[string]any
}

// dialRaw opens a connection and offers a range of protocol versions and a scope.
func dialRaw(t *testing.T, url string, least, most int, scope string) *rawClient {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.CloseNow() })
	ws.SetReadLimit(wire.MaxPayload)
	c := &rawClient{t, ws}
	if f, err := c.read(); err != nil || f.Event != wire.EventChallenge {
		t.Fatalf("the first frame is %+v, %v; want the challenge", f, err)
	}
	c.request("1", wire.MethodConnect,
		fmt.Sprintf(`{"minProtocol": %d, "maxProtocol": %d, "scopes": [%q], "caps": [%q], "auth": {"token": "a-token"},
		"client": {"id": "gateway-client", "version": "1", "platform": "linux", "mode": "backend"}}`, least, most,
			scope, wire.CapToolEvents))
	return c
}

func (c *rawClient) request(id, method, params string) {
	c.t.Helper()
	frame := fmt.Sprintf(`{"type": "req", "id": %q, "method": %q, "params": %s}`, id, method, params)
	if err := c.ws.Write(c.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) read() (f rawFrame, err error) {
	_, b, err := c.ws.Read(c.t.Context())
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		c.t.Fatalf("%s: %v", b, err)
	}
	return f, nil
}

// until reads frames up to the first for which last is true.
func (c *rawClient) until(last func(rawFrame) bool) (all []rawFrame) {
	c.t.Helper()
	for {
		f, err := c.read()
		if err != nil {
			c.t.Fatalf("after %d frames: %v", len(all), err)
		}
		if all = append(all, f); last(f) {
			return all
		}
	}
}

// answer returns the response to a request.
func (c *rawClient) answer(id string) rawFrame {
	c.t.Helper()
	all := c.until(func(f rawFrame) bool { return f.Type == wire.TypeResponse && f.ID == id })
	return all[len(all)-1]
}

// member returns the member of nested objects at a path; nil: absent.
func member(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// TestProtocol connects clients of several protocol versions to a gateway.
func TestProtocol(t *testing.T) {
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		said := ""
		for _, m := range r.Messages {
			if m.Role == llm.RoleUser {
				said = m.PlainText()
			}
		}
		switch {
		case r.Messages[len(r.Messages)-1].Role != llm.RoleTool:
			return llmtest.Call(fmt.Sprint("c", n), "read", `{"path": "AGENTS.md"}`)
		case strings.Contains(said, "fail"):
			return llmtest.Status(400, "no such thing")
		}
		return llmtest.Think("hm", "", llmtest.Say("Hello, "+strings.Repeat("x", 60)))
	})
	g := chelatest.Start(t, chelatest.Options{
		Model: model, Listen: &endpoint.Listen{Port: -1},
		Config: chelatest.Config{"gateway": json.RawMessage(`{"auth": {"token": "a-token"}}`)},
	})
	for _, offer := range [][2]int{{5, 6}, {2, 2}} {
		t.Run(fmt.Sprintf("GW-16 protocol %d to %d is refused with the expected version, and closed with 1002", offer[0],
			offer[1]), func(t *testing.T) {
			c := dialRaw(t, g.URL(), offer[0], offer[1], wire.ScopeWrite)
			f := c.answer("1")
			want := map[string]any{
				"code":                 "PROTOCOL_MISMATCH",
				"clientMinProtocol":    float64(offer[0]),
				"clientMaxProtocol":    float64(offer[1]),
				"expectedProtocol":     4.0,
				"minimumProbeProtocol": 3.0,
			}
			if d, _ := f.Error["details"].(map[string]any); f.OK || f.Error["code"] != "INVALID_REQUEST" ||
				f.Error["message"] != "protocol mismatch" || !maps.Equal(d, want) {
				t.Errorf("answered %+v, want the details %v", f, want)
			}
			if f, err := c.read(); websocket.CloseStatus(err) != 1002 {
				t.Errorf("then %+v, %v; want the close code 1002", f, err)
			}
		})
	}
	for _, tt := range []struct {
		name      string
		version   int
		streams   []string // of the steps of the run
		phases    []string // of its lifecycle
		errorCode string   // of a call without the scope
	}{
		{"GW-16 protocol 4", 4, []string{"assistant", "lifecycle", "thinking", "tool"},
			[]string{"end", "model", "start"}, "FORBIDDEN"},
		{"GW-16 protocol 3, in the older form", 3, []string{"assistant", "lifecycle", "tool"},
			[]string{"end", "start"}, "INVALID_REQUEST"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newer := tt.version == 4
			c := dialRaw(t, g.URL(), tt.version, tt.version, wire.ScopeWrite)
			hello := c.answer("1")
			if !hello.OK || hello.Payload["protocol"] != float64(tt.version) {
				t.Fatalf("answered %+v, want hello-ok of protocol %d", hello, tt.version)
			}
			for _, path := range [][]string{{"auth", "method"}, {"features", "capabilities"}, {"policy", "attachments"}} {
				if v := member(hello.Payload, path...); (v != nil) != newer {
					t.Errorf("%s of the hello is %v", strings.Join(path, "."), v)
				}
			}
			for _, path := range [][]string{{"server", "version"}, {"features", "methods"}, {"auth", "role"}, {"auth", "scopes"},
				{"policy", "maxPayload"}, {"snapshot", "presence"}} {
				if member(hello.Payload, path...) == nil {
					t.Errorf("the hello has no %s", strings.Join(path, "."))
				}
			}

			c.request("2", wire.MethodConfigSet, `{}`)
			refused := c.answer("2")
			if refused.OK || refused.Error["code"] != tt.errorCode ||
				refused.Error["message"] != "missing scope: operator.admin" || (refused.Error["details"] != nil) != newer {
				t.Errorf("config.set is answered %+v, want %s", refused, tt.errorCode)
			}

			run := fmt.Sprint("run-", tt.version)
			c.request("3", wire.MethodChatSend,
				fmt.Sprintf(`{"sessionKey": %q, "message": "hi", "idempotencyKey": %q}`, run, run))
			all := c.until(func(f rawFrame) bool { return f.Event == wire.EventChat && f.Payload["state"] != wire.StateDelta })
			streams, phases, deltas := map[string]bool{}, map[string]bool{}, 0
			for _, f := range all {
				switch f.Event {
				case wire.EventAgent:
					stream, _ := f.Payload["stream"].(string)
					streams[stream] = true
					if phase, _ := member(f.Payload, "data", "phase").(string); stream == "lifecycle" {
						phases[phase] = true
					}
				case wire.EventChat:
					if f.Payload["state"] == wire.StateDelta {
						deltas++
						if (f.Payload["deltaText"] != nil) != newer || member(f.Payload, "message", "content") == nil {
							t.Errorf("a delta is %v", f.Payload)
						}
					}
				default:
					continue
				}
				if (f.Payload["agentId"] != nil) != newer {
					t.Errorf("the agent of an event: %v", f.Payload)
				}
			}
			last := all[len(all)-1].Payload
			if last["state"] != wire.StateFinal || last["runId"] != run || deltas == 0 {
				t.Errorf("after %d deltas the run ended %v", deltas, last)
			}
			if got := slices.Sorted(maps.Keys(streams)); !slices.Equal(got, tt.streams) {
				t.Errorf("streams %q, want %q", got, tt.streams)
			}
			if got := slices.Sorted(maps.Keys(phases)); !slices.Equal(got, tt.phases) {
				t.Errorf("phases %q, want %q", got, tt.phases)
			}

			c.request("4", wire.MethodChatSend,
				fmt.Sprintf(`{"sessionKey": %q, "message": "fail", "idempotencyKey": "%s-fails"}`, run, run))
			all = c.until(func(f rawFrame) bool { return f.Event == wire.EventChat && f.Payload["state"] != wire.StateDelta })
			last = all[len(all)-1].Payload
			if last["state"] != wire.StateError || last["errorMessage"] == nil || (last["errorDetail"] != nil) != newer {
				t.Errorf("the failed run ended %v", last)
			}
		})
	}
}
