package shell

import (
	"slices"
	"strings"
)

// Known reports whether a segment of a plan is in the table, or is a form
// that runs only commands that have their own segments.
func Known(p Plan, s Segment) bool {
	for _, a := range s.Argv {
		if !a.Literal {
			if name, _, ok := strings.Cut(a.Text, "="); ok && !strings.ContainsAny(name, " $`(") {
				continue // an assignment
			}
			// a test, a definition, a declaration
			return strings.HasPrefix(a.Text, "[[") || strings.HasPrefix(a.Text, "((") || strings.ContainsAny(a.Text, "({") ||
				slices.Contains([]string{"export", "local", "readonly", "declare", "typeset"}, strings.Fields(a.Text)[0])
		}
		base := program(a.Text)
		_, ok := ruleOf(base)
		wr, wraps := wrapperOf(base)
		return ok || wraps && wr.plain || base == "eval" || base == "xargs" || base == "dash" || base == "ash" || defined(p, a.Text)
	}
	return true
}

// defined reports whether the plan defines a function with that name.
func defined(p Plan, name string) bool {
	return slices.ContainsFunc(p.Segments, func(s Segment) bool {
		return len(s.Argv) == 1 && !s.Argv[0].Literal && (strings.HasPrefix(s.Argv[0].Text, name+"()") || strings.HasPrefix(s.Argv[0].Text, "function "+name))
	})
}
