package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// numbered is one of many tools.
type numbered int

func (n numbered) Spec() tool.Spec {
	return tool.Spec{
		Name: fmt.Sprintf("tool_%02d", int(n)), Description: fmt.Sprintf("Tool %d.", int(n)), Effect: tool.Reads,
		Schema: json.RawMessage(
			fmt.Sprintf(`{"type":"object","properties":{"b%d":{"type":"string"},"a%d":{"type":"integer"}}}`, n, n)),
	}
}

func (n numbered) Run(_ context.Context, _ tool.Call) (tool.Result, error) {
	return tool.Text(fmt.Sprintf("result %d", int(n))), nil
}

// shuffled returns 50 tools in a random order.
func shuffled() []tool.Tool {
	var list []tool.Tool
	for i := range 50 {
		list = append(list, numbered(i))
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// markers are what a dialect adds to mark the end of a prefix.
var markers = regexp.MustCompile(`,"cache_control":\{[^}]*\}`)

// endOfRequest is behind the last message of a request.
const endOfRequest = `],"role":"user"}]}`

// extends reports whether the later request begins with all messages of the earlier one.
func extends(earlier, later []byte) bool {
	earlier, later = markers.ReplaceAll(earlier, nil), markers.ReplaceAll(later, nil)
	return bytes.HasPrefix(later, bytes.TrimSuffix(earlier, []byte(endOfRequest)))
}

// What was sent to a model is sent again without a change, byte by byte, so that the
// service finds it in its cache.
func TestStablePrefix(t *testing.T) {
	t.Parallel()
	t.Run("CACHE-01 PROMPT-04 each request begins with the previous one, over days, restarts and another order of the tools", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			srv := llmtest.ServerFunc(t, llmtest.Anthropic, func(_ int, got llmtest.ReceivedRequest) llmtest.Step {
				if !bytes.HasSuffix(markers.ReplaceAll(got.Body, nil), []byte(`"type":"tool_result"}`+endOfRequest)) {
					n++
					return llmtest.Think("Let me see.", "c2ln", llmtest.Calls(
						llmtest.ToolCall(fmt.Sprint("call_", n, "a"), fmt.Sprintf("tool_%02d", n), fmt.Sprintf(`{"b": "x",  "a":%d}`, n)),
						llmtest.ToolCall(fmt.Sprint("call_", n, "b"), "tool_07", fmt.Sprintf(`{"z":%d,"a":1.0}`, n)),
					))
				}
				return llmtest.Say(fmt.Sprint("answer ", n))
			})
			url, hc := srv.Pipe()
			o := Options{
				Dir:    t.TempDir(),
				HTTP:   hc,
				Config: modelConfig(llmtest.Anthropic, url),
				Tools:  shuffled(),
				Wrap:   withoutSync,
			}
			// Midnight changes the date in the prompt, so the conversation takes place on one day.
			time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(25 * time.Hour)))
			g := Start(t, o)
			c := g.Client()
			for turn := range 6 {
				if turn == 2 || turn == 4 {
					c.Close()
					g.Stop()
					o.Tools = shuffled()
					g = Start(t, o)
					c = g.Client()
				}
				if end := c.Ask("main", fmt.Sprint("question ", turn)); end.State != wire.StateFinal {
					t.Fatalf("%s: %s", end.State, end.Error)
				}
				time.Sleep(time.Hour)
			}
			c.Close()
			g.Stop()
			all := srv.Requests()
			for i := 1; i < len(all); i++ {
				if !extends(all[i-1].Body, all[i].Body) {
					t.Errorf("request %d does not begin with request %d:\n%s\n%s", i, i-1, all[i-1].Body, all[i].Body)
				}
			}
			if len(all) != 12 {
				t.Errorf("%d requests", len(all))
			}
		})
	})
	t.Run("CACHE-03 only another list of tools changes the prefix", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := llmtest.ServerFunc(t, llmtest.Anthropic,
				func(int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Say("ok") })
			url, hc := srv.Pipe()
			o := Options{
				Dir:    t.TempDir(),
				HTTP:   hc,
				Config: modelConfig(llmtest.Anthropic, url),
				Tools:  shuffled(),
				Wrap:   withoutSync,
			}
			for _, change := range []func(){
				func() {},
				func() { o.Config["messages"] = json.RawMessage(`{"responseUsage": "full"}`) },
				func() { o.Tools = shuffled()[1:] },
				func() {},
			} {
				change()
				g := Start(t, o)
				c := g.Client()
				c.Ask("main", "hello")
				c.Close()
				g.Stop()
			}
			all := srv.Requests()
			for i, want := range []bool{true, false, true} {
				if got := extends(all[i].Body, all[i+1].Body); got != want {
					t.Errorf("request %d begins with the previous one: %v, want %v", i+1, got, want)
				}
			}
		})
	})
}
