package pairing_test

import (
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
)

// TestScopeSet uses sets of which one covers the other and not the reverse, so
// that exchanging holder and request fails.
func TestScopeSet(t *testing.T) {
	t.Parallel()
	type scopes = []chela.Scope
	for _, tt := range []struct {
		name            string
		held, want      scopes
		covers, covered bool   // held covers want; want covers held
		filtered        scopes // want, filtered by held
	}{
		{"a subset", scopes{chela.ScopeRead, chela.ScopePairing}, scopes{chela.ScopeRead}, true, false,
			scopes{chela.ScopeRead}},
		{"write covers read", scopes{chela.ScopeWrite}, scopes{chela.ScopeRead}, true, false, scopes{chela.ScopeRead}},
		{"admin covers all", scopes{chela.ScopeAdmin}, scopes{chela.ScopePairing, chela.ScopeWrite}, true, false,
			scopes{chela.ScopePairing, chela.ScopeWrite}},
		{"nothing is requested", scopes{chela.ScopeRead}, nil, true, false, scopes{}},
		{"no overlap", scopes{chela.ScopePairing}, scopes{chela.ScopeApprovals}, false, false, scopes{}},
		{"a partial overlap", scopes{chela.ScopePairing, chela.ScopeWrite}, scopes{chela.ScopeAdmin, chela.ScopeRead}, false,
			true, scopes{chela.ScopeRead}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			held, want := pairing.ScopeSet(tt.held), pairing.ScopeSet(tt.want)
			if got := held.Covers(tt.want); got != tt.covers {
				t.Errorf("%v covers %v = %v, want %v", tt.held, tt.want, got, tt.covers)
			}
			if got := want.Covers(tt.held); got != tt.covered {
				t.Errorf("%v covers %v = %v, want %v", tt.want, tt.held, got, tt.covered)
			}
			if got := held.Filter(tt.want); !slices.Equal(got, tt.filtered) {
				t.Errorf("%v filtered by %v = %v, want %v", tt.want, tt.held, got, tt.filtered)
			}
		})
	}
}
