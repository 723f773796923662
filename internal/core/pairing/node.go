package pairing

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// Node is the surface that a device in the node role declares and the part of
// it that a person approved. This approval is separate from the device's own.
type Node struct {
	Version  string       `json:"version,omitempty"`
	Declared Surface      `json:"declared"`            // at its last connection
	Approved Surface      `json:"approved"`            // the only part in force
	Since    time.Time    `json:"approvedAt,omitzero"` // time of the approval; zero: not approved
	Created  time.Time    `json:"createdAt"`
	Request  *NodeRequest `json:"asked,omitempty"`
}

// Surface is what a node can do: classes of capabilities, and commands.
type Surface struct {
	Caps     []string `json:"caps"`
	Commands []string `json:"commands"`
}

// NodeRequest is a surface that needs approval.
type NodeRequest struct {
	ID string `json:"id"`
	Surface
	Time time.Time `json:"ts"` // of the last connection that declared it
}

// Expired reports whether the request can no longer be decided.
func (r NodeRequest) Expired(now time.Time) bool { return !now.Before(r.Time.Add(Lifetime)) }

// Scopes returns the scopes that the approver must hold. Commands that run
// programs need admin, because they give full control of the machine.
func (r NodeRequest) Scopes() []chela.Scope {
	switch {
	case slices.ContainsFunc(r.Commands,
		func(c string) bool { return strings.HasPrefix(c, "system.run") || c == "system.which" }):
		return []chela.Scope{chela.ScopePairing, chela.ScopeAdmin}
	case len(r.Commands) > 0:
		return []chela.Scope{chela.ScopePairing, chela.ScopeWrite}
	}
	return []chela.Scope{chela.ScopePairing}
}

// Surface returns the approved part of the declared surface.
func (n Node) Surface() Surface { return n.Declared.intersect(n.Approved) }

func (s Surface) intersect(t Surface) Surface {
	return Surface{Caps: common(s.Caps, t.Caps), Commands: common(s.Commands, t.Commands)}
}

func (s Surface) equal(t Surface) bool {
	return slices.Equal(s.Caps, t.Caps) && slices.Equal(s.Commands, t.Commands)
}

