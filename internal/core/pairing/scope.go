package pairing

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
)

// KnownScopes returns the scopes of the protocol among names, sorted and
// without duplicates.
func KnownScopes(names []string) []chela.Scope {
	scopes := []chela.Scope{}
	for _, n := range names {
		if s := chela.Scope(n); s.Known() {
			scopes = append(scopes, s)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// ScopeSet is a list of scopes that somebody holds. The holder's scopes are
// the receiver of its methods and the requested ones the argument, so that a
// call cannot mix them up unnoticed. A scope can cover others: see
// [chela.Principal.May].
type ScopeSet []chela.Scope

// Covers reports whether the set covers all of want.
func (s ScopeSet) Covers(want []chela.Scope) bool { return len(s.Filter(want)) == len(want) }

// Filter returns the scopes of want that the set covers.
func (s ScopeSet) Filter(want []chela.Scope) []chela.Scope {
	p := chela.Principal{Scopes: s}
	scopes := []chela.Scope{}
	for _, w := range want {
		if p.May(w) {
			scopes = append(scopes, w)
		}
	}
	return scopes
}

// union returns the scopes of a and b, sorted and without duplicates.
func union(a, b []chela.Scope) []chela.Scope {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
