package pairing

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// Codes in the details of a refusal.
const (
	CodePairingRequired = "PAIRING_REQUIRED"
	CodeTokenMismatch   = "AUTH_DEVICE_TOKEN_MISMATCH"
	CodeScopeMismatch   = "AUTH_SCOPE_MISMATCH"
)

// Reasons for which approval is required.
const (
	ReasonNotPaired    = "not-paired"
	ReasonRoleUpgrade  = "role-upgrade"
	ReasonScopeUpgrade = "scope-upgrade"
	ReasonMetadata     = "metadata-upgrade"
)

// Proof is the evidence that a connection presented beside its key, as the
// gateway judged it.
type Proof struct {
	// Local reports whether the connection comes from this machine. A new local
	// device is paired without asking a person.
	Local bool
	// Trusted reports whether the connection comes from a network whose new nodes are
	// paired without asking a person.
	Trusted bool
	// Authority is the scopes that the credential stands for: admin for the
	// shared secret and for a gateway that requires no secret. It bounds the
	// scopes of the connection and the scopes that a device is granted without
	// approval.
	Authority []chela.Scope
}

// Admission is the result of a connection's request for access.
type Admission struct {
	Access     Access
	Refusal    *wire.Error // if set, the answer; Access is zero then
	Requested  *Request    // a new request is pending; publish it
	Superseded *Request    // the request that it replaced; publish it as rejected

	Device         Device       // the node; set only with one of the next two
	NodeRequested  *NodeRequest // a new request of a node for its surface; publish it
	NodeSuperseded *NodeRequest // the node's previous request; publish it as rejected
}

// HasEvents reports whether the admission has requests to publish.
func (a Admission) HasEvents() bool {
	return a.Requested != nil || a.Superseded != nil || a.NodeRequested != nil || a.NodeSuperseded != nil
}

// Access is the identity and the rights of a connection.
type Access struct {
	Device     string
	Role       string
	Scopes     []chela.Scope // requested and granted
	Generation int64         // of the grant
	Token      string        // of the device; sent to it in the hello
	Issued     time.Time     // of the grant
	OtherRoles []RoleToken   // tokens of the other roles that an invitation granted
}

// Principal returns the principal of the connection's calls.
func (p Access) Principal() chela.Principal {
	id := "owner"
	if p.Role == wire.RoleNode {
		id = "node:" + p.Device
	}
	return chela.Principal{ID: id, Credential: Credential(p.Device), Scopes: p.Scopes}
}

// Admit handles a device that passed the gateway's shared authentication. A
// device that is not approved for what it requests is paired at once if p
// allows it. Otherwise Admit refuses it and stores a request for approval.
func Admit(t Table, id Identity, p Proof, now time.Time) (Admission, error) {
	d, err := find(t, id.ID)
	if err != nil {
		return Admission{}, err
	}
	g := d.Grant(id.Role)
	reason := approvalReason(d, g, id)
	switch {
	case reason != "" && !autoApproves(d, g, reason, id, p):
		return ask(t, d, id, reason, p.Local, now)
	case reason != "":
		if err := checkCapacity(t, d); err != nil {
			return refusal(err)
		}
		d, g = d.approve(identityRequest(id), ViaSilent, now)
	}
	return enter(t, d, g, id, g.issue(), ScopeSet(p.Authority).Filter(ScopeSet(g.Scopes).Filter(id.Scopes)), now)
}

