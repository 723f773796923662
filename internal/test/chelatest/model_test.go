package chelatest

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// pausing is a model that says one text, waits, and says another.
type pausing struct {
	first, second string
	said          chan struct{} // closed after the first text
	free          chan struct{}
}

// Stream implements llm.Provider.
func (p pausing) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if !yield(llm.Event{Kind: llm.TextDelta, Text: p.first}, nil) {
			return
		}
		close(p.said)
		select {
		case <-p.free:
		case <-ctx.Done():
			yield(llm.Event{}, ctx.Err())
			return
		}
		if !yield(llm.Event{Kind: llm.TextDelta, Text: p.second}, nil) {
			return
		}
		yield(llm.Event{Kind: llm.Done, Message: &llm.Message{
			Role:     llm.RoleAssistant,
			Parts:    []llm.Part{llm.Text(p.first + p.second)},
			Provider: "mock",
			Model:    r.Model,
			Stop:     llm.StopEnd,
		}}, nil)
	}
}

// uses returns a model that makes the call in the message ("name {args}") and
// answers with its result.
func uses() *llmtest.Script { return llmtest.ScriptFunc(use) }

func use(n int, r *llm.Request) llmtest.Step {
	last := r.Messages[len(r.Messages)-1]
	if last.Role == llm.RoleTool {
		return llmtest.Say(last.PlainText())
	}
	name, args, _ := strings.Cut(last.PlainText(), " ")
	return llmtest.Call(fmt.Sprint("c", n), name, args)
}
