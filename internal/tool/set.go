package tool

import (
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/spelling"
)

// Set is an immutable set of tools by name. The zero Set is empty.
type Set struct {
	tools map[string]Tool
}

// NewSet returns a set of the tools. A later tool of the same name replaces an
// earlier one.
func NewSet(tools ...Tool) Set { return Set{}.With(tools...) }

// With returns a set that also has the tools; s is unchanged.
func (s Set) With(tools ...Tool) Set {
	m := maps.Clone(s.tools)
	if m == nil {
		m = make(map[string]Tool, len(tools))
	}
	for _, t := range tools {
		m[t.Spec().Name] = t
	}
	return Set{m}
}

// Exclude returns a set without the named tools; s is unchanged.
func (s Set) Exclude(names ...string) Set {
	m := maps.Clone(s.tools)
	for _, n := range names {
		delete(m, n)
	}
	return Set{m}
}

// Filter returns a set of the tools that keep allows; s is unchanged.
func (s Set) Filter(keep func(Spec) bool) Set {
	m := make(map[string]Tool, len(s.tools))
	for n, t := range s.tools {
		if keep(t.Spec()) {
			m[n] = t
		}
	}
	return Set{m}
}

// Get returns the tool of that name.
func (s Set) Get(name string) (Tool, bool) {
	t, ok := s.tools[name]
	return t, ok
}

// Names returns the names, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s.tools)) }

// Nearest returns up to three names of the set that are like name, best first.
func (s Set) Nearest(name string) []string {
	type near struct {
		name string
		d    int
	}
	var ns []near
	name = strings.ToLower(name)
	for _, n := range s.Names() {
		d := spelling.Distance(name, n)
		if strings.Contains(n, name) || strings.Contains(name, n) {
			d = min(d, 2)
		}
		if d <= max(2, len(n)/2) {
			ns = append(ns, near{n, d})
		}
	}
	slices.SortStableFunc(ns, func(a, b near) int { return a.d - b.d })
	var out []string
	for _, n := range ns[:min(3, len(ns))] {
		out = append(out, n.name)
	}
	return out
}
