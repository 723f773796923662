package pairing

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// Invite is a one-time approval in advance: the first device that presents its
// token, with a key, is paired. It is short-lived.
type Invite struct {
	ID      string        `json:"id"`
	Hash    string        `json:"hash"` // of the token
	Roles   []string      `json:"roles"`
	Scopes  []chela.Scope `json:"scopes"` // for the operator role
	By      string        `json:"by"`     // the creator
	Created time.Time     `json:"createdAt"`
	Used    time.Time     `json:"usedAt,omitzero"`
	Device  string        `json:"deviceId,omitempty"` // that used it
}

// Limits of invitations.
const (
	// InviteLifetime is how long an invitation is valid.
	InviteLifetime = 10 * time.Minute
	maxInvites     = 16
)

// Expires returns the time at which the invitation expires.
func (i Invite) Expires() time.Time { return i.Created.Add(InviteLifetime) }

// Codes and reasons of a refused invitation.
const (
	CodeInviteInvalid = "AUTH_BOOTSTRAP_TOKEN_INVALID"
	ViaInvite         = "bootstrap"
)

// NewInvite creates an invitation and returns its token, which is not stored.
// The caller needs the scope admin, because nobody reviews the device before it
// is paired.
func NewInvite(t Table, who chela.Principal, roles []string, scopes []chela.Scope,
	now time.Time) (Invite, string, error) {
	switch {
	case who.ID == "" || !who.May(chela.ScopeAdmin):
		return Invite{}, "", chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopeAdmin)
	case len(roles) == 0 ||
		slices.ContainsFunc(roles, func(r string) bool { return r != wire.RoleOperator && r != wire.RoleNode }):
		return Invite{}, "", chela.Errorf(chela.CodeInvalid, "an invitation is for the roles %s and %s",
			wire.RoleOperator, wire.RoleNode)
	}
	all, err := invites(t, now)
	if err != nil {
		return Invite{}, "", err
	}
	if len(all) >= maxInvites {
		return Invite{}, "", chela.Errorf(chela.CodeFull, "%d invitations are open; each ends after %v", len(all),
			InviteLifetime)
	}
	token := rand.Text()
	i := Invite{ID: rand.Text(), Hash: hash(token), Roles: roles, Scopes: union(nil, scopes), By: who.ID, Created: now}
	if err := t.PutInvites(append(all, i)); err != nil {
		return Invite{}, "", fmt.Errorf("invitation: %w", err)
	}
	return i, token, nil
}

// FindInvite returns an invitation that has not expired, or chela.ErrNotFound.
func FindInvite(r Reader, id string, now time.Time) (Invite, error) {
	all, err := invites(r, now)
	if err != nil {
		return Invite{}, err
	}
	if i := slices.IndexFunc(all, func(i Invite) bool { return i.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Invite{}, chela.ErrNotFound
}

// Accept handles a device that presents the token of an invitation. It uses the
// invitation up and grants the device everything in it. A device that requests
// more, and one that was revoked, must be approved by a person.
func Accept(t Table, id Identity, token string, now time.Time) (Admission, error) {
	all, err := invites(t, now)
	if err != nil {
		return Admission{}, err
	}
	at, h := -1, []byte(hash(token))
	for n, i := range all {
		if subtle.ConstantTimeCompare(h, []byte(i.Hash)) == 1 && i.Used.IsZero() {
			at = n
		}
	}
	if at < 0 {
		return refuseToken(CodeInviteInvalid, "bootstrap_token_invalid", "update_auth_credentials",
			"unauthorized: setup code invalid, expired, revoked, or already used (make a new one: chela devices invite)"), nil
	}
	i := &all[at]
	d, err := find(t, id.ID)
	if err != nil {
		return Admission{}, err
	}
	if d.ID != "" && !d.Live() || !slices.Contains(i.Roles, id.Role) || id.Role == wire.RoleOperator &&
		!ScopeSet(i.Scopes).Covers(id.Scopes) || id.Role == wire.RoleNode && len(id.Scopes) > 0 {
		return ask(t, d, id, inviteReason(d, id), false, now)
	}
	if err := checkCapacity(t, d); err != nil {
		return refusal(err)
	}
	i.Used, i.Device = now, id.ID
	if err := t.PutInvites(all); err != nil {
		return Admission{}, fmt.Errorf("invitation: %w", err)
	}
	var others []RoleToken
	r := identityRequest(id)
	for _, role := range i.Roles {
		r.Role, r.Scopes = role, []chela.Scope{}
		if role == wire.RoleOperator {
			r.Scopes = i.Scopes
		}
		var g Grant
		d, g = d.approve(r, ViaInvite, now)
		if role != id.Role {
			others = append(others, RoleToken{Role: role, Scopes: g.Scopes, Token: g.issue(), Issued: g.Created})
			d.set(g)
		}
	}
	g := d.Grant(id.Role)
	a, err := enter(t, d, g, id, g.issue(), id.Scopes, now)
	a.Access.OtherRoles = others
	return a, err
}

// inviteReason returns the reason why an invited device needs approval
// nevertheless.
func inviteReason(d Device, id Identity) string {
	if reason := approvalReason(d, d.Grant(id.Role), id); reason != "" {
		return reason
	}
	return ReasonScopeUpgrade
}

// RoleToken is the token of a further role that an invitation granted.
type RoleToken struct {
	Role   string
	Scopes []chela.Scope
	Token  string
	Issued time.Time
}

// invites returns the invitations that have not expired.
func invites(r Reader, now time.Time) ([]Invite, error) {
	all, err := r.Invites()
	if err != nil {
		return nil, fmt.Errorf("invitations: %w", err)
	}
	return slices.DeleteFunc(all, func(i Invite) bool { return !now.Before(i.Expires()) }), nil
}
