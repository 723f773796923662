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

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/tool"
)

func TestOffered(t *testing.T) {
	t.Parallel()
	ran := 0
	exec := open("exec", func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Text("ran"), nil })
	var log bytes.Buffer
	door := invoke.New(invoke.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	s := scope(read(), exec, &fake{spec: tool.Spec{Name: "nodes", OwnerOnly: true}})
	s.Policy = policy.New(policy.Config{Rules: policy.Rules{Deny: []string{"exec"}}}, policy.Config{}, "agents.entries.main", policy.Conversation{})

	t.Run("TP-12 a tool that a rule removed is refused when it is called", func(t *testing.T) {
		v := door.For(s)
		for _, sp := range v.Specs(false) {
			if sp.Name == "exec" {
				t.Error("exec is offered")
			}
		}
		failed(t, do(t, v, call("exec", "{}")), "the configuration does not offer this tool here")
		if ran != 0 {
			t.Error("exec ran")
		}
		if !strings.Contains(log.String(), `rule="policy global tools"`) {
			t.Errorf("audit:\n%s", log.String())
		}
	})
	t.Run("TP-11 what a rule removed is logged once, with its key", func(t *testing.T) {
		door.For(s)
		if n := strings.Count(log.String(), `msg="tools not offered" agent=main rule=global key=tools tools=exec`); n != 1 {
			t.Errorf("logged %d times:\n%s", n, log.String())
		}
	})
	t.Run("TC-13 a tool of the owner's is not offered to another", func(t *testing.T) {
		s := s
		s.Principal = chela.Principal{ID: "irc:main:7", Scopes: []chela.Scope{chela.ScopeWrite}}
		failed(t, do(t, door.For(s), call("nodes", "{}")), "only the owner")
		if !strings.Contains(log.String(), "rule=owner key=\"\" tools=nodes") {
			t.Errorf("log:\n%s", log.String())
		}
	})
}

// TestTold has one door tell of tools that differ in one thing from those
// before: what it keeps must not show.
func TestTold(t *testing.T) {
	t.Parallel()
	door := invoke.New(invoke.Options{})
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
			if diff := cmp.Diff(invoke.New(invoke.Options{}).For(s).Specs(false), door.For(s).Specs(false)); diff != "" {
				t.Errorf("-a new door +this one:\n%s", diff)
			}
		}
	}
}

// TestNames is the names under which tools are offered.
func TestNames(t *testing.T) {
	t.Parallel()
	planned := &planner{fake: fake{spec: tool.Spec{Name: "MyPlanner"}}, plan: func() (tool.Plan, error) { return tool.Plan{Deny: "never"}, nil }}
	named := func(name, description string) *fake {
		return &fake{spec: tool.Spec{Name: name, Description: description}}
	}
	late := named("exec", "the later one")
	s := scope(named("exec", "the first one"), named("bad name!", ""), named("MyTool", "mine"), late, planned)
	v := invoke.New(invoke.Options{}).For(s)
	t.Run("TC-14 of two tools of one name the later one is offered, once", func(t *testing.T) {
		var got []string
		for _, sp := range v.Specs(false) {
			if sp.Name == "exec" {
				got = append(got, sp.Description)
			}
		}
		if !slices.Equal(got, []string{"the later one"}) {
			t.Errorf("offered %q", got)
		}
		do(t, v, call("exec", "{}"))
		if len(late.args) != 1 {
			t.Error("another one was called")
		}
	})
	t.Run("TC-17 names are folded, and one that nobody could call is left out", func(t *testing.T) {
		if got := s.Tools.Names(); !slices.Equal(got, []string{"exec", "myplanner", "mytool"}) {
			t.Errorf("offered %q", got)
		}
		for _, name := range []string{"mytool", "MyTool", "my-tool"} {
			if r := do(t, v, call(name, "{}")); r.IsError {
				t.Errorf("%s: %s", name, text(r))
			}
		}
		failed(t, do(t, v, call("myplanner", "{}")), "never")
		want := []string{
			`tool "bad name!" is left out: a name is at most 64 letters, digits, dashes and underscores`,
			"tool exec was there: the later one takes its place",
		}
		if got := s.Tools.Notes(); !slices.Equal(got, want) {
			t.Errorf("notes %q, want %q", got, want)
		}
	})
}
