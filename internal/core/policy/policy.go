package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/tool"
)

// Step is one rule of a pipeline.
type Step struct {
	Label   string   // "profile", "global", …
	Key     string   // path in the configuration; "": built in
	Profile string   // profile of the step; "": none
	Allow   []string // all other tools are removed; nil: none are
	Deny    []string // takes precedence over Allow
	Also    []string // optional tools of plug-ins that are allowed; removes nothing
	Unknown []string // those of Allow that the catalog does not know
}

// allows reports whether the step allows the tool, and the pattern that
// decided, or "".
func (s Step) allows(t *tool.Spec) (bool, string) {
	if p := matching(s.Deny, t); p != "" {
		return false, p
	}
	if s.Allow == nil {
		return true, ""
	}
	p := matching(s.Allow, t)
	if p == "" && t.With != "" {
		p = match(s.Allow, t.With)
	}
	return p != "", p
}

// matching returns the first pattern that matches the tool or its plug-in, or "".
func matching(patterns []string, t *tool.Spec) string {
	if p := match(patterns, fold(t.Name)); p != "" || t.Plugin == "" {
		return p
	}
	if i := slices.IndexFunc(patterns, func(p string) bool { return isOwner(p, t) }); i >= 0 {
		return patterns[i]
	}
	return ""
}

// isOwner reports whether a pattern stands for the tools of the tool's plug-in.
func isOwner(pattern string, t *tool.Spec) bool { return pattern == t.Plugin || pattern == allPlugins }

// isNamed reports whether the configuration allows the optional tool. What a model
// asks for its subagents does not.
func (p Pipeline) isNamed(t *tool.Spec) bool {
	name := fold(t.Name)
	named := func(pattern string) bool { return pattern == name || isOwner(pattern, t) }
	return slices.ContainsFunc(p, func(s Step) bool {
		return s.Key != "" && slices.ContainsFunc(s.Allow, named) || slices.ContainsFunc(s.Also, named)
	})
}

// optional returns the step that removes the optional tools that no step allows.
func (p Pipeline) optional(tools []tool.Spec) Step {
	s := Step{Label: "optional", Key: "tools.alsoAllow"}
	for i := range tools {
		if t := &tools[i]; t.Optional && !p.isNamed(t) {
			s.Deny = append(s.Deny, fold(t.Name))
		}
	}
	return s
}

// empty reports whether the step has no effect.
func (s Step) empty() bool { return s.Allow == nil && len(s.Deny) == 0 && len(s.Also) == 0 }

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
func (p Pipeline) Apply(tools []tool.Spec) Outcome {
	o := Outcome{}
	left := make([]*tool.Spec, len(tools))
	for i := range tools {
		left[i] = &tools[i]
	}
	for _, s := range p.complete(tools) {
		s, warning := s.withoutUnknown(tools)
		if warning != "" {
			o.Warnings = append(o.Warnings, warning)
		}
		r := Removal{Label: s.Label, Key: s.Key}
		left = slices.DeleteFunc(left, func(t *tool.Spec) bool {
			allow, _ := s.allows(t)
			if !allow {
				r.Names = append(r.Names, t.Name)
			}
			return !allow
		})
		if len(r.Names) > 0 {
			o.Removed = append(o.Removed, r)
		}
	}
	for _, t := range left {
		o.Allowed = append(o.Allowed, t.Name)
	}
	return o
}

// complete returns the steps with the one about optional tools, if it has an effect.
func (p Pipeline) complete(tools []tool.Spec) Pipeline {
	if s := p.optional(tools); !s.empty() {
		return append(slices.Clip(p), s)
	}
	return p
}

// withoutUnknown returns the step without its allow list if that has only
// unknown names, and a warning about unknown names.
func (s Step) withoutUnknown(tools []tool.Spec) (Step, string) {
	var unknown []string
	for _, p := range s.Unknown {
		if !slices.ContainsFunc(tools, func(t tool.Spec) bool { return matching([]string{p}, &t) != "" }) {
			unknown = append(unknown, p)
		}
	}
	if len(unknown) == 0 {
		return s, ""
	}
	text := cmp.Or(s.Key, s.Label) + ": no tool is named " + strings.Join(unknown, ", ")
	if len(unknown) == len(s.Allow) && s.Profile == "" {
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

// Explain returns the decisions about one of the tools.
func (p Pipeline) Explain(name string, tools []tool.Spec) Explanation {
	name = fold(name)
	t := &tool.Spec{Name: name}
	if i := slices.IndexFunc(tools,
		func(other tool.Spec) bool { return fold(other.Name) == name || slices.Contains(other.Names, name) }); i >= 0 {
		t = &tools[i]
	}
	e := Explanation{Name: fold(t.Name), Allowed: true}
	for _, s := range p.complete(tools) {
		s, _ = s.withoutUnknown(tools)
		allow, pattern := s.allows(t)
		e.Steps = append(e.Steps, Decision{s.Label, s.Key, allow, pattern})
		if !allow {
			e.Allowed, e.By = false, s.Label
			break
		}
	}
	return e
}
