package chelatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// webChat connects as a page in a browser does.
func webChat(t *testing.T, g *Gateway) *Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{
		Dial: g.Dial,
		ID:   "openclaw-control-ui",
		Mode: wire.ModeWebchat,
		Caps: []string{wire.CapToolEvents},
		Once: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &Client{Client: c, t: t}
}

// conversation returns what a page shows of a conversation.
func (c *Client) conversation() []wire.Message {
	c.t.Helper()
	var h wire.History
	c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
	return h.Messages
}

func TestWebChat(t *testing.T) {
	t.Parallel()
	t.Run("WC-01 a message that is sent twice with its key starts one run", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model := llmtest.NewScript(llmtest.Step{Parts: llmtest.Say("once").Parts, Delay: time.Second}, llmtest.Say("twice"))
			g := Start(t, Options{Model: model})
			defer g.Stop()
			c, again := webChat(t, g), webChat(t, g)
			message := wire.ChatSend{SessionKey: "main", Message: "hi", IdempotencyKey: "k1"}
			var first, second, third wire.ChatSent
			c.must(wire.MethodChatSend, message, &first)
			again.must(wire.MethodChatSend, message, &second) // while the run works
			end := c.Await("k1")
			c.must(wire.MethodChatSend, message, &third) // after its end
			synctest.Wait()
			time.Sleep(time.Minute)
			if first.RunID != "k1" || second.RunID != "k1" || third.RunID != "k1" || end.Text != "once" {
				t.Errorf("%+v, %+v, %+v, %+v", first, second, third, end)
			}
			if n := len(model.Requests()); n != 1 {
				t.Errorf("%d calls of the model, want 1", n)
			}
			if list := c.conversation(); len(list) != 2 {
				t.Errorf("%d messages, want the question and the answer", len(list))
			}
		})
	})
	t.Run("WC-02 a page that was refreshed shows the same", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			o := Options{Dir: dir, Model: llmtest.NewScript(llmtest.Call("c1", "ls", `{"path":"."}`),
				llmtest.Say("**two** files"), llmtest.Say("bye"))}
			g := Start(t, o)
			c := webChat(t, g)
			c.Ask("main", "what is here")
			c.Ask("main", "thanks 🙂")
			before := c.conversation()
			if len(before) < 5 || before[len(before)-1].Text() != "bye" {
				t.Fatalf("%d messages: %+v", len(before), before)
			}
			c.Close()
			if diff := cmp.Diff(before, webChat(t, g).conversation()); diff != "" {
				t.Errorf("after a refresh: %s", diff)
			}
			g.Stop()
			g = Start(t, o)
			defer g.Stop()
			if diff := cmp.Diff(before, webChat(t, g).conversation()); diff != "" {
				t.Errorf("after a restart of the gateway: %s", diff)
			}
		})
	})
	t.Run("WC-03 pieces arrive while the model writes", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			const pieces, gap, chunk = 200, 20 * time.Millisecond, 6
			var text strings.Builder
			for i := range pieces {
				fmt.Fprintf(&text, "p%04d ", i)
			}
			want := text.String()
			half := want[:len(want)/2]
			g := Start(t, Options{Model: llmtest.NewScript(
				llmtest.Step{Parts: append(llmtest.Say(half).Parts, llmtest.Call("c1", "ls", `{"path":"."}`).Parts...),
					Stop: llm.StopTools, Chunk: chunk, Gap: gap},
				llmtest.Step{Parts: llmtest.Say(want[len(half):]).Parts, Chunk: chunk, Gap: gap},
			)})
			defer g.Stop()
			c := webChat(t, g)
			begin := time.Now()
			run := c.Send("main", "write")
			var deltas int
			var whole strings.Builder
			var steps []string // tools, and where they are in the text
			var final string
			var first, last time.Duration
			for final == "" {
				e := <-c.Events()
				switch e.Name {
				case wire.EventAgent:
					var a wire.Agent
					var step wire.ToolStep
					if e.Decode(&a) == nil && a.Stream == wire.StreamTool && json.Unmarshal(a.Data, &step) == nil {
						steps = append(steps, fmt.Sprintf("%s %s at %d", step.Name, step.Phase, strings.Count(whole.String(), "p")))
					}
				case wire.EventChat:
					var chat wire.Chat
					if err := e.Decode(&chat); err != nil || chat.RunID != run {
						t.Fatalf("%s, %v", e.Payload, err)
					}
					if chat.State != wire.StateDelta {
						final = chat.Message.Text()
						break
					}
					if chat.Replace {
						whole.Reset()
					}
					whole.WriteString(chat.Delta)
					last = time.Since(begin)
					if deltas++; deltas == 1 {
						first = last
					}
				}
			}
			if deltas < 50 || first > time.Second || last-first < (pieces-40)*gap {
				t.Errorf("%d deltas, the first after %v, the last after %v", deltas, first, last)
			}
			joined := strings.Join(strings.Fields(whole.String()), " ")
			if !strings.HasSuffix(joined, strings.TrimSpace(final)) || strings.TrimSpace(final) !=
				strings.TrimSpace(want[len(half):]) && strings.TrimSpace(final) != strings.TrimSpace(want) {
				t.Errorf("put together:\n%s\nfinal:\n%s", joined, final)
			}
			if got, want := strings.Join(steps, ", "), "ls start at 100, ls result at 100"; got != want {
				t.Errorf("tools: %s, want %s", got, want)
			}
		})
	})
}
