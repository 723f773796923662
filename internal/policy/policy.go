package policy

import (
	"slices"
	"strings"
)

// Step is one rule of a pipeline.
type Step struct {
	Label   string   // "profile", "global", …
	Key     string   // of the configuration that says so; "": built in
	Profile string   // the profile that it stands for; "": none
	Allow   []string // when there are any, everything else is removed
	Deny    []string // removed, also when it is allowed
}

// keeps reports whether the step keeps the tool, and because of which pattern;
// "" when it says nothing of it.
func (s Step) keeps(name string) (bool, string) {
	if p := match(s.Deny, name); p != "" {
		return false, p
	}
	if len(s.Allow) == 0 {
		return true, ""
	}
	p := match(s.Allow, name)
	if p == "" && name == "apply_patch" { // a patch writes
		p = match(s.Allow, "write")
	}
	return p != "", p
}

// empty reports whether the step removes nothing.
func (s Step) empty() bool { return len(s.Allow) == 0 && len(s.Deny) == 0 }

// Pipeline is the steps that hold for a conversation, in order. The zero
// Pipeline removes nothing.
type Pipeline []Step

// Profile returns the name of the profile that holds; "full" when none does.
func (p Pipeline) Profile() string {
	for _, s := range p {
		if s.Profile != "" {
			return s.Profile
		}
	}
	return "full"
}

// Removal is what one step removed.
type Removal struct {
	Label string
	Key   string
	Names []string
}

// Outcome is what a pipeline left of a set of tools.
type Outcome struct {
	Kept     []string // in the order given
	Removed  []Removal
	Warnings []string // for the person who wrote the configuration
}

// Apply returns what the pipeline leaves of the tools. A list that allows only
// names of tools that are not known is left out with a warning: a mistyped
// name must not take everything else away.
func (p Pipeline) Apply(names []string) Outcome {
	o := Outcome{Kept: slices.Clone(names)}
	for _, s := range p {
		s, warning := s.sensible(names)
		if warning != "" {
			o.Warnings = append(o.Warnings, warning)
		}
		r := Removal{Label: s.Label, Key: s.Key}
		o.Kept = slices.DeleteFunc(o.Kept, func(n string) bool {
			keep, _ := s.keeps(Name(n))
			if !keep {
				r.Names = append(r.Names, n)
			}
			return !keep
		})
		if len(r.Names) > 0 {
			o.Removed = append(o.Removed, r)
		}
	}
	return o
}

// sensible returns the step without a list of nothing but unknown names, and
// what is to be said about it.
func (s Step) sensible(names []string) (Step, string) {
	var unknown []string
	for _, p := range s.Allow {
		if !known(p) && !slices.ContainsFunc(names, func(n string) bool { return match([]string{p}, Name(n)) != "" }) {
			unknown = append(unknown, p)
		}
	}
	if len(unknown) == 0 {
		return s, ""
	}
	text := s.Key + ": no tool is named " + strings.Join(unknown, ", ")
	if len(unknown) == len(s.Allow) {
		s.Allow = nil
		text += "; the list is left out"
	}
	return s, text
}

// Decision is what one step says of a tool.
type Decision struct {
	Label   string
	Key     string
	Keeps   bool
	Pattern string // that matched; "": none did
}

// Explanation says whether a tool is offered, and why.
type Explanation struct {
	Name    string
	Offered bool
	By      string     // label of the step that removed it; "" when it is offered
	Steps   []Decision // up to the one that removed it
}

// Explain says what becomes of one of the tools.
func (p Pipeline) Explain(name string, names []string) Explanation {
	name = Name(name)
	e := Explanation{Name: name, Offered: true}
	for _, s := range p {
		s, _ = s.sensible(names)
		keep, pattern := s.keeps(name)
		e.Steps = append(e.Steps, Decision{s.Label, s.Key, keep, pattern})
		if !keep {
			e.Offered, e.By = false, s.Label
			break
		}
	}
	return e
}
