package tools_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/llm/llmtest"
	"github.com/chela-ai/chela/internal/method/methodtest"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/wire"
)

// named is a tool that does nothing.
type named tool.Spec

func (n named) Spec() tool.Spec                                   { return tool.Spec(n) }
func (named) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Text("done"), nil }

func TestTools(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(),
		named{Name: "write", Effect: tool.Writes, Label: "Write file", Description: "Writes. And more."},
		named{Name: "exec", Effect: tool.Acts, OwnerOnly: true}, named{Name: "read", Description: strings.Repeat("r", 500)},
		named{Name: "edit", Effect: tool.Writes})

	all := methodtest.Do[wire.ToolsCatalog](t, h, wire.MethodToolsCatalog, map[string]any{"includePlugins": true})
	groups := map[string][]string{}
	for _, g := range all.Groups {
		for _, x := range g.Tools {
			groups[g.ID] = append(groups[g.ID], x.ID+" "+x.Risk)
			if len(x.Profiles) != 1 || len([]rune(x.Description)) > 201 {
				t.Errorf("%+v", x)
			}
		}
	}
	want := map[string][]string{"reads": {"read low"}, "writes": {"edit medium", "write medium"}, "acts": {"exec high"}}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Error(diff)
	}

	owner := methodtest.Do[wire.ToolsEffective](t, h, wire.MethodToolsEffective, wire.ToolsEffectiveGet{SessionKey: "main"})
	if len(owner.Groups) != 1 || len(owner.Groups[0].Tools) != 4 || owner.Groups[0].Tools[3].Description != "Writes." || owner.Groups[0].Tools[3].Raw != "Writes. And more." {
		t.Errorf("for the owner: %+v", owner)
	}
	reader := h.Dial(client.Options{Scopes: []string{"operator.read"}})
	defer reader.Close()
	var some wire.ToolsEffective
	if err := reader.Call(t.Context(), wire.MethodToolsEffective, wire.ToolsEffectiveGet{SessionKey: "main"}, &some); err != nil {
		t.Fatal(err)
	}
	if len(some.Groups) != 1 || len(some.Groups[0].Tools) != 3 {
		t.Errorf("for somebody else: %+v, want all but exec", some)
	}

	for _, tt := range []struct {
		method string
		params any
		want   string
	}{
		{wire.MethodToolsCatalog, wire.ToolsGet{AgentID: "nope"}, `unknown agent id "nope"`},
		{wire.MethodToolsEffective, nil, "must have required property 'sessionKey'"},
		{wire.MethodToolsEffective, wire.ToolsEffectiveGet{SessionKey: "agent:nope:x"}, `unknown agent id "nope"`},
		{wire.MethodToolsEffective, wire.ToolsEffectiveGet{SessionKey: "agent:main:x", AgentID: "other"}, "does not match"},
	} {
		if err := h.Call(t.Context(), tt.method, tt.params, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: %v, want %q", tt.method, tt.params, err, tt.want)
		}
	}
}
