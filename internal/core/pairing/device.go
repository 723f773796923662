package pairing

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Ways in which a device was approved.
const (
	ViaOwner  = "owner"  // by a person
	ViaSilent = "silent" // automatically, as a local device
	ViaImport = "import" // by another gateway, from which it was taken over
)

// Limits.
const (
	// Lifetime is how long a request stays pending after it was last made.
	Lifetime = 5 * time.Minute
	// MaxRequests is the number of requests that can be pending.
	MaxRequests = 64
	// MaxDevices is the number of devices that can be paired.
	MaxDevices = 1000
	// maxTokens is the number of valid tokens of a grant: several processes of
	// one device may each have received one at the same time.
	maxTokens = 4
)

// Device is an identified client that was approved at least once.
type Device struct {
	ID          string    `json:"id"`        // hex SHA-256 of the key
	PublicKey   string    `json:"publicKey"` // base64url
	DisplayName string    `json:"displayName,omitempty"`
	Label       string    `json:"label,omitempty"` // chosen by a person
	Platform    string    `json:"platform,omitempty"`
	Family      string    `json:"deviceFamily,omitempty"`
	ClientID    string    `json:"clientId,omitempty"`
	ClientMode  string    `json:"clientMode,omitempty"`
	Node        *Node     `json:"node,omitempty"` // nil: the device was never a node
	Grants      []Grant   `json:"grants"`         // one per role, including revoked ones
	Generation  int64     `json:"generation"`
	Via         string    `json:"approvedVia"`
	Created     time.Time `json:"createdAt"`
	Approved    time.Time `json:"approvedAt"`
	LastSeen    time.Time `json:"lastSeenAt,omitzero"`
	Removed     time.Time `json:"removedAt,omitzero"` // if set, the device is a tombstone
}

// Grant is the rights of a device in one role.
type Grant struct {
	Role       string        `json:"role"`
	Scopes     []chela.Scope `json:"scopes"`
	Generation int64         `json:"generation"` // increases with each rotation and revocation; counted per device
	Created    time.Time     `json:"createdAt"`
	Rotated    time.Time     `json:"rotatedAt,omitzero"`
	Used       time.Time     `json:"usedAt,omitzero"` // last use of a token
	Revoked    time.Time     `json:"revokedAt,omitzero"`
	Narrowed   bool          `json:"held,omitempty"`   // a person narrowed it; only a person may widen it
	Tokens     []string      `json:"tokens,omitempty"` // hashes of the valid tokens, newest last
	Pending    *PendingToken `json:"claim,omitempty"`  // nil: the device cannot claim a token
}

// Live reports whether the grant is in force.
func (g Grant) Live() bool { return g.Role != "" && g.Revoked.IsZero() }

// Live reports whether the device may connect in any role.
func (d Device) Live() bool {
	return d.Removed.IsZero() && slices.ContainsFunc(d.Grants, Grant.Live)
}

// Paired reports whether the device was approved and has not been removed. If all of its
// grants are revoked, it is paired but may not connect.
func (d Device) Paired() bool { return d.ID != "" && d.Removed.IsZero() }

// Grant returns the grant of a role, or a zero Grant.
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

// revoke revokes a grant and its tokens.
func (d *Device) revoke(g Grant, now time.Time) Grant {
	d.Generation++
	g.Generation, g.Revoked, g.Tokens = d.Generation, now, nil
	d.set(g)
	return g
}

// Request is a pending request of a device for approval.
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
	Silent      bool          `json:"silent,omitempty"`   // the connection was local
	Repair      bool          `json:"isRepair,omitempty"` // the device was approved before
	Time        time.Time     `json:"ts"`                 // of the last attempt
}

// Expired reports whether the request can no longer be decided.
func (r Request) Expired(now time.Time) bool { return !now.Before(r.Time.Add(Lifetime)) }

// Reader reads devices.
type Reader interface {
	// Device returns a device, including a tombstone, or chela.ErrNotFound.
	Device(id string) (Device, error)
	// Devices returns all devices, including tombstones, by time of creation.
	Devices() ([]Device, error)
	// Request returns a request, or chela.ErrNotFound.
	Request(id string) (Request, error)
	// Requests returns all requests, oldest first.
	Requests() ([]Request, error)
	// Invites returns the invitations in stored order.
	Invites() ([]Invite, error)
}

// Table is the devices table inside a transaction.
type Table interface {
	Reader
	// PutDevice stores a device under its id.
	PutDevice(Device) error
	// DeleteDevice deletes a device, if it exists, without a tombstone.
	DeleteDevice(id string) error
	// PutRequest stores a request under its id and replaces any other request
	// of the same device.
	PutRequest(Request) error
	// DropRequest deletes a request, if it exists.
	DropRequest(id string) error
	// PutInvites replaces all stored invitations.
	PutInvites([]Invite) error
}
