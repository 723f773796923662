package tool_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/tool"
)

// named is a tool for tests that only read the spec.
type named tool.Spec

func (n named) Spec() tool.Spec { return tool.Spec(n) }

func (n named) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text(n.Label), nil
}

func TestSet(t *testing.T) {
	t.Parallel()
	s := tool.NewSet(named{Name: "read"}, named{Name: "exec", Label: "old"}, named{Name: "write", Effect: tool.Writes})
	replaced := s.With(named{Name: "exec", Label: "new"})
	for _, tt := range []struct {
		name string
		set  tool.Set
		want []string
	}{
		{"sorted", s, []string{"exec", "read", "write"}},
		{"the zero set", tool.Set{}, nil},
		{"a tool is added to the zero set", tool.Set{}.With(named{Name: "a"}), []string{"a"}},
		{"a later tool replaces", replaced, []string{"exec", "read", "write"}},
		{"filter", s.Filter(func(sp tool.Spec) bool { return sp.Effect == tool.Reads }), []string{"exec", "read"}},
		{"the original is unchanged", s, []string{"exec", "read", "write"}},
	} {
		if diff := cmp.Diff(tt.want, tt.set.Names()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	for set, want := range map[*tool.Set]string{&s: "old", &replaced: "new"} {
		if got, ok := set.Get("exec"); !ok || got.Spec().Label != want {
			t.Errorf("exec is %v, want %s", got, want)
		}
	}
	if got, ok := s.Filter(func(tool.Spec) bool { return true }).Get("write"); !ok || got.Spec().Name != "write" {
		t.Errorf("the filtered set: %v, %v", got, ok)
	}
	if _, ok := s.Get("missing"); ok {
		t.Error("Get found a tool that does not exist")
	}
}

// planned is a tool with a plan.
type planned struct{ named }

func (planned) Plan(context.Context, tool.Call) (tool.Plan, error) {
	return tool.Plan{Hash: "planned"}, nil
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	for name, ok := range map[string]bool{
		"az_09-":   true,
		long:       true,
		"":         false,
		long + "a": false,
		"a b":      false,
		"a.b":      false,
		"a/b":      false,
		"a:b":      false,
		"é":        false,
		"a{":       false,
		"a`":       false,
	} {
		s := tool.NewSet(named{Name: name})
		if got := len(s.Names()) == 1; got != ok || ok != (len(s.Notes()) == 0) {
			t.Errorf("%q: in the set %v, notes %q", name, got, s.Notes())
		}
	}
	s := tool.NewSet(planned{named{Name: "Files_Read", Label: "plans"}}, named{Name: "Other"})
	got, ok := s.Get("files_read")
	if !ok || got.Spec().Name != "files_read" || got.Spec().Label != "plans" || s.Specs()[0].Name != "files_read" {
		t.Errorf("under its folded name: %+v, %v", got, ok)
	}
	if p, ok := got.(tool.Planner); !ok {
		t.Error("its plan is lost")
	} else if plan, err := p.Plan(t.Context(), tool.Call{}); err != nil || plan.Hash != "planned" {
		t.Errorf("plan %+v, %v", plan, err)
	}
	if other, _ := s.Get("other"); other == nil {
		t.Error("no tool other")
	} else if _, ok := other.(tool.Planner); ok {
		t.Error("a tool without a plan got one")
	}
	if notes := s.With(named{Name: "OTHER"}).Notes(); len(notes) != 1 ||
		!strings.Contains(notes[0], "other is defined twice") || len(s.Notes()) != 0 {
		t.Errorf("notes %q, and before %q", notes, s.Notes())
	}
}

func TestDetailed(t *testing.T) {
	t.Parallel()
	if r := tool.Detailed("done", map[string]int{"n": 1}); string(r.Details) != `{"n":1}` || len(r.Content) != 1 ||
		r.Content[0].Text != "done" {
		t.Errorf("%+v", r)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	s := tool.NewSet(named{Name: "read"}, named{Name: "write"}, named{Name: "exec"}, named{Name: "web_search"},
		named{Name: "session_status"})
	for name, want := range map[string]string{
		"raed":          "read",
		"Read_File":     "read",
		"execute":       "exec",
		"search":        "web_search",
		"sesion_status": "session_status",
	} {
		if got := s.Nearest(name); !slices.Contains(got, want) || got[0] != want {
			t.Errorf("Nearest(%q) = %v, want %s first", name, got, want)
		}
	}
	many := tool.NewSet(named{Name: "sessions_list"}, named{Name: "sessions_send"}, named{Name: "sessions_lost"},
		named{Name: "sessions_spawn"}, named{Name: "session_status"})
	if diff := cmp.Diff([]string{"sessions_list", "sessions_lost", "sessions_send"},
		many.Nearest("sessions_list")); diff != "" {
		t.Error(diff)
	}
	if got := s.Nearest("zzzzzzzzzzzz"); len(got) != 0 {
		t.Errorf("Nearest of an unrelated name = %v, want none", got)
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	for e, want := range map[tool.Effect]string{
		tool.Reads:  "reads",
		tool.Writes: "writes",
		tool.Acts:   "acts",
		-1:          "reads",
		9:           "acts",
	} {
		if got := e.String(); got != want {
			t.Errorf("Effect(%d) = %q, want %q", int(e), got, want)
		}
	}
}

// A set knows tools that it does not contain, and tools by their other names.
func TestKnown(t *testing.T) {
	t.Parallel()
	run := named{Name: "exec", Names: []string{"bash"}, Roles: []tool.Role{tool.RunsCommands}}
	s := tool.NewSet(append(tool.Off(named{Name: "image"}, named{Name: "plan", Roles: []tool.Role{tool.KeepsPlan}}), run,
		named{Name: "read"})...)
	names := func(list []tool.Spec) (out []string) {
		for _, sp := range list {
			out = append(out, sp.Name)
		}
		return out
	}
	few := s.Filter(func(sp tool.Spec) bool { return sp.Name == "read" })
	for what, got := range map[string][]string{
		"exec read":              s.Names(),
		"exec image plan read":   names(s.Known()),
		"read":                   few.Names(),
		"exec image plan read ":  names(few.Known()),
		"exec image plan read  ": names(s.With(tool.Off(run)...).Known()),

		"exec plan read": s.With(named{Name: "plan"}).Names(),
	} {
		if diff := cmp.Diff(strings.Fields(what), got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	for name, want := range map[string]string{"exec": "exec", " Bash ": "exec", "image": "", "shell": ""} {
		got, found := s.Find(name)
		sp := s.SpecOf(name)
		if found != (want != "") || found && got.Spec().Name != want || (sp != nil) != found || found && sp.Name != want {
			t.Errorf("%q is %v, with spec %v", name, got, sp)
		}
	}
	if few.SpecOf("bash") != nil {
		t.Error("a tool that was filtered out is found by its other name")
	}
	if s.Role(tool.RunsCommands) != "exec" || s.Role(tool.KeepsPlan) != "" || len(s.Roles()) != 1 ||
		s.Roles()[tool.RunsCommands] != "exec" {
		t.Errorf("roles %v", s.Roles())
	}
}
