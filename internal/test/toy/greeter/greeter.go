// Package greeter is a tool with configuration and facts of its own, for tests of the
// registry and of the rules about tools.
package greeter

import (
	"context"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/tool"
)

// options is the tool's section.
type options struct {
	Greeting string `json:"greeting"`
}

// New returns the tool; no tool without a section.
func New(raw json.RawMessage) ([]tool.Tool, error) {
	if raw == nil {
		return nil, nil
	}
	var g greeter
	if err := json.Unmarshal(raw, &g.options); err != nil {
		return nil, err
	}
	return []tool.Tool{g}, nil
}

type greeter struct{ options }

// Spec implements tool.Tool.
func (greeter) Spec() tool.Spec {
	return tool.Spec{
		Name: "greet", Label: "Greet", Description: "Returns the configured greeting.", Effect: tool.Reads,
		Names: []string{"hail"}, Groups: []string{"group:toys", tool.Reading}, Profiles: []string{"messaging"},
		Sandboxed: tool.Inside, Subagents: tool.Parents, InRuns: true, Title: title,
		Schema: json.RawMessage(`{"type": "object", "properties": {"to": {"type": "string"}}}`),
	}
}

// title returns who is greeted.
func title(args json.RawMessage) string {
	var a struct{ To string }
	_ = json.Unmarshal(args, &a) // a model sent it
	return "to " + a.To
}

// Run implements tool.Tool.
func (g greeter) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text(g.Greeting), nil
}
