package pairing

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// Claim is what an approved request is worth to its device: a token, once, as
// long as the grant is what was approved.
type Claim struct {
	Request string    `json:"requestId"`
	Time    time.Time `json:"ts"` // of the approval
}

// Claimed is the token of an approved request, and what it opens.
type Claimed struct {
	Token  string
	Scopes []chela.Scope
}

// Widen stores the request of a device that is connected for more scopes than
// it holds. A person is asked for all that the device will hold then: the token
// that it may [Take] opens nothing that was not approved, though the connection
// holds less than its device was granted.
func Widen(t Table, who chela.Principal, scopes []chela.Scope, now time.Time) (Request, Admission, error) {
	d, g, err := connected(t, who)
	if err != nil {
		return Request{}, Admission{}, err
	}
	if !Within(scopes, who.Scopes) {
		return Request{}, Admission{}, chela.Errorf(chela.CodeInvalid, "requested scopes must include the connection's current scopes")
	}
	r, a, err := enqueue(t, Request{
		Device: d.ID, PublicKey: d.PublicKey, DisplayName: d.DisplayName, Platform: d.Platform, Family: d.Family,
		ClientID: d.ClientID, ClientMode: d.ClientMode, Role: g.Role, Scopes: join(g.Scopes, scopes), Repair: true,
	}, now)
	if err == nil && a.Refusal != nil {
		return Request{}, Admission{}, a.Refusal
	}
	return r, a, err
}

// Awaited returns the request of a connected device that waits for a person;
// chela.ErrNotFound when no such one does.
func Awaited(r Reader, who chela.Principal, request string, now time.Time) (Request, error) {
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

// Take tells a connected device the token of its request that was approved;
// chela.ErrNotFound when there is none, or no longer.
func Take(t Table, who chela.Principal, request string, now time.Time) (Claimed, error) {
	d, g, err := connected(t, who)
	if err != nil {
		return Claimed{}, err
	}
	if c := g.Claim; c == nil || c.Request != request || !now.Before(c.Time.Add(Lifetime)) {
		return Claimed{}, chela.ErrNotFound
	}
	g.Claim = nil
	token := g.issue()
	d.set(g)
	if err := t.PutDevice(d); err != nil {
		return Claimed{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return Claimed{Token: token, Scopes: g.Scopes}, nil
}

// connected returns the device that who came with, and its grant as an
// operator.
func connected(r Reader, who chela.Principal) (Device, Grant, error) {
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
	return wire.Errorf(wire.InvalidRequest, "only a paired device asks for more scopes: open the Control UI over HTTPS or on this machine, and try again").
		With(map[string]any{"code": "DEVICE_IDENTITY_REQUIRED", "recommendedNextStep": "reopen_control_ui_securely"})
}
