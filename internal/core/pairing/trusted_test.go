package pairing_test

import (
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/wire"
)

func TestTrustedNetwork(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	trusted := pairing.Proof{Trusted: true, Authority: []chela.Scope{chela.ScopeAdmin}}
	for _, tt := range []struct {
		name  string
		id    pairing.Identity
		proof pairing.Proof
		in    bool
	}{
		{"a new node", client("a", wire.RoleNode), trusted, true},
		{"a new node of another network", client("a", wire.RoleNode), pairing.Proof{Authority: trusted.Authority}, false},
		{"a node that asks for scopes", client("a", wire.RoleNode, chela.ScopeRead), trusted, false},
		{"ND-12 an operator", client("a", wire.RoleOperator), trusted, false},
		{"ND-12 an operator with scopes", client("a", wire.RoleOperator, chela.ScopeRead), trusted, false},
	} {
		a, err := pairing.Admit(newTable(), tt.id, tt.proof, now)
		if err != nil || (a.Refusal == nil) != tt.in {
			t.Errorf("%s: %+v, %v", tt.name, a.Refusal, err)
		}
	}
	m := newTable()
	if a, err := pairing.Admit(m, client("a", wire.RoleNode), trusted, now); err != nil || a.Refusal != nil {
		t.Fatal(a.Refusal, err)
	}
	if _, err := pairing.RemoveNode(m, admin, "a", now); err != nil {
		t.Fatal(err)
	}
	if a, err := pairing.Admit(m, client("a", wire.RoleNode), trusted, now); err != nil || a.Refusal == nil {
		t.Errorf("a node that a person removed comes back by itself: %v", err)
	}
}
