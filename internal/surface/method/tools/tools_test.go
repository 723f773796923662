package tools_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
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
			groups[g.Label] = append(groups[g.Label], strings.Join([]string{g.ID, x.ID, x.Label, x.Risk}, " "))
			if !slices.Contains(x.Profiles, "full") || len([]rune(x.Description)) > 201 {
				t.Errorf("%+v", x)
			}
		}
	}
	want := map[string][]string{
		"Read": {"reads read read low"}, "Act": {"acts exec exec high"},
		"Change files and state": {"writes edit edit medium", "writes write Write file medium"},
	}
	if diff := cmp.Diff(want, groups); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(all.Profiles, wire.ToolProfile{ID: "coding", Label: "Coding"}) ||
		len(all.Profiles) != len(policy.Profiles()) {
		t.Errorf("profiles: %+v", all.Profiles)
	}

	owner := methodtest.Do[wire.ToolsEffective](t, h, wire.MethodToolsEffective,
		wire.ToolsEffectiveGet{SessionKey: "main"})
	if len(owner.Groups) != 1 || len(owner.Groups[0].Tools) != 4 || owner.Groups[0].Tools[3].Label != "Write file" ||
		owner.Groups[0].Tools[3].Description != "Writes." || owner.Groups[0].Tools[3].Raw != "Writes. And more." {
		t.Errorf("for the owner: %+v", owner)
	}
	reader := h.Dial(client.Options{Scopes: []string{"operator.read"}})
	defer reader.Close()
	var some wire.ToolsEffective
	if err := reader.Call(t.Context(), wire.MethodToolsEffective, wire.ToolsEffectiveGet{SessionKey: "main"},
		&some); err != nil {
		t.Fatal(err)
	}
	if len(some.Groups) != 1 || len(some.Groups[0].Tools) != 3 {
		t.Errorf("for another principal: %+v, want all but exec", some)
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

func TestExplain(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(), named{Name: "read", Description: "Reads.", Groups: []string{"group:fs"},
		Sandboxed: tool.Inside},
		named{Name: "exec", Effect: tool.Acts, Names: []string{"bash"}, Groups: []string{"group:runtime"}},
		named{Name: "nodes", OwnerOnly: true})
	h.ToolRules = policy.Config{
		Rules:      policy.Rules{Profile: "coding", Deny: []string{"E*"}},
		ByProvider: map[string]policy.Rules{"openai": {Allow: []string{"raed"}}},
		BySender:   map[string]policy.Rules{"channel:irc:7": {Deny: []string{"group:fs"}}},
	}
	type row struct{ Name, By, Key string }
	for _, tt := range []struct {
		in   wire.ToolsExplainGet
		want []row
	}{
		{wire.ToolsExplainGet{}, []row{{"exec", "global", "tools"}, {"nodes", "profile", "tools.profile"}, {"read", "", ""}}},
		{wire.ToolsExplainGet{Name: "Bash"}, []row{{"exec", "global", "tools"}}},
		{wire.ToolsExplainGet{Name: "read", Sender: "irc:7"}, []row{{"read", "sender", "tools.toolsBySender.channel:irc:7"}}},
		{wire.ToolsExplainGet{Name: "read", Sandboxed: true, Depth: 1}, []row{{"read", "", ""}}},
	} {
		e := methodtest.Do[wire.ToolsExplained](t, h, wire.MethodToolsExplain, tt.in)
		var got []row
		for _, x := range e.Tools {
			got = append(got, row{x.Name, x.By, x.Key})
			if x.Allowed != (x.By == "") {
				t.Errorf("%+v", x)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || e.Profile != "coding" ||
			e.Model != "mock/m1" || len(e.Warnings) != 0 {
			t.Errorf("%+v: %+v\n%s", tt.in, e, diff)
		}
	}
	if e := methodtest.Do[wire.ToolsExplained](t, h, wire.MethodToolsExplain,
		wire.ToolsExplainGet{Model: "openai/gpt"}); len(e.Warnings) != 1 ||
		!strings.Contains(e.Warnings[0], "tools.byProvider.openai: no tool is named raed") {
		t.Errorf("warnings %q", e.Warnings)
	}
	for want, in := range map[string]wire.ToolsExplainGet{
		`unknown tool "raed"; did you mean read`: {Name: "raed"},
		"between 0 and 100":                      {Depth: -1},
		`unknown agent id "nope"`:                {AgentID: "nope"},
	} {
		if err := h.Call(t.Context(), wire.MethodToolsExplain, in, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", in, err, want)
		}
	}
}
