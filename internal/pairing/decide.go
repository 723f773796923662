package pairing

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

const credential = "device:"

// Credential returns how a principal names the device that it came with.
func Credential(device string) string { return credential + device }

// DeviceOf returns the device that a principal came with.
func DeviceOf(who chela.Principal) (id string, ok bool) {
	return strings.CutPrefix(who.Credential, credential)
}

// Approve grants a request. Who approves needs the scope pairing, and every
// scope that the request asks for. A device does not approve itself, unless it
// holds all there is to be granted.
func Approve(t Table, who chela.Principal, request string, now time.Time) (Request, Device, error) {
	r, err := pending(t, who, request, now)
	if err != nil {
		return Request{}, Device{}, err
	}
	if missing := beyond(who, r.Scopes); missing != "" {
		return Request{}, Device{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", missing)
	}
	if self, ok := DeviceOf(who); ok && self == r.Device && !who.IsOwner() {
		return Request{}, Device{}, chela.Errorf(chela.CodeForbidden, "a device does not approve itself: that needs the scope %s", chela.ScopeAdmin)
	}
	d, err := find(t, r.Device)
	if err != nil {
		return Request{}, Device{}, err
	}
	if err := room(t, d); err != nil {
		return Request{}, Device{}, chela.Errorf(chela.CodeUnavailable, "request %s: %w", request, err)
	}
	d, g := d.approve(r, ViaOwner, now)
	if Within(r.Scopes, g.Scopes) {
		g.Claim = &Claim{Request: r.ID, Time: now}
		d.set(g)
	}
	if err := errors.Join(t.PutDevice(d), t.DropRequest(r.ID)); err != nil {
		return Request{}, Device{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return r, d, nil
}

// Reject deletes a request. What the device was granted before it keeps.
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

// Remove takes all grants of a device away, and its request, which is returned
// when there was one. A tombstone stays: the device comes back only when a
// person approves it again.
func Remove(t Table, who chela.Principal, device string, now time.Time) (Device, *Request, error) {
	d, err := managed(t, who, device)
	if err != nil {
		return Device{}, nil, err
	}
	for _, g := range d.Grants {
		d.bury(g, now)
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

// Rotate makes the tokens of a grant worthless. With scopes the grant is cut
// down to them: it never becomes wider. The new token is returned to the
// device itself only; for another caller it is empty, and the device is told
// one when it next connects with the shared secret.
func Rotate(t Table, who chela.Principal, device, role string, scopes []chela.Scope, now time.Time) (Grant, string, error) {
	d, g, err := granted(t, who, device, role)
	if err != nil {
		return Grant{}, "", err
	}
	if scopes != nil {
		if missing := beyond(chela.Principal{Scopes: g.Scopes}, scopes); missing != "" {
			return Grant{}, "", chela.Errorf(chela.CodeForbidden, "device %s: %s was not granted", device, missing)
		}
		g.Scopes, g.Held = join(nil, scopes), true
	}
	if missing := beyond(who, g.Scopes); missing != "" {
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

// Revoke takes a device's grant for a role away. A tombstone stays, as with
// [Remove].
func Revoke(t Table, who chela.Principal, device, role string, now time.Time) (Grant, error) {
	d, g, err := granted(t, who, device, role)
	if err != nil {
		return Grant{}, err
	}
	g = d.bury(g, now)
	if err := t.PutDevice(d); err != nil {
		return Grant{}, fmt.Errorf("device %s: %w", device, err)
	}
	return g, nil
}

// Sees reports whether who may be told of a device: a device without the scope
// admin knows itself only.
func Sees(who chela.Principal, device string) bool {
	if !who.May(chela.ScopePairing) {
		return false
	}
	self, isDevice := DeviceOf(who)
	return !isDevice || self == device || who.IsOwner()
}

// pending returns a request that who may decide.
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

// managed returns a device that who may change.
func managed(t Table, who chela.Principal, id string) (Device, error) {
	switch {
	case who.ID == "" || !who.May(chela.ScopePairing):
		return Device{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopePairing)
	case !Sees(who, id):
		return Device{}, chela.Errorf(chela.CodeForbidden, "a device may change itself only: that needs the scope %s", chela.ScopeAdmin)
	}
	d, err := find(t, id)
	if err != nil {
		return Device{}, err
	}
	if !d.Live() {
		return Device{}, chela.Errorf(chela.CodeNotFound, "unknown deviceId")
	}
	return d, nil
}

// granted returns a device that who may change, and its live grant for a role.
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

// beyond returns a scope that who does not hold; "" when there is none.
func beyond(who chela.Principal, scopes []chela.Scope) chela.Scope {
	for _, s := range scopes {
		if !who.May(s) {
			return s
		}
	}
	return ""
}
