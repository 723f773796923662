package pairing_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/test/chelatest/naughty"
	"github.com/chela-ai/chela/wire"
)

var admin = chela.Owner("token")

func newTable() *memory {
	return &memory{devices: map[string]pairing.Device{}, requests: map[string]pairing.Request{}}
}

func client(id, role string, scopes ...chela.Scope) pairing.Identity {
	return pairing.Identity{
		ID:     id,
		Key:    "k",
		Role:   role,
		Scopes: scopes,
		Client: wire.ClientInfo{ID: "node-host", Mode: wire.ModeNode, Platform: "linux", Family: "Linux"},
	}
}

func TestInvite(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	both := []string{wire.RoleNode, wire.RoleOperator}
	for _, tt := range []struct {
		name   string
		roles  []string
		id     pairing.Identity
		before func(t pairing.Table, token string) // preparation
		after  time.Duration
		want   string // "" if admitted, or the code in the refusal's details
	}{
		{"a node", both, client("a", wire.RoleNode), nil, 0, ""},
		{"an operator", both, client("a", wire.RoleOperator, chela.ScopeRead), nil, 9 * time.Minute, ""},
		{"ND-09 a second use", both, client("a", wire.RoleNode), func(t pairing.Table, token string) {
			accept(t, client("a", wire.RoleNode), token, begin)
		}, 0, pairing.CodeInviteInvalid},
		{"ND-09 a second use by another device", both, client("b", wire.RoleNode), func(t pairing.Table, token string) {
			accept(t, client("a", wire.RoleNode), token, begin)
		}, 0, pairing.CodeInviteInvalid},
		{"ND-09 after ten minutes", both, client("a", wire.RoleNode), nil, pairing.InviteLifetime, pairing.CodeInviteInvalid},
		{"another role", []string{wire.RoleNode}, client("a", wire.RoleOperator), nil, 0, pairing.CodePairingRequired},
		{"more scopes", both, client("a", wire.RoleOperator, chela.ScopeAdmin), nil, 0, pairing.CodePairingRequired},
		{"a removed device", both, client("a", wire.RoleNode), func(t pairing.Table, _ string) {
			admit(t, client("a", wire.RoleNode), begin)
			if _, _, err := pairing.Remove(t, admin, "a", begin); err != nil {
				panic(err)
			}
		}, 0, pairing.CodePairingRequired},
		{"a further role for a paired device", both, client("a", wire.RoleOperator, chela.ScopeRead),
			func(t pairing.Table, _ string) { admit(t, client("a", wire.RoleNode), begin) }, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newTable()
			_, token, err := pairing.NewInvite(m, admin, tt.roles, []chela.Scope{chela.ScopeRead, chela.ScopeWrite}, begin)
			if err != nil {
				t.Fatal(err)
			}
			if tt.before != nil {
				tt.before(m, token)
			}
			a := accept(m, tt.id, token, begin.Add(tt.after))
			if tt.want != "" {
				if a.Refusal == nil || a.Refusal.Detail() != tt.want || a.Access.Device != "" {
					t.Errorf("got %+v, want %s", a, tt.want)
				}
				return
			}
			if a.Refusal != nil || a.Access.Token == "" || len(a.Access.OtherRoles) != 1 ||
				!slices.Equal(a.Access.Scopes, tt.id.Scopes) {
				t.Fatalf("got %+v", a)
			}
			// Both tokens are valid.
			other := client("a", a.Access.OtherRoles[0].Role)
			for _, try := range []struct {
				id    pairing.Identity
				token string
			}{{tt.id, a.Access.Token}, {other, a.Access.OtherRoles[0].Token}} {
				if in, err := pairing.Redeem(m, try.id, try.token, begin); err != nil || in.Refusal != nil {
					t.Errorf("as %s: %+v, %v", try.id.Role, in.Refusal, err)
				}
			}
			i, err := pairing.FindInvite(m, m.invites[0].ID, begin)
			if err != nil || i.Device != "a" || i.Used.IsZero() {
				t.Errorf("the invitation: %+v, %v", i, err)
			}
		})
	}
	if _, _, err := pairing.NewInvite(newTable(), chela.Principal{ID: "x", Scopes: []chela.Scope{chela.ScopePairing,
		chela.ScopeWrite}}, both, nil, begin); chela.CodeOf(err) != chela.CodeForbidden {
		t.Errorf("NewInvite without admin: %v", err)
	}
	if _, _, err := pairing.NewInvite(newTable(), admin, []string{"root"}, nil, begin); chela.CodeOf(err) !=
		chela.CodeInvalid {
		t.Errorf("NewInvite with an unknown role: %v", err)
	}
	if _, err := pairing.FindInvite(newTable(), "x", begin); !errors.Is(err, chela.ErrNotFound) {
		t.Errorf("FindInvite of an unknown id: %v", err)
	}
	many := newTable()
	for i := range 20 {
		_, _, err := pairing.NewInvite(many, admin, both, nil, begin)
		if full := chela.CodeOf(err) == chela.CodeFull; full != (i >= 16) {
			t.Errorf("invitation %d: %v", i, err)
		}
	}
}

