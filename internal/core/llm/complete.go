package llm

import (
	"context"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Complete makes a call and returns its Done event, whose Message is set. With an error,
// the event has the usage that the service reported.
func Complete(ctx context.Context, p Provider, r *Request) (Event, error) {
	for e, err := range p.Stream(ctx, r) {
		if err != nil {
			return e, err
		}
		if e.Kind == Done && e.Message != nil {
			return e, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return Event{}, err
	}
	return Event{}, chela.Errorf(chela.CodeUnavailable, "the model gave no answer")
}
