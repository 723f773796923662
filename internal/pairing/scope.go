package pairing

import (
	"slices"

	"github.com/chela-ai/chela/internal/chela"
)

// Scopes returns the scopes of the protocol among names, sorted, each once.
func Scopes(names []string) []chela.Scope {
	scopes := []chela.Scope{}
	for _, n := range names {
		if s := chela.Scope(n); s.Known() {
			scopes = append(scopes, s)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// Within reports whether have covers all of want.
func Within(have, want []chela.Scope) bool { return len(Cut(have, want)) == len(want) }

// Cut returns those of want that have covers.
func Cut(have, want []chela.Scope) []chela.Scope {
	p := chela.Principal{Scopes: have}
	scopes := []chela.Scope{}
	for _, s := range want {
		if p.May(s) {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// Meet returns what both cover.
func Meet(a, b []chela.Scope) []chela.Scope { return join(Cut(a, b), Cut(b, a)) }

// join returns the scopes of both.
func join(a, b []chela.Scope) []chela.Scope {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
