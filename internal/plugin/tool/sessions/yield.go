package sessions

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/chela-ai/chela/internal/core/tool"
)

//go:embed yield.md
var yieldDescription string

// NewYield returns the tool sessions_yield.
func NewYield(s Spawner) tool.Tool { return yieldTool{s} }

type yieldTool struct{ Spawner }

func (t yieldTool) Spec() tool.Spec {
	return tool.Spec{
		Name:        "sessions_yield",
		Label:       "Wait for subagents",
		Description: strings.TrimSpace(yieldDescription),
		Effect:      tool.Reads,
		Groups:      []string{"group:sessions"}, Sandboxed: tool.Inside,
		Volatile: []string{"waiting"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"message":{"type":"string","description":"note to yourself"}},
			"additionalProperties":false}`),
	}
}

func (t yieldTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Message string `json:"message"`
	}](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	n, err := t.Waiting(ctx, c.Run)
	if err != nil {
		return tool.Result{}, err
	}
	if n == 0 {
		return tool.Result{}, errors.New("no subagent of this turn is running: there is nothing to wait for")
	}
	r, err := encoded(struct {
		Status  string `json:"status"`
		Waiting int    `json:"waiting"`
		Message string `json:"message,omitempty"`
	}{"yielded", n, a.Message})
	r.Yield = err == nil
	return r, err
}
