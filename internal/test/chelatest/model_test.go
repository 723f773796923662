package chelatest

import (
	"context"
	"iter"

	"github.com/chela-ai/chela/internal/core/llm"
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
			Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(p.first + p.second)}, Provider: "mock", Model: r.Model, Stop: llm.StopEnd,
		}}, nil)
	}
}
