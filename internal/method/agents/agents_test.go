package agents_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/llm/llmtest"
	"github.com/chela-ai/chela/internal/method/methodtest"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/wire"
)

// named is a tool that does nothing.
type named tool.Spec

func (n named) Spec() tool.Spec                                   { return tool.Spec(n) }
func (named) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Text("done"), nil }

func TestAgents(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(),
		named{Name: "write", Effect: tool.Writes, Label: "Write file", Description: "Writes."},
		named{Name: "exec", Effect: tool.Acts}, named{Name: "read"}, named{Name: "edit", Effect: tool.Writes})

	list := methodtest.Do[wire.AgentsList](t, h, wire.MethodAgentsList, nil)
	want := wire.AgentsList{DefaultID: "main", MainKey: "main", Scope: "per-sender", Agents: []wire.AgentInfo{
		{ID: "main", Name: "Chela", Kind: "agent", Model: wire.AgentModel{Primary: "mock/m1"}},
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}

	id := methodtest.Do[wire.AgentIdentity](t, h, wire.MethodAgentIdentity, wire.AgentIdentityGet{SessionKey: "agent:main:x"})
	if diff := cmp.Diff(wire.AgentIdentity{AgentID: "main", Name: "Chela", Avatar: "C"}, id); diff != "" {
		t.Error(diff)
	}
	if err := h.Call(t.Context(), wire.MethodAgentIdentity, wire.AgentIdentityGet{AgentID: "nope"}, nil); err == nil {
		t.Error("an agent that does not exist has an identity")
	}

	tools := methodtest.Do[wire.ToolsCatalog](t, h, wire.MethodToolsCatalog, map[string]any{"includePlugins": true})
	groups := map[string][]string{}
	for _, g := range tools.Groups {
		for _, x := range g.Tools {
			groups[g.ID] = append(groups[g.ID], x.ID)
		}
	}
	if diff := cmp.Diff(map[string][]string{"reads": {"read"}, "writes": {"edit", "write"}, "acts": {"exec"}}, groups); diff != "" {
		t.Error(diff)
	}

	for _, withArgs := range []bool{false, true} {
		got := methodtest.Do[wire.CommandsList](t, h, wire.MethodCommandsList, wire.CommandsGet{IncludeArgs: withArgs})
		if len(got.Commands) != 1 || (got.Commands[0].Args != nil) != withArgs {
			t.Errorf("commands, with arguments %v: %+v", withArgs, got.Commands)
		}
	}

	models := methodtest.Do[wire.ModelsList](t, h, wire.MethodModelsList, map[string]any{"view": "all"})
	wantModels := []wire.Model{{
		ID: "m1", Name: "Mock", Provider: "mock", Context: 100_000, Reasoning: true, Available: true, Tags: []string{"default"},
		Levels: []wire.Level{{ID: "off", Label: "off"}, {ID: "low", Label: "low"}, {ID: "high", Label: "high"}},
		Cost:   &wire.Price{Input: 1, Output: 2},
	}}
	if diff := cmp.Diff(wantModels, models.Models); diff != "" {
		t.Error(diff)
	}
}
