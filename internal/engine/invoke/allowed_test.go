package invoke_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

func TestAllowed(t *testing.T) {
	t.Parallel()
	ran := 0
	exec := open("exec", func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Text("ran"), nil })
	var log bytes.Buffer
	x := invoke.New(invoke.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	s := scope(read(), exec, &fake{spec: tool.Spec{Name: "nodes", OwnerOnly: true}})
	s.Policy = policy.Catalog{}.Pipeline(policy.Config{Rules: policy.Rules{Deny: []string{"exec"}}}, policy.Config{},
		"agents.entries.main", policy.Conversation{})

	t.Run("TP-12 a tool that a rule removed is refused when it is called", func(t *testing.T) {
		v := x.For(s)
		for _, sp := range v.Specs(false) {
			if sp.Name == "exec" {
				t.Error("exec is listed")
			}
		}
		failed(t, do(t, v, call("exec", "{}")), "the configuration does not allow this tool here")
		if ran != 0 {
			t.Error("exec ran")
		}
		if !strings.Contains(log.String(), `rule="policy global tools"`) {
			t.Errorf("log:\n%s", log.String())
		}
	})
	t.Run("TP-11 what a rule removed is logged once, with its key", func(t *testing.T) {
		x.For(s)
		if n := strings.Count(log.String(), `msg="tools not allowed" agent=main rule=global key=tools tools=exec`); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
	})
	t.Run("TC-13 a tool for the owner is not available to others", func(t *testing.T) {
		s := s
		s.Principal = chela.Principal{ID: "irc:main:7", Scopes: []chela.Scope{chela.ScopeWrite}}
		failed(t, do(t, x.For(s), call("nodes", "{}")), "only the owner")
		if !strings.Contains(log.String(), "rule=owner key=\"\" tools=nodes") {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

// TestSpecs requests the specs of tools that each differ in one field from the
// previous ones, and checks that the cache does not change the result.
func TestSpecs(t *testing.T) {
	t.Parallel()
	x := invoke.New(invoke.Options{})
	spec := read().spec
	for _, change := range []func(){
		func() {},
		func() { spec.Label = "not for the model" },
		func() { spec.Description = "Reads something else." },
		func() { spec.Schema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"array"}}}`) },
		func() { spec.Name = "look" },
		func() { spec.Schema = json.RawMessage(`{"type":7}`) },
	} {
		change()
		s := scope(&fake{spec: spec})
		for range 2 {
			if diff := cmp.Diff(invoke.New(invoke.Options{}).For(s).Specs(false), x.For(s).Specs(false)); diff != "" {
				t.Errorf("-new executor +this one:\n%s", diff)
			}
		}
	}
}

// TestNames tests the names of tools.
func TestNames(t *testing.T) {
	t.Parallel()
	planned := &planner{fake: fake{spec: tool.Spec{Name: "MyPlanner"}},
		plan: func() (tool.Plan, error) { return tool.Plan{Deny: "never"}, nil }}
	named := func(name, description string) *fake {
		return &fake{spec: tool.Spec{Name: name, Description: description}}
	}
	late := named("exec", "the later one")
	s := scope(named("exec", "the first one"), named("bad name!", ""), named("MyTool", "mine"), late, planned)
	v := invoke.New(invoke.Options{}).For(s)
	t.Run("TC-14 the later of two tools with one name is used", func(t *testing.T) {
		var got []string
		for _, sp := range v.Specs(false) {
			if sp.Name == "exec" {
				got = append(got, sp.Description)
			}
		}
		if !slices.Equal(got, []string{"the later one"}) {
			t.Errorf("listed %q", got)
		}
		do(t, v, call("exec", "{}"))
		if len(late.args) != 1 {
			t.Error("the other tool was called")
		}
	})
	t.Run("TC-17 names are folded, and invalid ones are omitted", func(t *testing.T) {
		if got := s.Tools.Names(); !slices.Equal(got, []string{"exec", "myplanner", "mytool"}) {
			t.Errorf("listed %q", got)
		}
		for _, name := range []string{"mytool", "MyTool", "my-tool"} {
			if r := do(t, v, call(name, "{}")); r.IsError {
				t.Errorf("%s: %s", name, text(r))
			}
		}
		failed(t, do(t, v, call("myplanner", "{}")), "never")
		want := []string{
			`tool "bad name!" is omitted: a name has at most 64 letters, digits, dashes and underscores`,
			"tool exec is defined twice: the later definition is used",
		}
		if got := s.Tools.Notes(); !slices.Equal(got, want) {
			t.Errorf("notes %q, want %q", got, want)
		}
	})
}
