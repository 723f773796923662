// Package greeter is a tool with configuration, for tests of the registry.
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
		Schema: json.RawMessage(`{"type": "object", "properties": {}}`),
	}
}

// Run implements tool.Tool.
func (g greeter) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text(g.Greeting), nil
}
