//go:build unix

package chelatest

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// TestSpellings tests the alternative names and values of the settings of exec,
// in the configuration and as arguments. They must have an effect, and an
// argument must not loosen the configuration.
func TestSpellings(t *testing.T) {
	const asks = "asked"
	for _, tt := range []struct{ name, conf, call, want string }{
		{"timeoutSec", `mode: "full", timeoutSec: 1`, `{"command":"sleep 60","timeoutSeconds":50,"yieldMs":60000}`,
			"timed out after 1s"},
		{"timeoutSeconds goes before timeoutSec", `mode: "full", timeoutSec: 900, timeoutSeconds: 1`,
			`{"command":"sleep 60","timeoutSeconds":50,"yieldMs":60000}`, "timed out after 1s"},
		{"timeoutSec as an argument", `mode: "full"`, `{"command":"sleep 60","timeoutSec":0.1,"yieldMs":60000}`,
			"timed out after"},
		{"backgroundMs", `mode: "full", backgroundMs: 1`, `{"command":"sleep 60"}`, "sessionId"},
		{"backgroundMs as an argument", `mode: "full"`, `{"command":"sleep 60","backgroundMs":1}`, "sessionId"},
		{"host local", `mode: "full", host: "local"`, `{"command":"echo a-b"}`, "a-b"},
		{"host local as an argument", `mode: "full", host: "gateway"`, `{"command":"echo a-b","host":"local"}`, "a-b"},
		{"the name of a node", `mode: "full", host: "laptop"`, `{"command":"echo a-b"}`,
			`host node: there is no node \"laptop\"; none is paired`},
		{"the name of a node as an argument", `mode: "full"`, `{"command":"echo a-b","host":"laptop"}`,
			`host node: there is no node \"laptop\"; none is paired`},
		{"host sandbox without one", `mode: "full", host: "sandbox"`, `{"command":"echo a-b"}`,
			"tools.exec.host: host sandbox"},
		{"sandbox true without one", `mode: "full", sandbox: true`, `{"command":"echo a-b"}`,
			"tools.exec.host: host sandbox"},
		{"sandbox true as an argument", `mode: "full"`, `{"command":"echo a-b","sandbox":true}`, "host sandbox"},
		{"an argument does not replace host sandbox", `mode: "full", host: "sandbox"`,
			`{"command":"echo a-b","host":"gateway","sandbox":false}`, "tools.exec.host: host sandbox"},
		{"security off", `security: "off"`, `{"command":"touch x; echo a-b"}`, "a-b"},
		{"security ask", `security: "ask"`, `{"command":"touch x"}`, asks},
		{"security review", `security: "review"`, `{"command":"touch x"}`, asks},
		{"security sudo", `security: "sudo"`, `{"command":"touch x"}`, asks},
		{"ask true", `mode: "full", ask: true`, `{"command":"ls"}`, asks},
		{"ask false has no effect", `ask: false`, `{"command":"touch x"}`, asks},
		{"security ask as an argument", `mode: "full"`, `{"command":"touch x","security":"ask"}`, asks},
		{"security review as an argument", `mode: "full"`, `{"command":"touch x","security":"review"}`, asks},
		{"security sudo as an argument", `mode: "full"`, `{"command":"touch x","security":"sudo"}`, asks},
		{"ask true as an argument", `mode: "full"`, `{"command":"ls","ask":true}`, asks},
		{"security off as an argument does not loosen ask", `mode: "ask"`, `{"command":"touch x","security":"off"}`, asks},
		{"security off as an argument does not loosen deny", `mode: "deny"`, `{"command":"ls","security":"off","ask":false}`,
			"tools.exec.mode"},
		{"ask off as an argument does not loosen always", `mode: "always"`, `{"command":"ls","ask":"off"}`, asks},
		{"ask false as an argument does not loosen always", `mode: "always"`, `{"command":"ls","ask":false}`, asks},
	} {
		t.Run("EX-24 "+tt.name, func(t *testing.T) {
			t.Parallel()
			_, c := configuredWith(t, "{tools: {exec: {"+tt.conf+"}}}", Options{Model: uses()})
			if got := c.outcomeOf("exec " + tt.call); got != tt.want && (tt.want == asks || !strings.Contains(got, tt.want)) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// outcomeOf makes a call and returns its result, or "asked" if approval was
// requested.
func (c *Client) outcomeOf(call string) string {
	c.t.Helper()
	run := c.Send("main", call)
	for ev := range c.Events() {
		var chat wire.Chat
		if ev.Name == wire.EventApprovalRequested {
			return "asked"
		}
		if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.RunID == run &&
			chat.State != wire.StateDelta && chat.Message != nil {
			return chat.Message.Text()
		}
	}
	c.t.Fatalf("%s: the connection was closed: %v", call, c.Err())
	return ""
}
