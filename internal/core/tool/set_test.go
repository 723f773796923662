package tool_test

import (
	"context"
	"slices"
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
	if _, ok := s.Get("missing"); ok {
		t.Error("Get found a tool that does not exist")
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	s := tool.NewSet(named{Name: "read"}, named{Name: "write"}, named{Name: "exec"}, named{Name: "web_search"}, named{Name: "session_status"})
	for name, want := range map[string]string{"raed": "read", "Read_File": "read", "execute": "exec", "search": "web_search", "sesion_status": "session_status"} {
		if got := s.Nearest(name); !slices.Contains(got, want) || got[0] != want {
			t.Errorf("Nearest(%q) = %v, want %s first", name, got, want)
		}
	}
	if got := s.Nearest("zzzzzzzzzzzz"); len(got) != 0 {
		t.Errorf("Nearest of an unrelated name = %v, want none", got)
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	for e, want := range map[tool.Effect]string{tool.Reads: "reads", tool.Writes: "writes", tool.Acts: "acts", -1: "reads", 9: "acts"} {
		if got := e.String(); got != want {
			t.Errorf("Effect(%d) = %q, want %q", int(e), got, want)
		}
	}
}
