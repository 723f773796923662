package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// endlessModel is a model that never ends its run; call returns its next calls.
func endlessModel(call func(n int) llmtest.Step) *llmtest.Script {
	n := 0
	return llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		if r.Messages[len(r.Messages)-1].PlainText() == "are you there?" {
			return llmtest.Say("I am")
		}
		n++
		return call(n)
	})
}

// one returns a step with a single call.
func one(n int, name, args string) llmtest.Step { return llmtest.Call(fmt.Sprint("c", n), name, args) }

// TestBudgets has a model repeat itself endlessly in many ways. Each run ends
// soon, with one message that gives the reason.
func TestBudgets(t *testing.T) {
	const most = 130 // model calls
	for _, tt := range []struct {
		name string
		call func(n int) llmtest.Step
		want string // in the one message
	}{
		{"the same call", func(n int) llmtest.Step { return one(n, "ls", `{"path":"."}`) }, "ls was called"},
		{"two alternating calls", func(n int) llmtest.Step { return one(n, "ls", [...]string{`{"path":"."}`, `{}`}[n%2]) },
			"alternately with another call"},
		{"three alternating calls", func(n int) llmtest.Step {
			return one(n, "ls", [...]string{`{"path":"."}`, `{}`, `{"path":"memory/.."}`}[n%3])
		}, "had no new results"},
		{"a failing call", func(n int) llmtest.Step { return one(n, "read", `{"path":"none"}`) },
			"20 tool calls in a row failed"},
		{"different failing calls", func(n int) llmtest.Step { return one(n, "read", fmt.Sprintf(`{"path":"none%d"}`, n)) },
			"20 tool calls in a row failed"},
		{"unknown tools", func(n int) llmtest.Step { return one(n, fmt.Sprint("tool", n), `{}`) },
			"20 tool calls in a row failed"},
		{"invalid arguments", func(n int) llmtest.Step { return one(n, "read", fmt.Sprintf(`{"pfad":%d}`, n)) },
			"20 tool calls in a row failed"},
		{"a denied tool", func(n int) llmtest.Step { return one(n, "edit", fmt.Sprintf(`{"path":"x%d"}`, n)) },
			"20 tool calls in a row failed"},
		{"the same call with changing results", func(n int) llmtest.Step { return one(n, "count", `{}`) },
			"100 calls of count with the same arguments"},
		{"different calls", func(n int) llmtest.Step { return one(n, "count", fmt.Sprintf(`{"n":%d}`, n)) },
			"120 tool calls"},
		{"ten calls at once", func(n int) llmtest.Step {
			var calls []llm.ToolCall
			for i := range 10 {
				calls = append(calls, llmtest.ToolCall(fmt.Sprint("c", n, "-", i), "count", fmt.Sprintf(`{"n":"%d-%d"}`, n, i)))
			}
			return llmtest.Calls(calls...)
		}, "120 tool calls"},
		{"alternating failures and successes", func(n int) llmtest.Step {
			return one(n, [...]string{"none", "count"}[n%2], fmt.Sprintf(`{"n":%d}`, n))
		}, "120 tool calls"},
		{"many tokens", func(n int) llmtest.Step {
			s := one(n, "count", fmt.Sprintf(`{"n":%d}`, n))
			s.Usage = &llm.Usage{Input: 150_000, Output: 50_000}
			return s
		}, "1000000 of 1000000 tokens"},
	} {
		t.Run("R22 "+tt.name, func(t *testing.T) {
			t.Parallel()
			count := 0
			model := endlessModel(tt.call)
			g := Start(t,
				Options{Model: model, Tools: []tool.Tool{done{"count", func(context.Context, tool.Call) (tool.Result, error) {
					count++
					return tool.Text(fmt.Sprint(count)), nil
				}}}, Config: Config{
					"tools":           json.RawMessage(`{"deny": ["edit"]}`),
					"agents.defaults": json.RawMessage(`{"model": "mock/m", "budget": {"toolCalls": 120, "tokens": 1000000}}`),
				}})
			c := g.Client()
			end := c.Ask("main", "go on for ever")
			if asked := len(model.Requests()); end.State != wire.StateError ||
				!strings.Contains(end.Error, tt.want) || asked > most {
				t.Errorf("%s after %d model calls: %q, want %q", end.State, asked, end.Error, tt.want)
			}
			c.checkNoticeOnce(end)
			if end := c.Ask("main", "are you there?"); end.Text != "I am" {
				t.Errorf("afterwards: %s %q %s", end.State, end.Text, end.Error)
			}
		})
	}
	t.Run("R22 hours of work", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := Start(t, Options{
				Model: endlessModel(func(n int) llmtest.Step { return one(n, "work", fmt.Sprintf(`{"n":%d}`, n)) }),
				Tools: []tool.Tool{done{"work", func(context.Context, tool.Call) (tool.Result, error) {
					time.Sleep(25 * time.Minute)
					return tool.Text("worked"), nil
				}}},
			})
			c := g.Client()
			begun := time.Now()
			run := c.Send("main", "go on for ever")
			time.Sleep(6 * time.Hour)
			end := c.Await(run)
			if took := time.Since(begun); end.State != wire.StateError || !strings.Contains(end.Error, "4h0m0s of work") ||
				took > 7*time.Hour {
				t.Errorf("%s after %v: %q", end.State, took, end.Error)
			}
			c.checkNoticeOnce(end)
			c.Close()
			g.Stop()
		})
	})
}

