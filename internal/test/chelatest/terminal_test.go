package chelatest

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// text returns the text that a client shows for the chat events of a run: the
// joined deltas, replaced by the final text.
func text(seen []wire.Event, run string) (deltas, final string) {
	for _, ev := range seen {
		var chat wire.Chat
		if ev.Name != wire.EventChat || ev.Decode(&chat) != nil || chat.RunID != run {
			continue
		}
		switch {
		case chat.State != wire.StateDelta:
			if chat.Message != nil {
				final = chat.Message.Text()
			}
		case chat.Replace:
			deltas = chat.Delta
		default:
			deltas += chat.Delta
		}
	}
	return deltas, final
}

func TestTwoTerminals(t *testing.T) {
	t.Run("both clients see the same stream", func(t *testing.T) {
		long := strings.Repeat("one two three four five. ", 200)
		g := Start(t, Options{Model: llmtest.NewScript(llmtest.Say(long))})
		a, b := g.Client(), g.Client()
		run := a.Send("main", "talk")
		ea, eb := a.Await(run), b.Await(run)
		da, fa := text(ea.Seen, run)
		db, fb := text(eb.Seen, run)
		if da != long || db != long {
			t.Errorf("deltas of %d and %d bytes, want %d", len(da), len(db), len(long))
		}
		if fa != long || fb != long {
			t.Errorf("finals of %d and %d bytes, want %d", len(fa), len(fb), len(long))
		}
	})
	t.Run("the second client steers the run of the first", func(t *testing.T) {
		asked, free := make(chan struct{}), make(chan struct{})
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				close(asked)
				<-free
				return llmtest.Call("c1", "ls", `{}`)
			}
			return llmtest.Say("heard: " + r.Messages[len(r.Messages)-1].PlainText())
		})
		g := Start(t, Options{Model: model})
		a, b := g.Client(), g.Client()
		run := a.Send("main", "begin")
		<-asked
		var sent wire.ChatSent
		err := b.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{
			SessionKey: "main", Message: "also this", IdempotencyKey: "second", QueueMode: "steer",
		}, &sent)
		if err != nil {
			t.Fatal(err)
		}
		close(free)
		if end := a.Await(run); end.Text != "heard: also this" {
			t.Errorf("answer %q %s", end.Text, end.Error)
		}
	})
	t.Run("a client that connects late gets the text so far and the rest", func(t *testing.T) {
		half, free := make(chan struct{}), make(chan struct{})
		g := Start(t, Options{Model: pausing{"first half, ", "second half", half, free}})
		a := g.Client()
		run := a.Send("main", "talk")
		<-half
		var sofar string
		b := g.Client()
		for sofar == "" {
			h, err := b.History(t.Context(), "main", 10)
			if err != nil {
				t.Fatal(err)
			}
			if h.InFlight != nil {
				sofar = h.InFlight.Text
			}
		}
		close(free)
		end := b.Await(run)
		if sofar != "first half, " || end.Text != "first half, second half" {
			t.Errorf("so far %q, finally %q", sofar, end.Text)
		}
	})
}
