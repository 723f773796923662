package dispatch

import (
	"context"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/window"
)

// Inspect is [runner.Runner.Inspect].
func (d *Dispatcher) Inspect(ctx context.Context, who chela.Principal, key chela.SessionKey,
	at chela.Address) (window.Report, error) {
	return d.runner.Inspect(ctx, who, key, at)
}

// Preview is [runner.Runner.Preview].
func (d *Dispatcher) Preview(ctx context.Context, who chela.Principal, key chela.SessionKey,
	at chela.Address) (llm.Model, llm.Request, error) {
	return d.runner.Preview(ctx, who, key, at)
}
