package pairing

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// How a device was approved.
const (
	ViaOwner  = "owner"  // a person decided
	ViaSilent = "silent" // it was local, and showed the secret or needed none
)

// Bounds.
const (
	// Lifetime is how long a request may be decided after it was last made.
	Lifetime = 5 * time.Minute
	// MaxRequests is how many requests may wait.
	MaxRequests = 64
	// MaxDevices is how many devices may be paired.
	MaxDevices = 1000
	// maxTokens is how many tokens of a grant work: processes of one device may
	// each have been told one at the same time.
	maxTokens = 4
)

// Device is an identified client that was approved once.
type Device struct {
	ID          string    `json:"id"`        // hex SHA-256 of the key
	PublicKey   string    `json:"publicKey"` // base64url
	DisplayName string    `json:"displayName,omitempty"`
	Label       string    `json:"label,omitempty"` // the name that a person gave it
	Platform    string    `json:"platform,omitempty"`
	Family      string    `json:"deviceFamily,omitempty"`
	ClientID    string    `json:"clientId,omitempty"`
	ClientMode  string    `json:"clientMode,omitempty"`
	Node        *Node     `json:"node,omitempty"` // nil: it never was one
	Grants      []Grant   `json:"grants"`         // one per role, revoked ones too
	Generation  int64     `json:"generation"`
	Via         string    `json:"approvedVia"`
	Created     time.Time `json:"createdAt"`
	Approved    time.Time `json:"approvedAt"`
	LastSeen    time.Time `json:"lastSeenAt,omitzero"`
	Removed     time.Time `json:"removedAt,omitzero"` // set: a tombstone
}

// Grant is what a device may do in one role.
type Grant struct {
	Role       string        `json:"role"`
	Scopes     []chela.Scope `json:"scopes"`
	Generation int64         `json:"generation"` // rises when it is rotated or revoked; of all grants of the device together
	Created    time.Time     `json:"createdAt"`
	Rotated    time.Time     `json:"rotatedAt,omitzero"`
	Used       time.Time     `json:"usedAt,omitzero"` // a token was shown
	Revoked    time.Time     `json:"revokedAt,omitzero"`
	Held       bool          `json:"held,omitempty"`   // a person cut it down: only a person widens it
	Tokens     []string      `json:"tokens,omitempty"` // hashes of the tokens that work, the newest last
	Claim      *Claim        `json:"claim,omitempty"`  // nil: no token is to be asked for
}

// Live reports whether the grant counts.
func (g Grant) Live() bool { return g.Role != "" && g.Revoked.IsZero() }

// Live reports whether the device may connect in some role.
func (d Device) Live() bool {
	return d.Removed.IsZero() && slices.ContainsFunc(d.Grants, Grant.Live)
}

// Grant returns the grant of a role; a zero one when there is none.
func (d Device) Grant(role string) Grant {
	if i := d.index(role); i >= 0 {
		return d.Grants[i]
	}
	return Grant{}
}

// Roles returns the roles of live grants.
func (d Device) Roles() []string {
	roles := []string{}
	for _, g := range d.Grants {
		if g.Live() {
			roles = append(roles, g.Role)
		}
	}
	return roles
}

// Scopes returns the scopes of all live grants.
func (d Device) Scopes() []chela.Scope {
	scopes := []chela.Scope{}
	for _, g := range d.Grants {
		if g.Live() {
			scopes = append(scopes, g.Scopes...)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

func (d Device) index(role string) int {
	return slices.IndexFunc(d.Grants, func(g Grant) bool { return g.Role == role })
}

// set stores a grant by its role.
func (d *Device) set(g Grant) {
	d.Grants = slices.Clone(d.Grants)
	if i := d.index(g.Role); i >= 0 {
		d.Grants[i] = g
	} else {
		d.Grants = append(d.Grants, g)
	}
}

// bury takes a grant away, with its tokens.
func (d *Device) bury(g Grant, now time.Time) Grant {
	d.Generation++
	g.Generation, g.Revoked, g.Tokens = d.Generation, now, nil
	d.set(g)
	return g
}

// Request is a device that waits for approval.
type Request struct {
	ID          string        `json:"id"`
	Device      string        `json:"deviceId"`
	PublicKey   string        `json:"publicKey"`
	DisplayName string        `json:"displayName,omitempty"`
	Platform    string        `json:"platform,omitempty"`
	Family      string        `json:"deviceFamily,omitempty"`
	ClientID    string        `json:"clientId,omitempty"`
	ClientMode  string        `json:"clientMode,omitempty"`
	Role        string        `json:"role"`
	Scopes      []chela.Scope `json:"scopes"`
	Silent      bool          `json:"silent,omitempty"`   // from this machine
	Repair      bool          `json:"isRepair,omitempty"` // the device was approved before
	Time        time.Time     `json:"ts"`                 // of the last time it asked
}

// Expired reports whether the request can no longer be decided.
func (r Request) Expired(now time.Time) bool { return !now.Before(r.Time.Add(Lifetime)) }

// Reader reads devices.
type Reader interface {
	// Device returns a device, a tombstone too, or chela.ErrNotFound.
	Device(id string) (Device, error)
	// Devices returns all devices, tombstones too, by time of creation.
	Devices() ([]Device, error)
	// Request returns a request, or chela.ErrNotFound.
	Request(id string) (Request, error)
	// Requests returns all requests, the oldest first.
	Requests() ([]Request, error)
	// Invites returns the invitations as they were put.
	Invites() ([]Invite, error)
}

// Table is the devices inside a transaction.
type Table interface {
	Reader
	// PutDevice stores a device by its id.
	PutDevice(Device) error
	// PutRequest stores a request by its id. It replaces another one of the
	// same device.
	PutRequest(Request) error
	// DropRequest deletes a request, when there is one.
	DropRequest(id string) error
	// PutInvites stores the invitations in the place of all that there were.
	PutInvites([]Invite) error
}