// TestMaxDevices pairs as many devices as may be paired, and one more by each way.
func TestMaxDevices(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	table := newTable()
	for i := range pairing.MaxDevices {
		if a := admit(table, client(fmt.Sprint("d", i), wire.RoleOperator, chela.ScopeRead), now); a.Refusal != nil {
			t.Fatalf("device %d: %v", i, a.Refusal)
		}
	}
	if a := admit(table, client("new", wire.RoleOperator, chela.ScopeRead), now); a.Refusal == nil ||
		a.Refusal.Code != wire.Unavailable {
		t.Errorf("one more: %+v", a.Refusal)
	}
	_, token, err := pairing.NewInvite(table, admin, []string{wire.RoleNode}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	if a := accept(table, client("invited", wire.RoleNode), token, now); a.Refusal == nil ||
		a.Refusal.Code != wire.Unavailable {
		t.Errorf("one more with an invitation: %+v", a.Refusal)
	}
	if a := admit(table, client("d0", wire.RoleOperator, chela.ScopeRead), now); a.Refusal != nil {
		t.Errorf("a paired device: %v", a.Refusal)
	}
	if _, _, err := pairing.Remove(table, admin, "d0", now); err != nil {
		t.Fatal(err)
	}
	if a := accept(table, client("invited", wire.RoleNode), token, now); a.Refusal != nil {
		t.Errorf("after a device was removed: %v", a.Refusal)
	}
}

func accept(t pairing.Table, id pairing.Identity, token string, now time.Time) pairing.Admission {
	a, err := pairing.Accept(t, id, token, now)
	if err != nil {
		panic(err)
	}
	return a
}

// admit admits a client on this machine.
func admit(t pairing.Table, id pairing.Identity, now time.Time) pairing.Admission {
	a, err := pairing.Admit(t, id, pairing.Proof{Local: true, Authority: admin.Scopes}, now)
	if err != nil {
		panic(err)
	}
	return a
}

// TestCurrent checks that rights which a principal kept are limited to those of its
// device now, and that they are never widened.
func TestCurrent(t *testing.T) {
	t.Parallel()
	table := newTable()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := admit(table, client("a", wire.RoleOperator, chela.ScopeRead, chela.ScopeWrite), begin)
	admit(table, client("a", wire.RoleNode), begin)
	of := func(scopes ...chela.Scope) chela.Principal {
		return chela.Principal{ID: "owner", Credential: pairing.Credential("a"), Scopes: scopes}
	}
	for _, tt := range []struct{ who, want chela.Principal }{
		{of(chela.ScopeRead), of(chela.ScopeRead)},
		{of(chela.ScopeWrite, chela.ScopeApprovals), of(chela.ScopeWrite)},
		{of(chela.ScopeAdmin), of()},
		{admin, admin}, // without a device
		{chela.Principal{ID: "owner", Credential: pairing.Credential("b"), Scopes: admin.Scopes}, chela.Principal{}},
	} {
		got, err := pairing.Current(table, tt.who)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%+v: %v (-want +got):\n%s", tt.who, err, diff)
		}
	}
	token := a.Access.Token
	later := begin.Add(time.Hour)
	if _, err := pairing.Redeem(table, client("a", wire.RoleOperator, chela.ScopeRead), token, later); err != nil {
		t.Fatal(err)
	}
	if g := table.devices["a"].Grant(wire.RoleOperator); !g.Used.Equal(later) || !g.Created.Equal(begin) {
		t.Errorf("grant %+v", g)
	}
	p, ok, err := pairing.Bearer(table, token)
	if err != nil || !ok || p.Device != "a" || p.Role != wire.RoleOperator || len(p.Scopes) != 2 ||
		pairing.Check(table, p) != nil {
		t.Errorf("the token gives %+v, %v, %v", p, ok, err)
	}
	if _, ok, err := pairing.Bearer(table, "x"); ok || err != nil {
		t.Errorf("another token: %v, %v", ok, err)
	}
	if _, err := pairing.Revoke(table, admin, "a", wire.RoleOperator, later); err != nil { // it is still a node
		t.Fatal(err)
	}
	if got, err := pairing.Current(table, of(chela.ScopeRead)); err != nil || got.ID != "" || len(got.Scopes) > 0 {
		t.Errorf("after the revocation: %+v, %v", got, err)
	}
	if _, ok, err := pairing.Bearer(table, token); ok || err != nil || pairing.Check(table, p) == nil {
		t.Errorf("after the revocation, the token is accepted: %v, %v", ok, err)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	read := []chela.Scope{chela.ScopeRead}
	of := func(platform, family string) pairing.Identity {
		id := client("a", wire.RoleOperator, read...)
		id.Client.Platform, id.Client.Family = platform, family
		return id
	}
	for _, tt := range []struct {
		name  string
		id    pairing.Identity
		local bool
		want  string
	}{
		{"the same", of("linux", "Linux"), false, ""},
		{"different case", of(" LINUX", "linux"), false, ""},
		{"another version", of("Linux 6.1", "Linux"), false, ""},
		{"no client information", of("", ""), false, ""},
		{"another platform", of("macos 15", "Linux"), false, pairing.ReasonMetadata},
		{"another family", of("linux", "iPhone"), false, pairing.ReasonMetadata},
		{"another platform, on this machine", of("macos 15", "Linux"), true, ""},
		{"another role", client("a", wire.RoleNode), false, pairing.ReasonRoleUpgrade},
		{"more scopes", client("a", wire.RoleOperator, chela.ScopeAdmin), false, pairing.ReasonScopeUpgrade},
		{"another device", client("b", wire.RoleOperator), false, pairing.ReasonNotPaired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newTable()
			token := admit(m, of("linux", "Linux"), begin).Access.Token
			a, err := pairing.Admit(m, tt.id, pairing.Proof{Local: tt.local, Authority: admin.Scopes}, begin)
			if err != nil {
				t.Fatal(err)
			}
			if got := reason(a); got != tt.want {
				t.Errorf("with the secret: %q, want %q", got, tt.want)
			}
			if tt.want != pairing.ReasonMetadata {
				return
			}
			if a, err = pairing.Redeem(m, tt.id, token, begin); err != nil || reason(a) != tt.want {
				t.Errorf("with its token: %q, %v", reason(a), err)
			}
			q, d, err := pairing.Approve(m, admin, m.requests["a"].ID, begin)
			if err != nil || !q.Repair || d.Platform != tt.id.Client.Platform || d.Family != tt.id.Client.Family {
				t.Fatalf("approved %+v, %v", d, err)
			}
			if a, err = pairing.Redeem(m, tt.id, token, begin); err != nil || a.Refusal != nil {
				t.Errorf("after the approval: %v, %v", a.Refusal, err)
			}
		})
	}
}

