package shell

import (
	"slices"
	"strings"
)

// Known reports whether a segment is one of the table, or a form that runs
// only what has segments of its own.
func Known(s Segment) bool {
	for _, a := range s.Argv {
		if name, _, ok := strings.Cut(a.Text, "="); ok && !a.Literal && !strings.ContainsAny(name, " $`(") {
			continue // an assignment
		}
		if !a.Literal { // a definition, a test, a declaration
			return strings.ContainsAny(a.Text, "({[ ") || slices.Contains([]string{"export", "local", "readonly", "declare", "typeset"}, a.Text)
		}
		base := program(a.Text)
		_, ok := ruleOf(base)
		wr, wraps := wrapperOf(base)
		return ok || wraps && wr.plain || base == "eval" || base == "xargs" || ownName(s)
	}
	return true
}

// ownName allows the name of a function, which was judged by its body.
func ownName(s Segment) bool { return s.Argv[0].Literal }
