package pairing

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// PendingToken lets a device claim one token for an approved request, as long
// as its grant is still what was approved.
type PendingToken struct {
	Request string    `json:"requestId"`
	Time    time.Time `json:"ts"` // of the approval
}

// IssuedToken is a token and the scopes that it gives.
type IssuedToken struct {
	Token  string
	Scopes []chela.Scope
}

// Widen stores the request of a connected device for more scopes than it holds.
// The request covers all scopes that the device would hold afterwards, because
// the token from [ClaimToken] gives the whole grant even if the connection
// holds less.
func Widen(t Table, who chela.Principal, scopes []chela.Scope, now time.Time) (Request, Admission, error) {
	d, g, err := operatorDevice(t, who)
	if err != nil {
		return Request{}, Admission{}, err
	}
	if !ScopeSet(scopes).Covers(who.Scopes) {
		return Request{}, Admission{},
			chela.Errorf(chela.CodeInvalid, "requested scopes must include the connection's current scopes")
	}
	r, a, err := enqueue(t, Request{
		Device: d.ID, PublicKey: d.PublicKey, DisplayName: d.DisplayName, Platform: d.Platform, Family: d.Family,
		ClientID: d.ClientID, ClientMode: d.ClientMode, Role: g.Role, Scopes: union(g.Scopes, scopes), Repair: true,
	}, now)
	if err == nil && a.Refusal != nil {
		return Request{}, Admission{}, a.Refusal
	}
	return r, a, err
}

// PendingRequest returns a pending request of a connected device, or
// chela.ErrNotFound.
func PendingRequest(r Reader, who chela.Principal, request string, now time.Time) (Request, error) {
	self, _ := DeviceOf(who)
	q, err := r.Request(request)
	switch {
	case errors.Is(err, chela.ErrNotFound), err == nil && (q.Device != self || q.Expired(now)):
		return Request{}, chela.ErrNotFound
	case err != nil:
		return Request{}, fmt.Errorf("request %s: %w", request, err)
	}
	return q, nil
}

// ClaimToken issues a token for an approved request of a connected device,
// once. The error is chela.ErrNotFound if there is none or it expired.
func ClaimToken(t Table, who chela.Principal, request string, now time.Time) (IssuedToken, error) {
	d, g, err := operatorDevice(t, who)
	if err != nil {
		return IssuedToken{}, err
	}
	if c := g.Pending; c == nil || c.Request != request || !now.Before(c.Time.Add(Lifetime)) {
		return IssuedToken{}, chela.ErrNotFound
	}
	g.Pending = nil
	token := g.issue()
	d.set(g)
	if err := t.PutDevice(d); err != nil {
		return IssuedToken{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return IssuedToken{Token: token, Scopes: g.Scopes}, nil
}

// operatorDevice returns the device of the principal, and its operator
// grant.
func operatorDevice(r Reader, who chela.Principal) (Device, Grant, error) {
	id, ok := DeviceOf(who)
	if !ok {
		return Device{}, Grant{}, noDevice()
	}
	d, err := find(r, id)
	if err != nil {
		return Device{}, Grant{}, err
	}
	g := d.Grant(wire.RoleOperator)
	if !d.Live() || !g.Live() {
		return Device{}, Grant{}, noDevice()
	}
	return d, g, nil
}

func noDevice() *wire.Error {
	return wire.Errorf(wire.InvalidRequest,
		"only a paired device can request more scopes: open the Control UI over HTTPS or on this machine, and try again").
		With(map[string]any{"code": "DEVICE_IDENTITY_REQUIRED", "recommendedNextStep": "reopen_control_ui_securely"})
}
