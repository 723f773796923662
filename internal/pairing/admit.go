package pairing

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
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

// Proof is what a connection showed beside its key, as the gateway judged it.
type Proof struct {
	// Local says that it comes from this machine, so that a new device is
	// paired without a question.
	Local bool
	// Authority is the scopes that the credential stands for: admin for the
	// shared secret and for a gateway that asks for none. No connection holds
	// more, and no device is granted more without a question.
	Authority []chela.Scope
}

// Admission is what became of a connection that asked to be let in.
type Admission struct {
	Pass       Pass
	Refusal    *wire.Error // set: the answer, and there is no Pass
	Requested  *Request    // a new request waits, to be published
	Superseded *Request    // the request that it replaced, to be published as rejected

	Device         Device       // the node; only with one of the next two
	NodeRequested  *NodeRequest // what a node asks to be able to do, to be published
	NodeSuperseded *NodeRequest // what it asked for before, to be published as rejected
}

// News reports whether there is something to be published.
func (a Admission) News() bool {
	return a.Requested != nil || a.Superseded != nil || a.NodeRequested != nil || a.NodeSuperseded != nil
}

// Pass is who a connection is.
type Pass struct {
	Device     string
	Role       string
	Scopes     []chela.Scope // that it holds: asked for and granted
	Generation int64         // of the grant
	Token      string        // of the device, to tell it in the hello
	Issued     time.Time     // of the grant
	Others     []Handoff     // what an invitation grants beside it
}

// Principal returns who acts in the calls of the connection.
func (p Pass) Principal() chela.Principal {
	id := "owner"
	if p.Role == wire.RoleNode {
		id = "node:" + p.Device
	}
	return chela.Principal{ID: id, Credential: Credential(p.Device), Scopes: p.Scopes}
}

// Admit lets in a device that showed what the gateway asks of everybody. One
// that is not approved for what it asks is paired at once when it may be, or
// else refused, and its request waits for a person.
func Admit(t Table, id Identity, p Proof, now time.Time) (Admission, error) {
	d, err := find(t, id.ID)
	if err != nil {
		return Admission{}, err
	}
	g := d.Grant(id.Role)
	reason := missing(d, g, id)
	switch {
	case reason != "" && !silently(d, g, reason, id, p):
		return ask(t, d, id, reason, p.Local, now)
	case reason != "":
		if err := room(t, d); err != nil {
			return refusal(err)
		}
		d, g = d.approve(identityRequest(id), ViaSilent, now)
	}
	return enter(t, d, g, id, g.issue(), Cut(p.Authority, Cut(g.Scopes, id.Scopes)), now)
}

// Redeem lets in a device that shows a token of its own instead of the shared
// secret. It never asks for approval: a token that is not good is refused with
// the detail [CodeTokenMismatch], and scopes beyond its grant with
// [CodeScopeMismatch].
func Redeem(t Table, id Identity, token string, now time.Time) (Admission, error) {
	d, err := find(t, id.ID)
	if err != nil {
		return Admission{}, err
	}
	g := d.Grant(id.Role)
	switch {
	case !g.takes(token) || !d.Live():
		return refuseToken(CodeTokenMismatch, "device_token_mismatch", "update_auth_credentials",
			"unauthorized: device token mismatch (rotate/reissue device token)"), nil
	case !Within(g.Scopes, id.Scopes):
		return refuseToken(CodeScopeMismatch, "scope_mismatch", "review_auth_configuration",
			"unauthorized: device token scope mismatch (re-pair or approve scope upgrade)"), nil
	case changed(d, id.Client):
		return ask(t, d, id, ReasonMetadata, false, now)
	}
	g.Used = now
	return enter(t, d, g, id, token, id.Scopes, now)
}

// Bearer returns what a token of a device is good for by itself: who holds it
// shows no key, so that it is good for an operator's requests over HTTP, and for
// no connection. ok is false when no device has it.
func Bearer(r Reader, token string) (p Pass, ok bool, err error) {
	all, err := r.Devices()
	for _, d := range all {
		if g := d.Grant(wire.RoleOperator); g.takes(token) && d.Live() {
			p, ok = Pass{Device: d.ID, Role: g.Role, Scopes: g.Scopes, Generation: g.Generation, Issued: cmp.Or(g.Rotated, g.Created)}, true
		}
	}
	return p, ok, err
}

// Check returns an error when a grant was rotated or taken away since the Pass
// was given.
func Check(r Reader, p Pass) error {
	d, err := r.Device(p.Device)
	if err != nil && !errors.Is(err, chela.ErrNotFound) {
		return fmt.Errorf("device %s: %w", p.Device, err)
	}
	if g := d.Grant(p.Role); d.Live() && g.Live() && g.Generation == p.Generation {
		return nil
	}
	return chela.Errorf(chela.CodeForbidden, "the device's pairing was changed")
}

// Current returns a principal with no more than its device holds today: the
// zero one, which may do nothing, when the device was revoked. A principal
// that is no device is returned as it is.
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
	who.Scopes = Cut(g.Scopes, who.Scopes)
	return who, nil
}

// find returns a device; a zero one when it is not known.
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

// missing says why the device may not have what it asks for; "" when it may.
func missing(d Device, g Grant, id Identity) string {
	switch {
	case !d.Live():
		return ReasonNotPaired
	case !g.Live():
		return ReasonRoleUpgrade
	case !Within(g.Scopes, id.Scopes):
		return ReasonScopeUpgrade
	case changed(d, id.Client):
		return ReasonMetadata
	}
	return ""
}

