package tool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/spelling"
)

// Set is an immutable set of tools by name. The zero Set is empty.
type Set struct {
	tools map[string]Tool
	specs []Spec // of the tools, by name: a run asks for them again and again
	notes []string
}

// NewSet returns a set of the tools, as With does.
func NewSet(tools ...Tool) Set { return Set{}.With(tools...) }

// With returns a set that also has the tools; s is unchanged. Names are folded
// to lower case. A later tool of the same name replaces an earlier one, and one
// whose name no model could call is left out: Notes says so.
func (s Set) With(tools ...Tool) Set {
	m := maps.Clone(s.tools)
	if m == nil {
		m = make(map[string]Tool, len(tools))
	}
	notes := slices.Clip(s.notes)
	for _, t := range tools {
		said := t.Spec().Name
		name := strings.ToLower(said)
		switch {
		case !callable(name):
			notes = append(notes, fmt.Sprintf("tool %q is left out: a name is at most %d letters, digits, dashes and underscores", said, maxName))
			continue
		case m[name] != nil:
			notes = append(notes, fmt.Sprintf("tool %s was there: the later one takes its place", name))
		}
		if name != said {
			t = rename(t, name)
		}
		m[name] = t
	}
	specs := make([]Spec, 0, len(m))
	for _, n := range slices.Sorted(maps.Keys(m)) {
		specs = append(specs, m[n].Spec())
	}
	return Set{m, specs, notes}
}

// Notes returns what there is to be said about how the set was made, for the
// log.
func (s Set) Notes() []string { return s.notes }

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
