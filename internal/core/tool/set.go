package tool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/spelling"
)

// Set is an immutable set of tools by name. The zero Set is empty.
type Set struct {
	tools map[string]Tool
	specs []Spec   // of the tools, sorted by name; cached because every run reads them
	notes []string // see Notes
}

// NewSet returns a set of the tools, as With does.
func NewSet(tools ...Tool) Set { return Set{}.With(tools...) }

// With returns a set that also contains the tools; s is unchanged. Names are
// folded to lower case. A tool replaces an earlier one of the same name. A tool
// whose name model services would refuse is omitted. Notes reports both.
func (s Set) With(tools ...Tool) Set {
	m := maps.Clone(s.tools)
	if m == nil {
		m = make(map[string]Tool, len(tools))
	}
	notes := slices.Clip(s.notes)
	for _, t := range tools {
		given := t.Spec().Name
		name := strings.ToLower(given)
		switch {
		case !callable(name):
			notes = append(notes, fmt.Sprintf("tool %q is omitted: a name has at most %d letters, digits, dashes and underscores", given, maxName))
			continue
		case m[name] != nil:
			notes = append(notes, fmt.Sprintf("tool %s is defined twice: the later definition is used", name))
		}
		if name != given {
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

// Notes returns messages for the log about tools that were omitted or replaced.
func (s Set) Notes() []string { return s.notes }

// Filter returns the set of the tools for which allow reports true; s is
// unchanged.
func (s Set) Filter(allow func(Spec) bool) Set {
	f := Set{tools: make(map[string]Tool, len(s.tools))}
	for _, sp := range s.specs {
		if allow(sp) {
			f.tools[sp.Name] = s.tools[sp.Name]
			f.specs = append(f.specs, sp)
		}
	}
	return f
}

// Get returns the tool with the name.
func (s Set) Get(name string) (Tool, bool) {
	t, ok := s.tools[name]
	return t, ok
}

// Names returns the names of the tools, sorted.
func (s Set) Names() []string {
	var names []string
	for _, sp := range s.specs {
		names = append(names, sp.Name)
	}
	return names
}

// Specs returns the specs of the tools, sorted by name. Callers must not modify
// the slice.
func (s Set) Specs() []Spec { return s.specs }

// Nearest returns up to three names of tools that are similar to name, the most
// similar first.
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