func common(a, b []string) []string {
	out := []string{}
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// Limits of a surface.
const (
	maxNames = 256
	maxName  = 128
)

// NewSurface returns the declared names, sorted and without duplicates. It
// fails if there are more than a person can review.
func NewSurface(caps, commands []string) (Surface, error) {
	var s Surface
	for _, part := range [...]struct {
		from []string
		to   *[]string
	}{{caps, &s.Caps}, {commands, &s.Commands}} {
		names := append([]string{}, part.from...)
		slices.Sort(names)
		names = slices.Compact(names)
		if len(names) > maxNames || slices.ContainsFunc(names, func(n string) bool { return n == "" || len(n) > maxName }) {
			return s, chela.Errorf(chela.CodeInvalid, "a node may declare at most %d names of 1 to %d bytes", maxNames, maxName)
		}
		*part.to = names
	}
	return s, nil
}

// Declare records the surface of a connected node. A surface that exceeds the
// approved one becomes a request. The Admission contains the request if it is
// new, and the request that it replaced.
func Declare(t Table, a Admission, s Surface, version string, now time.Time) (Admission, error) {
	d, err := t.Device(a.Access.Device)
	if err != nil {
		return a, fmt.Errorf("device %s: %w", a.Access.Device, err)
	}
	n := Node{Created: now}
	if d.Node != nil {
		n = *d.Node
	}
	n.Declared, n.Version = s, version
	old := n.Request
	if old != nil && old.Expired(now) {
		old = nil
	}
	switch {
	case !n.Since.IsZero() && n.Surface().equal(s):
		n.Request = nil
	case old != nil && old.equal(s):
		n.Request = &NodeRequest{ID: old.ID, Surface: s, Time: now}
		old = nil
	default:
		n.Request = &NodeRequest{ID: rand.Text(), Surface: s, Time: now}
		a.NodeRequested = n.Request
	}
	a.NodeSuperseded = old
	d.Node = &n
	a.Device = d
	if err := t.PutDevice(d); err != nil {
		return a, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return a, nil
}

// ApproveNode approves the surface that a node requested.
func ApproveNode(t Table, who chela.Principal, request string, now time.Time) (NodeRequest, Device, error) {
	d, r, err := findNodeRequest(t, who, request, now)
	if err != nil {
		return NodeRequest{}, Device{}, err
	}
	if missing := missingScope(who, r.Scopes()); missing != "" {
		return NodeRequest{}, Device{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", missing)
	}
	n := *d.Node
	n.Approved, n.Since, n.Request = r.Surface, now, nil
	d.Node = &n
	if err := t.PutDevice(d); err != nil {
		return NodeRequest{}, Device{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return r, d, nil
}

// RejectNode deletes a node's request. The approved surface remains.
func RejectNode(t Table, who chela.Principal, request string, now time.Time) (NodeRequest, Device, error) {
	d, r, err := findNodeRequest(t, who, request, now)
	if err != nil {
		return NodeRequest{}, Device{}, err
	}
	n := *d.Node
	n.Request = nil
	d.Node = &n
	if err := t.PutDevice(d); err != nil {
		return NodeRequest{}, Device{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return r, d, nil
}

// RemoveNode revokes a node's approved surface and the device's grant for the
// node role. A person has to approve both again.
func RemoveNode(t Table, who chela.Principal, device string, now time.Time) (Device, error) {
	d, g, err := granted(t, who, device, wire.RoleNode)
	if chela.CodeOf(err) == chela.CodeNotFound {
		return Device{}, chela.Errorf(chela.CodeNotFound, "unknown nodeId")
	}
	if err != nil {
		return Device{}, err
	}
	d.revoke(g, now)
	d.Node = nil
	if len(d.Grants) == 1 { // it was nothing but a node
		d.Removed = now
	}
	if err := t.PutDevice(d); err != nil {
		return Device{}, fmt.Errorf("device %s: %w", device, err)
	}
	return d, nil
}

// Nodes returns the devices that may connect as nodes, by time of creation.
func Nodes(r Reader) ([]Device, error) {
	all, err := r.Devices()
	if err != nil {
		return nil, fmt.Errorf("devices: %w", err)
	}
	return slices.DeleteFunc(all, func(d Device) bool { return !d.Live() || !d.Grant(wire.RoleNode).Live() }), nil
}

// findNodeRequest returns a node's request if the principal may decide it, and the node.
func findNodeRequest(t Table, who chela.Principal, id string, now time.Time) (Device, NodeRequest, error) {
	if who.ID == "" || !who.May(chela.ScopePairing) {
		return Device{}, NodeRequest{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopePairing)
	}
	nodes, err := Nodes(t)
	if err != nil {
		return Device{}, NodeRequest{}, err
	}
	for _, d := range nodes {
		if d.Node != nil && d.Node.Request != nil && d.Node.Request.ID == id && !d.Node.Request.Expired(now) {
			return d, *d.Node.Request, nil
		}
	}
	return Device{}, NodeRequest{}, chela.Errorf(chela.CodeNotFound, "unknown requestId")
}

// Rename sets the label of a device.
func Rename(t Table, who chela.Principal, device, name string) (Device, error) {
	d, err := managed(t, who, device)
	if err != nil {
		return Device{}, err
	}
	d.Label = strings.TrimSpace(name)
	if d.Label == "" || len(d.Label) > maxLabel ||
		strings.ContainsFunc(d.Label, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Device{}, chela.Errorf(chela.CodeInvalid, "a name is 1 to %d bytes on one line", maxLabel)
	}
	if err := t.PutDevice(d); err != nil {
		return Device{}, fmt.Errorf("device %s: %w", device, err)
	}
	return d, nil
}

// maxLabel is the maximum length of a label in bytes.
const maxLabel = 64
