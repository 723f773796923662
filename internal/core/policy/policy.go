package policy

import (
	"slices"
	"strings"
)

// Step is one rule of a pipeline.
type Step struct {
	Label   string   // "profile", "global", …
	Key     string   // path in the configuration; "": built in
	Profile string   // profile of the step; "": none
	Allow   []string // if not empty, all other tools are removed
	Deny    []string // takes precedence over Allow
}

// allows reports whether the step allows the tool, and the pattern that
// decided, or "".
func (s Step) allows(name string) (bool, string) {
	if p := match(s.Deny, name); p != "" {
		return false, p
	}
	if len(s.Allow) == 0 {
		return true, ""
	}
	p := match(s.Allow, name)
	if p == "" && name == "apply_patch" { // apply_patch writes files
		p = match(s.Allow, "write")
	}
	return p != "", p
}

// empty reports whether the step removes nothing.
func (s Step) empty() bool { return len(s.Allow) == 0 && len(s.Deny) == 0 }

// Pipeline is the ordered steps of a conversation. The zero Pipeline removes
// nothing.
type Pipeline []Step

// Profile returns the profile in force, or "full".
func (p Pipeline) Profile() string {
	for _, s := range p {
		if s.Profile != "" {
			return s.Profile
		}
	}
	return "full"
}

// Removal is the tools that one step removed.
type Removal struct {
	Label string
	Key   string
	Names []string
}

// Outcome is the result of applying a pipeline to a set of tools.
type Outcome struct {
	Allowed  []string // in the given order
	Removed  []Removal
	Warnings []string // for the author of the configuration
}

// Apply applies the pipeline to the tools. An allow list that contains only
// unknown tools is ignored with a warning, because a misspelled name must not
// remove everything else.
func (p Pipeline) Apply(names []string) Outcome {
	o := Outcome{Allowed: slices.Clone(names)}
	for _, s := range p {
		s, warning := s.withoutUnknown(names)
		if warning != "" {
			o.Warnings = append(o.Warnings, warning)
		}
		r := Removal{Label: s.Label, Key: s.Key}
		o.Allowed = slices.DeleteFunc(o.Allowed, func(n string) bool {
			allow, _ := s.allows(Name(n))
			if !allow {
				r.Names = append(r.Names, n)
			}
			return !allow
		})
		if len(r.Names) > 0 {
			o.Removed = append(o.Removed, r)
		}
	}
	return o
}

// withoutUnknown returns the step without its allow list if that has only
// unknown names, and a warning about unknown names.
func (s Step) withoutUnknown(names []string) (Step, string) {
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

// Decision is the decision of one step about a tool.
type Decision struct {
	Label   string
	Key     string
	Allows  bool
	Pattern string // the pattern that matched; "": none
}

// Explanation tells whether a tool is available and why.
type Explanation struct {
	Name    string
	Allowed bool
	By      string     // label of the step that removed it; "" if available
	Steps   []Decision // up to the step that removed it
}

// Explain returns the decisions about one tool.
func (p Pipeline) Explain(name string, names []string) Explanation {
	name = Name(name)
	e := Explanation{Name: name, Allowed: true}
	for _, s := range p {
		s, _ = s.withoutUnknown(names)
		allow, pattern := s.allows(name)
		e.Steps = append(e.Steps, Decision{s.Label, s.Key, allow, pattern})
		if !allow {
			e.Allowed, e.By = false, s.Label
			break
		}
	}
	return e
}