// TestPolling has a model poll a silent background command endlessly, and one
// that produces output.
func TestPolling(t *testing.T) {
	// watch starts a command, polls it, and returns the results of the polls.
	watch := func(t *testing.T, command string, polls int) ([]string, Ended) {
		var results []string
		id := ""
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			switch {
			case last.Role != llm.RoleTool:
				return llmtest.Call("c", "exec", `{"command":"`+command+`","background":true}`)
			case id == "":
				_, rest, _ := strings.Cut(last.PlainText(), "sessionId ")
				id, _, _ = strings.Cut(rest, ",")
			default:
				results = append(results, last.PlainText())
			}
			if len(results) >= polls {
				return llmtest.Say("that was all")
			}
			return llmtest.Call(fmt.Sprint("c", n), "process", `{"action":"poll","sessionId":"`+id+`","timeout":30}`)
		})
		g := Start(t, Options{Model: model, Config: full()})
		end := g.Client().Ask("main", "go")
		g.Stop()
		return results, end
	}
	t.Run("LOOPDET-04 a silent command is polled at most twenty times", func(t *testing.T) {
		t.Parallel()
		got, end := watch(t, "sleep 600", 60)
		if len(got) != 21 || !strings.Contains(got[9], "process has polled 10 times with the same result") ||
			!strings.Contains(got[20], "blocked: process has polled 20 times") {
			t.Errorf("%d polls: %.300q", len(got), got)
		}
		if end.State != wire.StateError || !strings.Contains(end.Error, "even after it was blocked") {
			t.Errorf("%s %s", end.State, end.Error)
		}
	})
	t.Run("LOOPDET-02 TH-09 a command with new output can be polled on", func(t *testing.T) {
		t.Parallel()
		got, end := watch(t, "while :; do date +%N; sleep 0.01; done", 40)
		if len(got) != 40 || end.Text != "that was all" {
			t.Errorf("%d polls, %s %q %s", len(got), end.State, end.Text, end.Error)
		}
	})
}

// sameTool returns the same result each time.
type sameTool struct{ ran *atomic.Int64 }

func (sameTool) Spec() tool.Spec { return tool.Spec{Name: "same", Description: "does the same"} }

func (s sameTool) Run(context.Context, tool.Call) (tool.Result, error) {
	s.ran.Add(1)
	return tool.Text("the same"), nil
}

// TestDirectCallsRepeated repeats a call outside of a run.
func TestDirectCallsRepeated(t *testing.T) {
	t.Run("LOOPDET-07 calls outside of a session are not counted", func(t *testing.T) {
		t.Parallel()
		const repeat = 40
		var results []string
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleTool {
				results = append(results, last.PlainText())
			}
			if len(results) == 10 {
				return llmtest.Say("enough")
			}
			return llmtest.Call(fmt.Sprint("c", n), "same", `{}`)
		})
		var ran atomic.Int64
		g := Start(t, Options{
			Model: model, Tools: []tool.Tool{sameTool{&ran}}, Listen: &endpoint.Listen{Port: -1}, Config: Config{
				"tools":   json.RawMessage(`{"loopDetection": {"enabled": true}}`),
				"gateway": json.RawMessage(`{"auth": {"token": "a-token"}}`),
			},
		})
		c := g.Client()
		direct := map[string]func() string{
			"over HTTP": func() string {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(g.URL(), "ws")+
					"/tools/invoke", strings.NewReader(`{"tool":"same"}`))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer a-token")
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				b, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			},
			"by a method": func() string {
				var out wire.ToolsInvoked
				c.must(wire.MethodToolsInvoke, wire.ToolsInvoke{Name: "same", Args: json.RawMessage(`{}`)}, &out)
				b, err := json.Marshal(out)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			},
		}
		for name, call := range direct {
			first := call()
			for n := 2; n <= repeat; n++ {
				if got := call(); got != first || !strings.Contains(got, "the same") {
					t.Fatalf("%s, call %d: %s, the first: %s", name, n, got, first)
				}
			}
		}
		if n := ran.Load(); n != 2*repeat {
			t.Errorf("the tool ran %d times, want %d", n, 2*repeat)
		}
		if end := c.Ask("main", "go"); end.Text != "enough" {
			t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
		}
		for i, got := range results {
			if warned := strings.Contains(got, "[Warning"); warned != (i == 9) {
				t.Errorf("call %d of the run: %q, want a warning in the tenth only", i+1, got)
			}
		}
	})
}

// checkNoticeOnce checks that the person got the reason for the end of the run once,
// and that the transcript contains it once.
func (c *Client) checkNoticeOnce(end Ended) {
	c.t.Helper()
	n := 0
	for _, ev := range end.Seen {
		var e wire.Chat
		if ev.Name == wire.EventChat && ev.Decode(&e) == nil && e.RunID == end.Run && e.ErrorMessage != "" {
			n++
			if e.Stop != wire.StopLimit || e.ErrorDetail != nil {
				c.t.Errorf("the model got the message: %+v", e)
			}
		}
	}
	var h wire.History
	c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
	kept := 0
	for _, m := range h.Messages {
		if m.Role != "toolResult" && strings.Contains(m.Text(), end.Error) {
			kept++
		}
	}
	if n != 1 || kept > 1 {
		c.t.Errorf("reported %d times, %d times in the transcript", n, kept)
	}
}
