package dispatch_test

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/chela-ai/chela/internal/core/tool"
)

// fakeTool is a tool that calls a function of the test.
type fakeTool struct {
	spec tool.Spec
	run  func(context.Context, tool.Call) (tool.Result, error)
	plan func(tool.Call) tool.Plan

	mu   sync.Mutex
	runs []string // arguments of each run
}

func (f *fakeTool) Spec() tool.Spec { return f.spec }

func (f *fakeTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	f.mu.Lock()
	f.runs = append(f.runs, string(c.Args))
	f.mu.Unlock()
	if f.run == nil {
		return tool.Text("ran " + f.spec.Name), nil
	}
	return f.run(ctx, c)
}

func (f *fakeTool) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs)
}

// asking is a fakeTool that needs approval.
type asking struct{ *fakeTool }

func (a asking) Plan(_ context.Context, c tool.Call) (tool.Plan, error) { return a.plan(c), nil }

func newTool(name string, e tool.Effect, run func(context.Context, tool.Call) (tool.Result, error)) *fakeTool {
	return &fakeTool{run: run, spec: tool.Spec{
		Name: name, Label: name, Description: name, Effect: e, Parallel: e == tool.Reads,
		Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`),
	}}
}

// mustAsk returns a tool that needs approval.
func mustAsk(name string) asking {
	f := newTool(name, tool.Acts, nil)
	f.plan = func(c tool.Call) tool.Plan {
		return tool.Plan{
			Effect: tool.Acts,
			Ask:    true,
			Reason: "it acts",
			Text:   name + " " + string(c.Args),
			Hash:   "h:" + string(c.Args),
		}
	}
	return asking{f}
}

var _ tool.Planner = asking{}