// reason returns the reason of a refusal.
func reason(a pairing.Admission) string {
	if a.Refusal == nil {
		return ""
	}
	var d struct{ Reason string }
	if err := json.Unmarshal(a.Refusal.Details, &d); err != nil {
		return err.Error()
	}
	return d.Reason
}

func TestNodeSurface(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := newTable()
	pass := admit(m, client("n", wire.RoleNode), begin)
	declare := func(now time.Time, caps []string, commands ...string) pairing.Admission {
		t.Helper()
		s, err := pairing.NewSurface(caps, commands)
		if err != nil {
			t.Fatal(err)
		}
		a, err := pairing.Declare(m, pass, s, "1.0", now)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := declare(begin, []string{"system"}, "system.run", "camera.snap")
	if first.NodeRequested == nil || m.devices["n"].Node.Surface().Commands == nil ||
		len(m.devices["n"].Node.Surface().Commands) != 0 {
		t.Fatalf("the first surface: %+v, %+v", first, m.devices["n"].Node)
	}
	if again := declare(begin, []string{"system"}, "camera.snap", "system.run"); again.NodeRequested != nil ||
		m.devices["n"].Node.Request.ID != first.NodeRequested.ID {
		t.Error("declaring the same surface again made a new request")
	}
	pairer := chela.Principal{ID: "p", Scopes: []chela.Scope{chela.ScopePairing, chela.ScopeWrite}}
	if _, _, err := pairing.ApproveNode(m, pairer, first.NodeRequested.ID, begin); chela.CodeOf(err) !=
		chela.CodeForbidden {
		t.Errorf("approved system.run with the scope pairing only: %v", err)
	}
	if _, _, err := pairing.ApproveNode(m, admin, first.NodeRequested.ID,
		begin.Add(pairing.Lifetime)); chela.CodeOf(err) != chela.CodeNotFound {
		t.Errorf("ND-07 an expired request: %v", err)
	}
	if _, d, err := pairing.ApproveNode(m, admin, first.NodeRequested.ID, begin); err != nil ||
		!slices.Equal(d.Node.Surface().Commands, []string{"camera.snap", "system.run"}) {
		t.Fatalf("approved: %+v, %v", d.Node, err)
	}
	if a := declare(begin, []string{"system"}, "camera.snap", "system.run"); a.NodeRequested != nil ||
		m.devices["n"].Node.Request != nil {
		t.Error("an approved surface made a request")
	}
	wider := declare(begin, []string{"system"}, "camera.snap", "system.run", "location.get")
	if got := m.devices["n"].Node.Surface().Commands; wider.NodeRequested == nil ||
		!slices.Equal(got, []string{"camera.snap", "system.run"}) {
		t.Errorf("ND-08 a wider surface: %+v, approved %v", wider, got)
	}
	narrower := declare(begin, nil, "camera.snap")
	if got := m.devices["n"].Node; narrower.NodeSuperseded == nil || narrower.NodeSuperseded.ID !=
		wider.NodeRequested.ID || got.Request != nil || !slices.Equal(got.Surface().Commands, []string{"camera.snap"}) {
		t.Errorf("a narrower surface: %+v, node %+v", narrower, got)
	}
	last := declare(begin, nil, "camera.snap", "x.y")
	if _, _, err := pairing.RejectNode(m, pairer, last.NodeRequested.ID, begin); err != nil ||
		m.devices["n"].Node.Request != nil {
		t.Errorf("rejected: %v", err)
	}
	if d, err := pairing.RemoveNode(m, admin, "n", begin); err != nil || d.Node != nil || d.Live() {
		t.Errorf("removed: %+v, %v", d, err)
	}
	if _, err := pairing.RemoveNode(m, admin, "n", begin); chela.CodeOf(err) != chela.CodeNotFound {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := pairing.NewSurface(nil, make([]string, 300)); err == nil {
		t.Error("NewSurface accepted empty names")
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	m := newTable()
	admit(m, client("a", wire.RoleOperator), time.Now())
	for name, ok := range map[string]bool{
		" Anna's phone ":         true,
		"":                       false,
		"  ":                     false,
		"a\nb":                   false,
		string(make([]byte, 65)): false,
	} {
		d, err := pairing.Rename(m, admin, "a", name)
		if (err == nil) != ok || ok && d.Label != "Anna's phone" {
			t.Errorf("Rename(%q) = %q, %v", name, d.Label, err)
		}
	}
	for _, s := range naughty.Strings(t) {
		d, err := pairing.Rename(m, admin, "a", s)
		switch {
		case err == nil && d.Label != strings.TrimSpace(s), err == nil && strings.ContainsAny(d.Label, "\n\x1b\x00"):
			t.Errorf("Rename(%q) = %q", s, d.Label)
		case err != nil && len(s) <= 64 && strings.TrimSpace(s) != "" && !naughty.Hides(s):
			t.Errorf("Rename(%q): %v", s, err)
		}
	}
	if _, err := pairing.Rename(m, admin, "b", "x"); chela.CodeOf(err) != chela.CodeNotFound {
		t.Errorf("Rename of an unknown device: %v", err)
	}
}
