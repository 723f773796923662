package pairing_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/wire"
)

// TestClaimToken checks which approvals let a connected device claim a token: those
// that cover everything the token gives.
func TestClaimToken(t *testing.T) {
	t.Parallel()
	self := chela.Principal{ID: "owner", Credential: pairing.Credential("d"), Scopes: []chela.Scope{chela.ScopeRead}}
	asking := func(scopes ...chela.Scope) pairing.Identity {
		return pairing.Identity{ID: "d", Key: "k", Role: wire.RoleOperator, Scopes: scopes}
	}
	all := pairing.Proof{Authority: []chela.Scope{chela.ScopeAdmin}}
	here := pairing.Proof{Local: true, Authority: all.Authority}
	for _, tt := range []struct {
		name string
		ask  func(pairing.Table) (pairing.Request, error)
		then func(pairing.Table) error
		want bool
	}{
		{"requested over the connection", func(tb pairing.Table) (pairing.Request, error) {
			r, _, err := pairing.Widen(tb, self, []chela.Scope{chela.ScopeWrite}, now)
			return r, err
		}, nil, true},
		{"widened after the approval", func(tb pairing.Table) (pairing.Request, error) {
			r, _, err := pairing.Widen(tb, self, []chela.Scope{chela.ScopeWrite}, now)
			return r, err
		}, func(tb pairing.Table) error {
			_, err := pairing.Admit(tb, asking(chela.ScopeAdmin), here, now)
			return err
		}, false},
		{"requested part of the grant while connecting", func(tb pairing.Table) (pairing.Request, error) {
			a, err := pairing.Admit(tb, asking(chela.ScopeWrite), all, now)
			return *a.Requested, err
		}, nil, false},
		{"requested the whole grant while connecting", func(tb pairing.Table) (pairing.Request, error) {
			a, err := pairing.Admit(tb, asking(chela.ScopeAdmin), all, now)
			return *a.Requested, err
		}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tb := &memory{devices: map[string]pairing.Device{}, requests: map[string]pairing.Request{}}
			if _, err := pairing.Admit(tb, asking(chela.ScopePairing, chela.ScopeRead), here, now); err != nil {
				t.Fatal(err)
			}
			r, err := tt.ask(tb)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := pairing.Approve(tb, chela.Owner("socket"), r.ID, now); err != nil {
				t.Fatal(err)
			}
			if tt.then != nil {
				if err := tt.then(tb); err != nil {
					t.Fatal(err)
				}
			}
			c, err := pairing.ClaimToken(tb, self, r.ID, now.Add(pairing.Lifetime-time.Second))
			if !tt.want {
				if !errors.Is(err, chela.ErrNotFound) || c.Token != "" {
					t.Errorf("claimed: %v %v, want %v", c.Scopes, err, chela.ErrNotFound)
				}
				return
			}
			if err != nil || !slices.Equal(c.Scopes, tb.devices["d"].Scopes()) {
				t.Errorf("claimed: %v %v", c.Scopes, err)
			}
		})
	}
}