// Redeem handles a device that presents a device token instead of the shared
// secret. It stores no request for approval: an invalid token is refused with
// the detail [CodeTokenMismatch], and scopes beyond its grant with
// [CodeScopeMismatch].
func Redeem(t Table, id Identity, token string, now time.Time) (Admission, error) {
	d, err := find(t, id.ID)
	if err != nil {
		return Admission{}, err
	}
	g := d.Grant(id.Role)
	switch {
	case !g.accepts(token) || !d.Live():
		return refuseToken(CodeTokenMismatch, "device_token_mismatch", "update_auth_credentials",
			"unauthorized: device token mismatch (rotate/reissue device token)"), nil
	case !ScopeSet(g.Scopes).Covers(id.Scopes):
		return refuseToken(CodeScopeMismatch, "scope_mismatch", "review_auth_configuration",
			"unauthorized: device token scope mismatch (re-pair or approve scope upgrade)"), nil
	case changed(d, id.Client):
		return ask(t, d, id, ReasonMetadata, false, now)
	}
	g.Used = now
	return enter(t, d, g, id, token, id.Scopes, now)
}

// Bearer returns the access that a device token gives by itself, without the
// device's key: it is valid for an operator's HTTP requests, but not for a
// connection. ok is false if the token belongs to no device.
func Bearer(r Reader, token string) (p Access, ok bool, err error) {
	all, err := r.Devices()
	for _, d := range all {
		if g := d.Grant(wire.RoleOperator); g.accepts(token) && d.Live() {
			p, ok = Access{
				Device:     d.ID,
				Role:       g.Role,
				Scopes:     g.Scopes,
				Generation: g.Generation,
				Issued:     cmp.Or(g.Rotated, g.Created),
			}, true
		}
	}
	return p, ok, err
}

// Check returns an error if the grant was rotated or revoked since the Access
// was given.
func Check(r Reader, p Access) error {
	d, err := r.Device(p.Device)
	if err != nil && !errors.Is(err, chela.ErrNotFound) {
		return fmt.Errorf("device %s: %w", p.Device, err)
	}
	if g := d.Grant(p.Role); d.Live() && g.Live() && g.Generation == p.Generation {
		return nil
	}
	return chela.Errorf(chela.CodeForbidden, "the pairing of this device changed")
}

// Current returns the principal restricted to what its device is granted now.
// If the device was revoked, it returns the zero Principal, which has no
// rights. A principal without a device is returned unchanged.
func Current(r Reader, who chela.Principal) (chela.Principal, error) {
	id, ok := DeviceOf(who)
	if !ok {
		return who, nil
	}
	d, err := r.Device(id)
	if err != nil && !errors.Is(err, chela.ErrNotFound) {
		return chela.Principal{}, fmt.Errorf("device %s: %w", id, err)
	}
	g := d.Grant(wire.RoleOperator)
	if !d.Live() || !g.Live() {
		return chela.Principal{}, nil
	}
	who.Scopes = ScopeSet(g.Scopes).Filter(who.Scopes)
	return who, nil
}

// find returns a device, or a zero Device if it is unknown.
func find(r Reader, id string) (Device, error) {
	d, err := r.Device(id)
	if errors.Is(err, chela.ErrNotFound) {
		return Device{}, nil
	}
	if err != nil {
		return Device{}, fmt.Errorf("device %s: %w", id, err)
	}
	return d, nil
}

// approvalReason returns the reason why the request needs approval, or "" if
// the grant covers it.
func approvalReason(d Device, g Grant, id Identity) string {
	switch {
	case !d.Live():
		return ReasonNotPaired
	case !g.Live():
		return ReasonRoleUpgrade
	case !ScopeSet(g.Scopes).Covers(id.Scopes):
		return ReasonScopeUpgrade
	case changed(d, id.Client):
		return ReasonMetadata
	}
	return ""
}

// changed reports whether the client names another kind of machine than the one
// that was approved, a sign that the key was copied to it. Fields that the
// client leaves out and a new version of the platform are no change.
func changed(d Device, c wire.ClientInfo) bool {
	return differs(system(d.Platform), system(c.Platform)) || differs(fold(d.Family), fold(c.Family))
}

func differs(was, is string) bool { return was != "" && is != "" && was != is }

