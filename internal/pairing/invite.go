package pairing

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// Invite is the approval of a device that is not known yet: who shows its token
// once, with a key, is paired. It is short-lived.
type Invite struct {
	ID      string        `json:"id"`
	Hash    string        `json:"hash"` // of the token
	Roles   []string      `json:"roles"`
	Scopes  []chela.Scope `json:"scopes"` // of the role operator
	By      string        `json:"by"`     // who made it
	Created time.Time     `json:"createdAt"`
	Used    time.Time     `json:"usedAt,omitzero"`
	Device  string        `json:"deviceId,omitempty"` // that used it
}

// Bounds of invitations.
const (
	// InviteLifetime is how long an invitation may be used.
	InviteLifetime = 10 * time.Minute
	maxInvites     = 16
)

// Expires returns when the invitation ends.
func (i Invite) Expires() time.Time { return i.Created.Add(InviteLifetime) }

// Codes and reasons of a refused invitation.
const (
	CodeInviteInvalid = "AUTH_BOOTSTRAP_TOKEN_INVALID"
	ViaInvite         = "bootstrap"
)

// NewInvite makes an invitation and returns its token, which is stored nowhere.
// Who invites needs the scope admin: nobody looks at the device before it is in.
func NewInvite(t Table, who chela.Principal, roles []string, scopes []chela.Scope, now time.Time) (Invite, string, error) {
	switch {
	case who.ID == "" || !who.May(chela.ScopeAdmin):
		return Invite{}, "", chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopeAdmin)
	case len(roles) == 0 || slices.ContainsFunc(roles, func(r string) bool { return r != wire.RoleOperator && r != wire.RoleNode }):
		return Invite{}, "", chela.Errorf(chela.CodeInvalid, "an invitation is for the roles %s and %s", wire.RoleOperator, wire.RoleNode)
	}
	all, err := invites(t, now)
	if err != nil {
		return Invite{}, "", err
	}
	if len(all) >= maxInvites {
		return Invite{}, "", chela.Errorf(chela.CodeFull, "%d invitations are open; each ends after %v", len(all), InviteLifetime)
	}
	token := rand.Text()
	i := Invite{ID: rand.Text(), Hash: hash(token), Roles: roles, Scopes: join(nil, scopes), By: who.ID, Created: now}
	if err := t.PutInvites(append(all, i)); err != nil {
		return Invite{}, "", fmt.Errorf("invitation: %w", err)
	}
	return i, token, nil
}

// FindInvite returns an invitation that was not forgotten yet, or
// chela.ErrNotFound.
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

// Accept lets in a device that shows the token of an invitation, which is used
// up by it: the device gets all that the invitation grants. One that asks for
// more, and one whose pairing was taken away, must be approved by a person.
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
	if d.ID != "" && !d.Live() || !slices.Contains(i.Roles, id.Role) || id.Role == wire.RoleOperator && !Within(i.Scopes, id.Scopes) || id.Role == wire.RoleNode && len(id.Scopes) > 0 {
		return ask(t, d, id, stillMissing(d, id), false, now)
	}
	if err := room(t, d); err != nil {
		return refusal(err)
	}
	i.Used, i.Device = now, id.ID
	if err := t.PutInvites(all); err != nil {
		return Admission{}, fmt.Errorf("invitation: %w", err)
	}
	var others []Handoff
	r := identityRequest(id)
	for _, role := range i.Roles {
		r.Role, r.Scopes = role, []chela.Scope{}
		if role == wire.RoleOperator {
			r.Scopes = i.Scopes
		}
		var g Grant
		d, g = d.approve(r, ViaInvite, now)
		if role != id.Role {
			others = append(others, Handoff{Role: role, Scopes: g.Scopes, Token: g.issue(), Issued: g.Created})
			d.set(g)
		}
	}
	g := d.Grant(id.Role)
	a, err := enter(t, d, g, id, g.issue(), id.Scopes, now)
	a.Pass.Others = others
	return a, err
}

// stillMissing says why a device that was invited must be approved all the same.
func stillMissing(d Device, id Identity) string {
	if reason := missing(d, d.Grant(id.Role), id); reason != "" {
		return reason
	}
	return ReasonScopeUpgrade
}

// Handoff is the token of a further role that an invitation grants.
type Handoff struct {
	Role   string
	Scopes []chela.Scope
	Token  string
	Issued time.Time
}

// invites returns the invitations that have not ended.
func invites(r Reader, now time.Time) ([]Invite, error) {
	all, err := r.Invites()
	if err != nil {
		return nil, fmt.Errorf("invitations: %w", err)
	}
	return slices.DeleteFunc(all, func(i Invite) bool { return !now.Before(i.Expires()) }), nil
}
