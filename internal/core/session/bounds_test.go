package session

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

// names reports whether patterns contain the name or "*".
func names(patterns []string, name string) bool {
	return slices.Contains(patterns, name) || slices.Contains(patterns, "*")
}

func TestPermitted(t *testing.T) {
	t.Parallel()
	allow := func(s ...string) run.Tools { return run.Tools{Allow: s} }
	deny := func(s ...string) run.Tools { return run.Tools{Deny: s} }
	for _, c := range []struct {
		name    string
		granted []string
		bounds  []run.Tools
		tools   run.Tools
		want    []string
	}{
		{"no limits", []string{"read", "exec"}, nil, run.Tools{}, []string{"read", "exec"}},
		{"no granted tools", nil, []run.Tools{allow("exec")}, allow("exec"), nil},
		{"bounds do not add a tool", []string{"read"}, []run.Tools{allow("read", "exec")}, run.Tools{}, []string{"read"}},
		{"overrides do not add a tool", []string{"read"}, nil, allow("*"), []string{"read"}},
		{"overrides do not widen bounds", []string{"read", "exec"}, []run.Tools{deny("exec")},
			allow("exec", "read"), []string{"read"}},
		{"every element of the bounds applies", []string{"read", "write", "exec"},
			[]run.Tools{allow("read", "write"), allow("read", "exec")}, run.Tools{}, []string{"read"}},
		{"deny takes precedence", []string{"read", "exec"}, []run.Tools{{Allow: []string{"*"}, Deny: []string{"exec"}}},
			run.Tools{}, []string{"read"}},
		{"bounds of a withdrawn tool", []string{"read"}, []run.Tools{allow("exec")}, run.Tools{}, nil},
		{"overrides narrow", []string{"read", "exec"}, nil, deny("read"), []string{"exec"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Permitted(c.granted, Bounds{Tools: c.bounds}, run.Overrides{Tools: c.tools}, names)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPermittedNeverWidens(t *testing.T) {
	t.Parallel()
	all := []string{"read", "write", "exec", "web", "*"}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		some := func() []string {
			return slices.DeleteFunc(slices.Clone(all), func(string) bool { return r.IntN(2) == 0 })
		}
		granted := some()
		b := Bounds{Tools: []run.Tools{{Allow: some(), Deny: some()}}}
		o := run.Overrides{Tools: run.Tools{Allow: some(), Deny: some()}}
		parent := Permitted(granted, b, run.Overrides{}, names)
		child := Permitted(granted, b.Narrow("parent", run.Tools{Allow: some(), Deny: some()}), o, names)
		for _, name := range child {
			if !slices.Contains(parent, name) || !slices.Contains(granted, name) {
				t.Fatalf("seed %d: the child may use %s, its parent may use %v of %v", seed, name, parent, granted)
			}
		}
	}
}

func TestNarrow(t *testing.T) {
	t.Parallel()
	parent := Bounds{Tools: []run.Tools{{Deny: []string{"exec"}}}, Lane: "subagent", Sandbox: "all", Depth: 1}
	child := parent.Narrow("agent:main:main", run.Tools{Allow: []string{"read"}})
	want := Bounds{
		Tools: []run.Tools{{Deny: []string{"exec"}}, {Allow: []string{"read"}}},
		Lane:  "subagent", Sandbox: "all", SpawnedBy: "agent:main:main", Depth: 2,
	}
	if diff := cmp.Diff(want, child); diff != "" {
		t.Errorf("bounds (-want +got):\n%s", diff)
	}
	if len(parent.Tools) != 1 {
		t.Error("the parent's bounds changed")
	}
	child.Tools = slices.Grow(child.Tools, 4)
	first := child.Narrow("a", run.Tools{Deny: []string{"web"}})
	child.Narrow("b", run.Tools{Deny: []string{"write"}})
	if n := len(first.Tools); n != 3 || first.Tools[2].Deny[0] != "web" {
		t.Errorf("the bounds of one child were changed by those of another: %v", first.Tools)
	}
	if same := parent.Narrow("c", run.Tools{}); len(same.Tools) != 1 {
		t.Errorf("tools without a limit were added: %v", same.Tools)
	}
}

func TestIsChild(t *testing.T) {
	t.Parallel()
	child := chela.MainSession("main").Child("main", "1")
	for _, c := range [...]struct {
		name string
		m    Meta
		want bool
	}{
		{"the main session", Meta{Key: chela.MainSession("main")}, false},
		{"bounds without a key that says so",
			Meta{Key: "agent:main:other", Bounds: Bounds{}.Narrow("agent:main:main", run.Tools{})}, true},
		{"old bounds, without a depth", Meta{Key: "agent:main:other", Bounds: Bounds{SpawnedBy: "agent:main:main"}}, true},
		{"a key, without bounds", Meta{Key: child}, true},
	} {
		if got := c.m.IsChild(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, c := range [...]struct {
		agent chela.AgentID
		want  chela.SessionKey
		depth int
	}{
		{"main", "agent:main:subagent:1:subagent:2", 2}, // below its parent
		{"work", "agent:work:subagent:2", 1},            // keys of other agents do not name it
	} {
		if got := child.Child(c.agent, "2"); child != "agent:main:subagent:1" || got != c.want || got.Depth() != c.depth {
			t.Errorf("the child of %s for %s: %s at depth %d, want %s at %d", child, c.agent, got, got.Depth(), c.want, c.depth)
		}
	}
}
