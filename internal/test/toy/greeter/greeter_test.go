package greeter_test

import (
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/test/toy/greeter"
)

// The rules honor what the tool says about itself.
func TestFacts(t *testing.T) {
	tools, err := greeter.New([]byte(`{"greeting": "hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	set := tool.NewSet(tools...)
	catalog := policy.NewCatalog(set)
	rules := func(r policy.Rules, c policy.Conversation) policy.Pipeline {
		return catalog.Pipeline(policy.Config{Rules: r}, policy.Config{}, "agents.entries.main", c)
	}
	alone := policy.Conversation{}
	for _, tt := range []struct {
		name string
		p    policy.Pipeline
		want bool
	}{
		{"its group is allowed", rules(policy.Rules{Allow: []string{"group:toys"}}, alone), true},
		{"its group is denied", rules(policy.Rules{Deny: []string{"group:toys"}}, alone), false},
		{"another group is allowed", rules(policy.Rules{Allow: []string{"group:fs"}}, alone), false},
		{"its other name is denied", rules(policy.Rules{Deny: []string{"Hail"}}, alone), false},
		{"all tools of ours", rules(policy.Rules{Allow: []string{"group:chela"}}, alone), true},
		{"its profile", rules(policy.Rules{Profile: "messaging"}, alone), true},
		{"another profile", rules(policy.Rules{Profile: "minimal"}, alone), false},
		{"in a sandbox", rules(policy.Rules{}, policy.Conversation{Sandboxed: true}), true},
		{"a subagent that may have subagents", rules(policy.Rules{}, policy.Conversation{Depth: 1, MaxDepth: 2}), true},
		{"a subagent that may have none", rules(policy.Rules{}, policy.Conversation{Depth: 2, MaxDepth: 2}), false},
		{"a client", policy.Pipeline{catalog.Direct(nil, nil, true)}, false},
		{"a client of an owner who allows it", policy.Pipeline{catalog.Direct(nil, []string{"hail"}, true)}, true},
	} {
		if got := slices.Contains(tt.p.Apply(set.Specs()).Allowed, "greet"); got != tt.want {
			t.Errorf("%s: allowed %v, want %v", tt.name, got, tt.want)
		}
	}
	readers := session.Bounds{}.Narrow("agent:main:main", run.Tools{Allow: []string{tool.Reading}})
	if got := session.Permitted(set.Names(), readers, run.Overrides{},
		catalog.Match); !slices.Equal(got, []string{"greet"}) {
		t.Errorf("a subagent that only reads has %q", got)
	}
	call := set.Titled(llm.ToolCall{Name: "hail", Args: []byte(`{"to": "Ada"}`)})
	if got := call.Label(); got != "hail to Ada" {
		t.Errorf("people see %q", got)
	}
	off := policy.NewCatalog(tool.NewSet(tool.Off(tools...)...)).Pipeline(
		policy.Config{Rules: policy.Rules{Allow: []string{"greet"}}}, policy.Config{}, "", alone)
	if o := off.Apply(nil); len(o.Warnings) > 0 || !slices.Equal(off.Apply([]tool.Spec{{Name: "other"}}).Allowed, nil) {
		t.Errorf("a list that names a tool which is off: %+v", o)
	}
}
