package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/spelling"
)

// Set is an immutable set of tools by name. The zero Set is empty.
type Set struct {
	tools map[string]Tool
	specs []Spec            // of the tools, sorted by name; cached because every run reads them
	known []Spec            // see Known
	names map[string]string // other names of the known tools to their names
	notes []string          // see Notes
}

// NewSet returns a set of the tools, as With does.
func NewSet(tools ...Tool) Set { return Set{}.With(tools...) }

// With returns a set that also contains the tools; s is unchanged. Names are
// folded to lower case. A tool replaces an earlier one of the same name. A tool
// whose name model services would refuse is omitted. Notes reports both. Tools of [Off]
// are only known.
func (s Set) With(tools ...Tool) Set {
	m := maps.Clone(s.tools)
	if m == nil {
		m = make(map[string]Tool, len(tools))
	}
	notes := slices.Clip(s.notes)
	known := make(map[string]Spec, len(s.known)+len(tools))
	for _, sp := range s.known {
		known[sp.Name] = sp
	}
	for _, t := range tools {
		given := t.Spec().Name
		name := strings.ToLower(given)
		if o, ok := t.(off); ok {
			if m[name] == nil {
				known[name] = o.Spec()
			}
			continue
		}
		switch {
		case !callable(name):
			notes = append(notes,
				fmt.Sprintf("tool %q is omitted: a name has at most %d letters, digits, dashes and underscores", given, maxName))
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
	for _, sp := range specs {
		known[sp.Name] = sp
	}
	out := Set{tools: m, specs: specs, names: map[string]string{}, notes: notes}
	for _, n := range slices.Sorted(maps.Keys(known)) {
		out.known = append(out.known, known[n])
		for _, other := range known[n].Names {
			out.names[other] = n
		}
	}
	return out
}

// Off returns tools that a set knows but does not contain: the configuration does not
// offer them. Rules may name them.
func Off(tools ...Tool) []Tool {
	out := make([]Tool, len(tools))
	for i, t := range tools {
		out[i] = off{t}
	}
	return out
}

type off struct{ Tool }

// Known returns the specs of the tools, of those that were filtered out, and of those that the
// configuration does not offer, sorted by name. Callers must not modify the slice.
func (s Set) Known() []Spec { return s.known }

// Notes returns messages for the log about tools that were omitted or replaced.
func (s Set) Notes() []string { return s.notes }

// Filter returns the set of the tools for which allow reports true; s is
// unchanged.
func (s Set) Filter(allow func(Spec) bool) Set {
	f := Set{tools: make(map[string]Tool, len(s.tools)), known: s.known, names: s.names}
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

// resolve returns the name of the tool with the name, which may be one of its other names, in
// any case.
func (s Set) resolve(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if s.tools[name] == nil {
		return s.names[name]
	}
	return name
}

// Find returns the tool with the name, which may be one of its other names, in any case.
func (s Set) Find(name string) (Tool, bool) { return s.Get(s.resolve(name)) }

// SpecOf returns the spec of the tool that Find returns; nil: there is none. It makes no
// copy, unlike the tool. Callers must not modify it.
func (s Set) SpecOf(name string) *Spec {
	if i, ok := slices.BinarySearchFunc(s.specs, s.resolve(name),
		func(sp Spec, n string) int { return strings.Compare(sp.Name, n) }); ok {
		return &s.specs[i]
	}
	return nil
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

// Role returns the name of the first tool that has the role; "": there is none.
func (s Set) Role(r Role) string {
	for i := range s.specs {
		if s.specs[i].Has(r) {
			return s.specs[i].Name
		}
	}
	return ""
}

// Roles returns the names of the tools that have roles, by role.
func (s Set) Roles() map[Role]string {
	roles := map[Role]string{}
	for i := range s.specs {
		for _, r := range s.specs[i].Roles {
			roles[r] = s.Role(r)
		}
	}
	return roles
}

// Titled returns the call with the title that its tool gives to it.
func (s Set) Titled(c llm.ToolCall) llm.ToolCall {
	if sp := s.SpecOf(c.Name); sp != nil && sp.Title != nil && json.Valid(c.Args) {
		c.Title = sp.Title(c.Args)
	}
	return c
}

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