// changed reports whether the client says that it is on another kind of machine
// than the one that was approved: its key may have been carried there. What it
// does not say it does not change, and neither does another version.
func changed(d Device, c wire.ClientInfo) bool {
	return other(system(d.Platform), system(c.Platform)) || other(fold(d.Family), fold(c.Family))
}

func other(was, is string) bool { return was != "" && is != "" && was != is }

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

// silently reports whether the device may be granted what it asks for without
// a question: one that was never seen, one whose grant nobody cut down and that
// asks for more, and one that changed on this machine, with the secret. What was
// taken away only a person gives back.
func silently(d Device, g Grant, reason string, id Identity, p Proof) bool {
	fresh := d.ID == "" || reason == ReasonScopeUpgrade && !g.Held || reason == ReasonMetadata
	return p.Local && fresh && Within(p.Authority, id.Scopes)
}

// enter stores that the device came and returns its pass.
func enter(t Table, d Device, g Grant, id Identity, token string, scopes []chela.Scope, now time.Time) (Admission, error) {
	d.describe(identityRequest(id))
	d.LastSeen = now
	d.set(g)
	if err := t.PutDevice(d); err != nil {
		return Admission{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return Admission{Pass: Pass{
		Device: d.ID, Role: g.Role, Scopes: scopes, Generation: g.Generation, Token: token,
		Issued: cmp.Or(g.Rotated, g.Created),
	}}, nil
}

// ask stores a request of the device and refuses the connection.
func ask(t Table, d Device, id Identity, reason string, local bool, now time.Time) (Admission, error) {
	r := identityRequest(id)
	r.Silent, r.Repair = local, d.ID != ""
	r, a, err := enqueue(t, r, now)
	if err == nil && a.Refusal == nil {
		a.Refusal = pairingRequired(d, r, reason)
	}
	return a, err
}

// enqueue has a request wait for a person. The same request made again keeps
// its id, so that it can be decided while the device retries. There is a
// refusal when too many wait.
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
		e := wire.Errorf(wire.Unavailable, "too many devices wait for approval")
		e.Retryable = true
		return Request{}, Admission{Refusal: e}, nil
	}
	if err := t.PutRequest(r); err != nil {
		return Request{}, Admission{}, fmt.Errorf("request of device %s: %w", r.Device, err)
	}
	return r, a, nil
}

// sweep deletes requests that nobody decided, and returns the others.
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

// identityRequest returns what a client asks for as a request.
func identityRequest(id Identity) Request {
	return Request{
		Device: id.ID, PublicKey: id.Key, Role: id.Role, Scopes: id.Scopes,
		DisplayName: id.Client.DisplayName, Platform: id.Client.Platform, Family: id.Client.Family,
		ClientID: id.Client.ID, ClientMode: id.Client.Mode,
	}
}

// pairingRequired is the answer to a device that waits for approval.
func pairingRequired(d Device, r Request, reason string) *wire.Error {
	said := map[string]struct{ what, remedy string }{
		ReasonNotPaired:    {"device is not approved yet", "Approve this device from the pending pairing requests."},
		ReasonRoleUpgrade:  {"device is asking for a higher role than currently approved", "Review the requested role upgrade, then approve the pending request."},
		ReasonScopeUpgrade: {"device is asking for more scopes than currently approved", "Review the requested scopes, then approve the pending upgrade."},
		ReasonMetadata:     {"device identity changed and must be re-approved", "Review the refreshed device details, then approve the pending request."},
	}[reason]
	details := map[string]any{
		"code": CodePairingRequired, "reason": reason, "requestId": r.ID, "remediationHint": said.remedy,
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
	return wire.Errorf(wire.NotPaired, "pairing required: %s", said.what).With(details)
}

func refuseToken(code, reason, next, message string) Admission {
	return Admission{Refusal: wire.Errorf(wire.InvalidRequest, "%s", message).With(map[string]any{
		"code": code, "authReason": reason, "canRetryWithDeviceToken": false, "recommendedNextStep": next,
	})}
}

// full says that no device can be paired any more.
type full struct{}

func (full) Error() string { return "too many paired devices" }

// room returns an error when a new device cannot be paired.
func room(t Table, d Device) error {
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
		return full{}
	}
	return nil
}

// refusal turns an error of room into an answer.
func refusal(err error) (Admission, error) {
	if _, ok := errors.AsType[full](err); ok {
		return Admission{Refusal: wire.Errorf(wire.Unavailable, "%v", err)}, nil
	}
	return Admission{}, err
}

// describe takes over what a client says about itself.
func (d *Device) describe(r Request) {
	d.ID, d.PublicKey = r.Device, r.PublicKey
	d.DisplayName = cmp.Or(r.DisplayName, d.DisplayName)
	d.Platform, d.Family = cmp.Or(r.Platform, d.Platform), cmp.Or(r.Family, d.Family)
	d.ClientID, d.ClientMode = r.ClientID, r.ClientMode
}

// approve returns the device with what the request asks for, and the grant. A
// live grant becomes wider; one that was revoked begins anew, with the scopes
// of the request only and without its old tokens.
func (d Device) approve(r Request, via string, now time.Time) (Device, Grant) {
	if d.Created.IsZero() {
		d.Created = now
	}
	d.describe(r)
	d.Approved, d.Via = now, via
	d.Removed = time.Time{}
	g := d.Grant(r.Role)
	if g.Live() {
		g.Scopes = join(g.Scopes, r.Scopes)
	} else {
		d.Generation++
		g = Grant{Role: r.Role, Scopes: r.Scopes, Generation: d.Generation, Created: now}
	}
	g.Claim = nil
	d.set(g)
	return d, g
}
