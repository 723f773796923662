package chelatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// modelConfig returns a configuration whose model is a server with the wire format.
func modelConfig(w llmtest.Wire, url string) Config {
	return Config{
		"agents.defaults": json.RawMessage(`{"model": "mock/m"}`),
		"models": json.RawMessage(fmt.Sprintf(
			`{"providers": {"mock": {"baseUrl": %q, "api": %q, "apiKey": "k", "timeoutSeconds": 20, "models": [{"id": "m", "contextWindow": 200000}]}}}`, url, w)),
	}
}

// TestProviders runs a whole turn with each wire format over HTTP: tools, an
// answer, and every fault of a service. Each case ends, and the next message is
// answered.
func TestProviders(t *testing.T) {
	long := strings.Repeat("words and more words ", 40)
	faults := []struct {
		name  string
		fault llmtest.Fault
		again int    // number of times that the service fails
		want  string // final state of the run
	}{
		{"hangs before the headers", llmtest.Fault{Hang: llmtest.HangHeaders}, 1, wire.StateError},
		{"hangs after the headers, sending keep-alives", llmtest.Fault{Hang: llmtest.HangBody, Ping: time.Second}, 1, wire.StateError},
		{"stalls in the middle of an event", llmtest.Fault{Hang: llmtest.HangMiddle}, 1, wire.StateError},
		{"breaks off in the middle", llmtest.Fault{Cut: true, CutAt: 1500, Abort: true}, 1, wire.StateError},
		{"ends too early, but normally", llmtest.Fault{Cut: true, CutAt: 1500}, 1, wire.StateError},
		{"is overloaded once", llmtest.Fault{Status: 529}, 1, wire.StateFinal},
		{"is overloaded permanently", llmtest.Fault{Status: 529}, 9, wire.StateError},
		{"limits the rate once", llmtest.Fault{Status: 429, RetryAfter: "2"}, 1, wire.StateFinal},
		{"limits the rate for an hour", llmtest.Fault{Status: 429, RetryAfter: "3600"}, 1, wire.StateError},
		{"rejects the key", llmtest.Fault{Status: 401}, 1, wire.StateError},
		{"fails internally once", llmtest.Fault{Status: 500}, 1, wire.StateFinal},
		{"rejects the request", llmtest.Fault{Status: 400, Message: "no"}, 1, wire.StateError},
	}
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		t.Run(string(w), func(t *testing.T) {
			t.Run("LOOP-02 LOOP-03 three calls, three results, one answer", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := llmtest.NewServer(t, w, llmtest.Calls(
						llmtest.ToolCall("call_1", "write", `{"path":"a.txt","content":"alpha"}`),
						llmtest.ToolCall("call_2", "read", `{"path":"a.txt"}`),
						llmtest.ToolCall("call_3", "ls", `{}`),
					), llmtest.Say("all done"))
					url, hc := srv.Pipe()
					g := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)})
					c := g.Client()
					if end := c.Ask("main", "write a file"); end.State != wire.StateFinal || end.Text != "all done" {
						t.Errorf("%s: %q %s", end.State, end.Text, end.Error)
					}
					second := string(srv.Requests()[1].Body)
					at := 0
					for _, id := range []string{"call_1", "call_2", "call_3"} {
						i := strings.LastIndex(second, id)
						if i <= at {
							t.Errorf("the result of %s is missing or misplaced", id)
						}
						at = i
					}
					c.Close()
					g.Stop()
				})
			})
			for _, f := range faults {
				t.Run(f.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := llmtest.ServerFunc(t, w, func(n int, _ llmtest.ReceivedRequest) llmtest.Step {
							if n < f.again {
								return llmtest.Step{Parts: []llm.Part{llm.Text(long)}, Fault: f.fault}
							}
							return llmtest.Say("fine")
						})
						srv.Lenient = true
						url, hc := srv.Pipe()
						g := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)})
						c := g.Client()
						begun := time.Now()
						end := c.Ask("main", "hi")
						if end.State != f.want {
							t.Errorf("ended %s after %s: %q %s", end.State, time.Since(begun), end.Text, end.Error)
						}
						if end.State == wire.StateError && (end.Error == "" || strings.ContainsAny(end.Error, "\n{}")) {
							t.Errorf("not an error for people: %q", end.Error)
						}
						if took := time.Since(begun); took > 90*time.Second {
							t.Errorf("took %s", took)
						}
						if f.again == 1 {
							if end := c.Ask("main", "and now?"); end.Text != "fine" {
								t.Errorf("next turn: %s %q %s", end.State, end.Text, end.Error)
							}
						}
						c.Close()
						g.Stop()
						hc.CloseIdleConnections()
						srv.Close()
					})
				})
			}
		})
	}
}