// system returns the name of a platform without its version.
func system(platform string) string {
	name, _, _ := strings.Cut(fold(platform), " ")
	switch name {
	case "darwin":
		return "macos"
	case "win32":
		return "windows"
	}
	return name
}

// autoApproves reports whether the request may be granted without asking a
// person: for an unknown device, for a request of more scopes unless a person
// narrowed the grant, and for changed client information. The connection must
// be local and its credential must cover the scopes. Only a person restores a
// revoked grant. From a trusted network, only an unknown node without scopes is
// paired.
func autoApproves(d Device, g Grant, reason string, id Identity, p Proof) bool {
	if p.Trusted && d.ID == "" && id.Role == wire.RoleNode && len(id.Scopes) == 0 {
		return true
	}
	fresh := d.ID == "" || reason == ReasonScopeUpgrade && !g.Narrowed || reason == ReasonMetadata
	return p.Local && fresh && ScopeSet(p.Authority).Covers(id.Scopes)
}

// enter records the connection of a device and returns its access.
func enter(t Table, d Device, g Grant, id Identity, token string, scopes []chela.Scope,
	now time.Time) (Admission, error) {
	d.setClientInfo(identityRequest(id))
	d.LastSeen = now
	d.set(g)
	if err := t.PutDevice(d); err != nil {
		return Admission{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return Admission{Access: Access{
		Device: d.ID, Role: g.Role, Scopes: scopes, Generation: g.Generation, Token: token,
		Issued: cmp.Or(g.Rotated, g.Created),
	}}, nil
}

// ask stores a request for approval and refuses the connection.
func ask(t Table, d Device, id Identity, reason string, local bool, now time.Time) (Admission, error) {
	r := identityRequest(id)
	r.Silent, r.Repair = local, d.ID != ""
	r, a, err := enqueue(t, r, now)
	if err == nil && a.Refusal == nil {
		a.Refusal = pairingRequired(d, r, reason)
	}
	return a, err
}

// enqueue stores a pending request. Repeating the same request keeps its id, so
// that a person can decide it while the device retries. Too many pending
// requests give a refusal.
func enqueue(t Table, r Request, now time.Time) (Request, Admission, error) {
	waiting, err := sweep(t, now)
	if err != nil {
		return Request{}, Admission{}, err
	}
	r.ID, r.Time = rand.Text(), now
	a := Admission{Requested: &r}
	switch i := slices.IndexFunc(waiting, func(w Request) bool { return w.Device == r.Device }); {
	case i >= 0 && waiting[i].Role == r.Role && slices.Equal(waiting[i].Scopes, r.Scopes):
		r.ID, a.Requested = waiting[i].ID, nil
	case i >= 0:
		a.Superseded = &waiting[i]
	case len(waiting) >= MaxRequests:
		e := wire.Errorf(wire.Unavailable, "too many pending pairing requests")
		e.Retryable = true
		return Request{}, Admission{Refusal: e}, nil
	}
	if err := t.PutRequest(r); err != nil {
		return Request{}, Admission{}, fmt.Errorf("request of device %s: %w", r.Device, err)
	}
	return r, a, nil
}

// sweep deletes expired requests and returns the others.
func sweep(t Table, now time.Time) ([]Request, error) {
	all, err := t.Requests()
	if err != nil {
		return nil, fmt.Errorf("requests of devices: %w", err)
	}
	waiting := all[:0]
	for _, r := range all {
		if !r.Expired(now) {
			waiting = append(waiting, r)
			continue
		}
		if err := t.DropRequest(r.ID); err != nil {
			return nil, fmt.Errorf("request %s: %w", r.ID, err)
		}
	}
	return waiting, nil
}

// identityRequest returns the request of a verified client.
func identityRequest(id Identity) Request {
	return Request{
		Device: id.ID, PublicKey: id.Key, Role: id.Role, Scopes: id.Scopes,
		DisplayName: id.Client.DisplayName, Platform: id.Client.Platform, Family: id.Client.Family,
		ClientID: id.Client.ID, ClientMode: id.Client.Mode,
	}
}

// pairingRequired returns the answer to a device that must be approved.
func pairingRequired(d Device, r Request, reason string) *wire.Error {
	text := map[string]struct{ what, remedy string }{
		ReasonNotPaired: {"device is not approved yet", "Approve this device from the pending pairing requests."},
		ReasonRoleUpgrade: {"device is asking for a higher role than currently approved",
			"Review the requested role upgrade, then approve the pending request."},
		ReasonScopeUpgrade: {"device is asking for more scopes than currently approved",
			"Review the requested scopes, then approve the pending upgrade."},
		ReasonMetadata: {"device identity changed and must be re-approved",
			"Review the refreshed device details, then approve the pending request."},
	}[reason]
	details := map[string]any{
		"code": CodePairingRequired, "reason": reason, "requestId": r.ID, "remediationHint": text.remedy,
		"deviceId": r.Device, "requestedRole": r.Role,
	}
	if len(r.Scopes) > 0 {
		details["requestedScopes"] = r.Scopes
	}
	if d.Live() {
		details["approvedRoles"], details["approvedScopes"] = d.Roles(), d.Scopes()
	}
	if reason != ReasonRoleUpgrade {
		details["recommendedNextStep"], details["retryable"], details["pauseReconnect"] = "wait_then_retry", true, false
	}
	return wire.Errorf(wire.NotPaired, "pairing required: %s", text.what).With(details)
}

func refuseToken(code, reason, next, message string) Admission {
	return Admission{Refusal: wire.Errorf(wire.InvalidRequest, "%s", message).With(map[string]any{
		"code": code, "authReason": reason, "canRetryWithDeviceToken": false, "recommendedNextStep": next,
	})}
}

// tooManyDevices is the error of reaching [MaxDevices].
type tooManyDevices struct{}

func (tooManyDevices) Error() string { return "too many paired devices" }

// checkCapacity returns an error if a new device would exceed [MaxDevices].
func checkCapacity(t Table, d Device) error {
	if d.ID != "" {
		return nil
	}
	all, err := t.Devices()
	if err != nil {
		return fmt.Errorf("devices: %w", err)
	}
	live := 0
	for _, have := range all {
		if have.Live() {
			live++
		}
	}
	if live >= MaxDevices {
		return tooManyDevices{}
	}
	return nil
}

// refusal turns a tooManyDevices error into an answer.
func refusal(err error) (Admission, error) {
	if _, ok := errors.AsType[tooManyDevices](err); ok {
		return Admission{Refusal: wire.Errorf(wire.Unavailable, "%v", err)}, nil
	}
	return Admission{}, err
}

// setClientInfo copies what the client reports about itself.
func (d *Device) setClientInfo(r Request) {
	d.ID, d.PublicKey = r.Device, r.PublicKey
	d.DisplayName = cmp.Or(r.DisplayName, d.DisplayName)
	d.Platform, d.Family = cmp.Or(r.Platform, d.Platform), cmp.Or(r.Family, d.Family)
	d.ClientID, d.ClientMode = r.ClientID, r.ClientMode
}

// approve returns the device with the request granted, and the grant. A live
// grant is widened. A revoked one is replaced by a new grant with the requested
// scopes only and without the old tokens.
func (d Device) approve(r Request, via string, now time.Time) (Device, Grant) {
	if d.Created.IsZero() {
		d.Created = now
	}
	d.setClientInfo(r)
	d.Approved, d.Via = now, via
	d.Removed = time.Time{}
	g := d.Grant(r.Role)
	if g.Live() {
		g.Scopes = union(g.Scopes, r.Scopes)
	} else {
		d.Generation++
		g = Grant{Role: r.Role, Scopes: r.Scopes, Generation: d.Generation, Created: now}
	}
	g.Pending = nil
	d.set(g)
	return d, g
}
