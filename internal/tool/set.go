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
	specs []Spec // of the tools, by name: a run asks for them again and again
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
	specs := make([]Spec, 0, len(m))
	for _, n := range slices.Sorted(maps.Keys(m)) {
		specs = append(specs, m[n].Spec())
	}
	return Set{m, specs}
}

// Exclude returns a set without the named tools; s is unchanged.
func (s Set) Exclude(names ...string) Set {
	return s.Filter(func(sp Spec) bool { return !slices.Contains(names, sp.Name) })
}

// Filter returns a set of the tools that keep allows; s is unchanged.
func (s Set) Filter(keep func(Spec) bool) Set {
	f := Set{tools: make(map[string]Tool, len(s.tools))}
	for _, sp := range s.specs {
		if keep(sp) {
			f.tools[sp.Name] = s.tools[sp.Name]
			f.specs = append(f.specs, sp)
		}
	}
	return f
}

// Get returns the tool of that name.
func (s Set) Get(name string) (Tool, bool) {
	t, ok := s.tools[name]
	return t, ok
}

// Names returns the names, sorted.
func (s Set) Names() []string {
	var names []string
	for _, sp := range s.specs {
		names = append(names, sp.Name)
	}
	return names
}

// Specs returns what the tools say of themselves, by name. Nobody changes it.
func (s Set) Specs() []Spec { return s.specs }

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
