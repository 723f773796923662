package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
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
			`{"providers": {"mock": {"baseUrl": %q, "api": %q, "apiKey": "k", "timeoutSeconds": 20, "keepAliveSeconds": 60, "models": [{"id": "m", "contextWindow": 200000}]}}}`, url, w)),
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
		says  string // part of the error that the person sees
	}{
		{"hangs before the headers", llmtest.Fault{Hang: llmtest.HangHeaders}, 1, wire.StateError,
			"mock/m did not answer in time: nothing was received for 20s"},
		{"hangs after the headers, sending keep-alives", llmtest.Fault{Hang: llmtest.HangBody, Ping: time.Second}, 1,
			wire.StateError, "mock/m did not answer in time: only keep-alives were received for 1m0s"},
		{"stalls in the middle of an event", llmtest.Fault{Hang: llmtest.HangMiddle}, 1, wire.StateError,
			"nothing was received for 20s"},
		{"breaks off in the middle", llmtest.Fault{Cut: true, CutAt: 1500, Abort: true}, 1, wire.StateError,
			"mock/m failed to answer: the answer was cut off"},
		{"ends too early, but normally", llmtest.Fault{Cut: true, CutAt: 1500}, 1, wire.StateError,
			"mock/m failed to answer: "},
		{"is overloaded once", llmtest.Fault{Status: 529}, 1, wire.StateFinal, ""},
		{"is overloaded permanently", llmtest.Fault{Status: 529}, 9, wire.StateError, "mock/m is overloaded"},
		{"limits the rate once", llmtest.Fault{Status: 429, RetryAfter: "2"}, 1, wire.StateFinal, ""},
		{"limits the rate for an hour", llmtest.Fault{Status: 429, RetryAfter: "3600"}, 1, wire.StateError, ""},
		{"rejects the key", llmtest.Fault{Status: 401}, 1, wire.StateError, "refused the key"},
		{"fails internally once", llmtest.Fault{Status: 500}, 1, wire.StateFinal, ""},
		{"rejects the request", llmtest.Fault{Status: 400, Message: "no"}, 1, wire.StateError, ""},
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
						if !strings.Contains(end.Error, f.says) || strings.Contains(end.Error, "reached") {
							t.Errorf("the person is told %q, want %q", end.Error, f.says)
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

// TestUnfinishedStreams runs a turn with streams that lack their end, whose calls must
// not be made twice.
func TestUnfinishedStreams(t *testing.T) {
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		for name, body := range map[string]func([]byte) []byte{
			"no blank line after the last event": func(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) },
			"no line end after the last event":   func(b []byte) []byte { return bytes.TrimRight(b, "\n") },
			"no last event": func(b []byte) []byte {
				return b[:bytes.LastIndex(bytes.TrimRight(b, "\n"), []byte("\n\n"))]
			},
		} {
			t.Run(string(w)+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					call := llmtest.Call("call_1", "write", `{"path":"a.txt","content":"alpha"}`)
					call.Fault.Body = body
					srv := llmtest.NewServer(t, w, call, llmtest.Say("done"))
					url, hc := srv.Pipe()
					g := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)})
					c := g.Client()
					end := c.Ask("main", "write a file")
					if n := len(srv.Requests()); end.Text != "done" || n != 2 {
						t.Errorf("after %d calls: %s %q %s; want 2", n, end.State, end.Text, end.Error)
					}
					c.Close()
					g.Stop()
				})
			})
		}
	}
}

// TestUnreachable checks what the person is told if there is no connection to the service.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hc := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("connection refused")
		}}}
		g := Start(t, Options{HTTP: hc, Config: modelConfig(llmtest.OpenAI, "http://127.0.0.1:1/v1")})
		c := g.Client()
		if end := c.Ask("main", "hi"); end.Error != "mock/m cannot be reached: connection refused" {
			t.Errorf("%s: %q", end.State, end.Error)
		}
		c.Close()
		g.Stop()
	})
}

// TestCutAnswers checks what happens to answers that the service ends before the model
// does: no call is made, and everybody is told that a text is incomplete.
func TestCutAnswers(t *testing.T) {
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		t.Run(string(w)+" calls", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				half := llmtest.Call("call_1", "write", `{"path":"a.txt","content":"alpha"`)
				half.Stop = llm.StopLength
				whole := llmtest.Call("call_2", "write", `{"path":"b.txt","content":"beta"}`)
				whole.Stop = llm.StopLength
				srv := llmtest.NewServer(t, w, half, whole, llmtest.Say("done"))
				url, hc := srv.Pipe()
				g := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)})
				c := g.Client()
				if end := c.Ask("main", "write files"); end.Text != "done" {
					t.Errorf("%s: %q %s", end.State, end.Text, end.Error)
				}
				for _, name := range []string{"a.txt", "b.txt"} {
					if _, err := os.Stat(filepath.Join(g.Dir, "workspace", name)); err == nil {
						t.Errorf("%s was written", name)
					}
				}
				for _, r := range srv.Requests()[1:] {
					if !bytes.Contains(r.Body, []byte("cut off by the output limit")) {
						t.Errorf("the model is not told: %s", r.Body)
					}
				}
				c.Close()
				g.Stop()
			})
		})
		for stop, note := range map[llm.StopReason]string{
			llm.StopLength:  "reached its output limit",
			llm.StopRefusal: "refused to go on",
		} {
			t.Run(string(w)+" "+string(stop), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					text := llmtest.Say("one, two")
					text.Stop = stop
					srv := llmtest.NewServer(t, w, text, text)
					url, hc := srv.Pipe()
					g := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)})
					c := g.Client()
					end := c.Ask("main", "count to a thousand")
					if !strings.HasPrefix(end.Text, "one, two\n\n") || !strings.Contains(end.Text, note) {
						t.Errorf("%s: %q %s", end.State, end.Text, end.Error)
					}
					if end.Stop != string(stop) {
						t.Errorf("stop reason %q, want %q", end.Stop, stop)
					}
					var res wire.AgentResult
					err := c.Client.Await(t.Context(), wire.MethodAgent,
						wire.AgentRun{Message: "again", SessionKey: "main", IdempotencyKey: "again"}, nil, &res)
					if err != nil || res.Result == nil || res.Result.Meta.Stop != string(stop) ||
						!strings.Contains(res.Result.Payloads[0].Text, note) {
						t.Errorf("the result for programs: %+v, %v", res.Result, err)
					}
					c.Close()
					g.Stop()
				})
			})
		}
	}
}
