package pairing

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Credential returns the credential of a principal that authenticated as the
// device.
func Credential(device string) string { return chela.DeviceCredential(device) }

// DeviceOf returns the device that the principal authenticated as.
func DeviceOf(who chela.Principal) (id string, ok bool) {
	return chela.DeviceOf(who.Credential)
}

// Approve grants a request. The approver needs the scope pairing and every
// requested scope. A device cannot approve its own request unless it holds the
// scope admin.
func Approve(t Table, who chela.Principal, request string, now time.Time) (Request, Device, error) {
	r, err := pending(t, who, request, now)
	if err != nil {
		return Request{}, Device{}, err
	}
	if missing := missingScope(who, r.Scopes); missing != "" {
		return Request{}, Device{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", missing)
	}
	if self, ok := DeviceOf(who); ok && self == r.Device && !who.IsOwner() {
		return Request{}, Device{},
			chela.Errorf(chela.CodeForbidden, "a device cannot approve its own request without the scope %s", chela.ScopeAdmin)
	}
	d, err := find(t, r.Device)
	if err != nil {
		return Request{}, Device{}, err
	}
	if err := checkCapacity(t, d); err != nil {
		return Request{}, Device{}, chela.Errorf(chela.CodeUnavailable, "request %s: %w", request, err)
	}
	d, g := d.approve(r, ViaOwner, now)
	if ScopeSet(r.Scopes).Covers(g.Scopes) {
		g.Pending = &PendingToken{Request: r.ID, Time: now}
		d.set(g)
	}
	if err := errors.Join(t.PutDevice(d), t.DropRequest(r.ID)); err != nil {
		return Request{}, Device{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return r, d, nil
}

// Reject deletes a request. Grants that the device already has remain.
func Reject(t Table, who chela.Principal, request string, now time.Time) (Request, error) {
	r, err := pending(t, who, request, now)
	if err != nil {
		return Request{}, err
	}
	if err := t.DropRequest(r.ID); err != nil {
		return Request{}, fmt.Errorf("request %s: %w", r.ID, err)
	}
	return r, nil
}

// Remove revokes all grants of a device and deletes its request, which is
// returned if there was one. A tombstone remains: only a person's approval
// restores the device.
func Remove(t Table, who chela.Principal, device string, now time.Time) (Device, *Request, error) {
	d, err := managed(t, who, device)
	if err != nil {
		return Device{}, nil, err
	}
	for _, g := range d.Grants {
		d.revoke(g, now)
	}
	d.Removed = now
	if err := t.PutDevice(d); err != nil {
		return Device{}, nil, fmt.Errorf("device %s: %w", device, err)
	}
	waiting, err := sweep(t, now)
	if err != nil {
		return Device{}, nil, err
	}
	for _, r := range waiting {
		if r.Device == device {
			return d, &r, t.DropRequest(r.ID)
		}
	}
	return d, nil, nil
}

// Rotate invalidates the tokens of a grant. With scopes, the grant is narrowed
// to them; it is never widened. The new token is returned only if the caller is
// the device itself. For other callers it is empty, and the device gets a token
// when it next connects with the shared secret.
func Rotate(t Table, who chela.Principal, device, role string, scopes []chela.Scope,
	now time.Time) (Grant, string, error) {
	d, g, err := granted(t, who, device, role)
	if err != nil {
		return Grant{}, "", err
	}
	if scopes != nil {
		if missing := missingScope(chela.Principal{Scopes: g.Scopes}, scopes); missing != "" {
			return Grant{}, "", chela.Errorf(chela.CodeForbidden, "device %s: %s was not granted", device, missing)
		}
		g.Scopes, g.Narrowed = union(nil, scopes), true
	}
	if missing := missingScope(who, g.Scopes); missing != "" {
		return Grant{}, "", chela.Errorf(chela.CodeForbidden, "missing scope: %s", missing)
	}
	g = d.renew(g, now)
	token := ""
	if self, ok := DeviceOf(who); ok && self == device {
		token = g.issue()
	}
	d.set(g)
	if err := t.PutDevice(d); err != nil {
		return Grant{}, "", fmt.Errorf("device %s: %w", device, err)
	}
	return g, token, nil
}

// Revoke revokes a device's grant for a role. A tombstone remains, as with
// [Remove].
func Revoke(t Table, who chela.Principal, device, role string, now time.Time) (Grant, error) {
	d, g, err := granted(t, who, device, role)
	if err != nil {
		return Grant{}, err
	}
	g = d.revoke(g, now)
	if err := t.PutDevice(d); err != nil {
		return Grant{}, fmt.Errorf("device %s: %w", device, err)
	}
	return g, nil
}

// MaySee reports whether the principal may see a device: a device without the scope admin
// sees only itself.
func MaySee(who chela.Principal, device string) bool {
	if !who.May(chela.ScopePairing) {
		return false
	}
	self, isDevice := DeviceOf(who)
	return !isDevice || self == device || who.IsOwner()
}

// pending returns a request if the principal may decide it.
func pending(t Table, who chela.Principal, id string, now time.Time) (Request, error) {
	if who.ID == "" || !who.May(chela.ScopePairing) {
		return Request{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopePairing)
	}
	r, err := t.Request(id)
	if err != nil && !errors.Is(err, chela.ErrNotFound) {
		return Request{}, fmt.Errorf("request %s: %w", id, err)
	}
	if err != nil || r.Expired(now) {
		return Request{}, chela.Errorf(chela.CodeNotFound, "unknown requestId")
	}
	return r, nil
}

// managed returns a device if the principal may change it.
func managed(t Table, who chela.Principal, id string) (Device, error) {
	switch {
	case who.ID == "" || !who.May(chela.ScopePairing):
		return Device{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopePairing)
	case !MaySee(who, id):
		return Device{}, chela.Errorf(chela.CodeForbidden, "a device may change only itself without the scope %s",
			chela.ScopeAdmin)
	}
	d, err := find(t, id)
	if err != nil {
		return Device{}, err
	}
	if !d.Paired() {
		return Device{}, chela.Errorf(chela.CodeNotFound, "unknown deviceId")
	}
	return d, nil
}

// granted returns a device if the principal may change it, and its live grant for a role.
func granted(t Table, who chela.Principal, id, role string) (Device, Grant, error) {
	d, err := managed(t, who, id)
	if err != nil {
		return Device{}, Grant{}, err
	}
	g := d.Grant(role)
	if !g.Live() {
		return Device{}, Grant{}, chela.Errorf(chela.CodeNotFound, "unknown deviceId/role")
	}
	return d, g, nil
}

// missingScope returns a scope that the principal does not hold, or "".
func missingScope(who chela.Principal, scopes []chela.Scope) chela.Scope {
	for _, s := range scopes {
		if !who.May(s) {
			return s
		}
	}
	return ""
}
