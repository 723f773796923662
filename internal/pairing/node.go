package pairing

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// Node is what a device in the role of a node says that it can do, and what of
// it a person approved: a second gate behind the device's own approval.
type Node struct {
	Version  string       `json:"version,omitempty"`
	Declared Surface      `json:"declared"`            // with its last connection
	Approved Surface      `json:"approved"`            // the only part that counts
	Since    time.Time    `json:"approvedAt,omitzero"` // of the approval; zero: none
	Created  time.Time    `json:"createdAt"`
	Asked    *NodeRequest `json:"asked,omitempty"`
}

// Surface is what a node can do: classes of abilities and single commands.
type Surface struct {
	Caps     []string `json:"caps"`
	Commands []string `json:"commands"`
}

// NodeRequest is a surface that waits for a person.
type NodeRequest struct {
	ID string `json:"id"`
	Surface
	Time time.Time `json:"ts"` // of the last connection with it
}

// Expired reports whether the request can no longer be decided.
func (r NodeRequest) Expired(now time.Time) bool { return !now.Before(r.Time.Add(Lifetime)) }

// Scopes returns what who approves the request must hold. Commands that run
// programs are as good as a login.
func (r NodeRequest) Scopes() []chela.Scope {
	switch {
	case slices.ContainsFunc(r.Commands, func(c string) bool { return strings.HasPrefix(c, "system.run") || c == "system.which" }):
		return []chela.Scope{chela.ScopePairing, chela.ScopeAdmin}
	case len(r.Commands) > 0:
		return []chela.Scope{chela.ScopePairing, chela.ScopeWrite}
	}
	return []chela.Scope{chela.ScopePairing}
}

// Surface returns what of the declared surface is approved.
func (n Node) Surface() Surface { return n.Declared.meet(n.Approved) }

func (s Surface) meet(t Surface) Surface {
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

// Bounds of a surface.
const (
	maxNames = 256
	maxName  = 128
)

// NewSurface returns what a client declares, sorted, each name once. It fails
// when that is too much to be looked at by a person.
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
			return s, chela.Errorf(chela.CodeInvalid, "a node declares more than %d names, or one that is not 1 to %d bytes long", maxNames, maxName)
		}
		*part.to = names
	}
	return s, nil
}

// Declare notes what a node that was let in says it can do. What goes beyond
// what a person approved waits: the request is in the Admission when it is a
// new one, with the one that it takes the place of.
func Declare(t Table, a Admission, s Surface, version string, now time.Time) (Admission, error) {
	d, err := t.Device(a.Pass.Device)
	if err != nil {
		return a, fmt.Errorf("device %s: %w", a.Pass.Device, err)
	}
	n := Node{Created: now}
	if d.Node != nil {
		n = *d.Node
	}
	n.Declared, n.Version = s, version
	old := n.Asked
	if old != nil && old.Expired(now) {
		old = nil
	}
	switch {
	case !n.Since.IsZero() && n.Surface().equal(s):
		n.Asked = nil
	case old != nil && old.equal(s):
		n.Asked = &NodeRequest{ID: old.ID, Surface: s, Time: now}
		old = nil
	default:
		n.Asked = &NodeRequest{ID: rand.Text(), Surface: s, Time: now}
		a.NodeRequested = n.Asked
	}
	a.NodeSuperseded = old
	d.Node = &n
	a.Device = d
	if err := t.PutDevice(d); err != nil {
		return a, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return a, nil
}

// ApproveNode approves what a node asked to be able to do.
func ApproveNode(t Table, who chela.Principal, request string, now time.Time) (NodeRequest, Device, error) {
	d, r, err := asked(t, who, request, now)
	if err != nil {
		return NodeRequest{}, Device{}, err
	}
	if missing := beyond(who, r.Scopes()); missing != "" {
		return NodeRequest{}, Device{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", missing)
	}
	n := *d.Node
	n.Approved, n.Since, n.Asked = r.Surface, now, nil
	d.Node = &n
	if err := t.PutDevice(d); err != nil {
		return NodeRequest{}, Device{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return r, d, nil
}

// RejectNode deletes what a node asked for. What it was approved for before it
// keeps.
func RejectNode(t Table, who chela.Principal, request string, now time.Time) (NodeRequest, Device, error) {
	d, r, err := asked(t, who, request, now)
	if err != nil {
		return NodeRequest{}, Device{}, err
	}
	n := *d.Node
	n.Asked = nil
	d.Node = &n
	if err := t.PutDevice(d); err != nil {
		return NodeRequest{}, Device{}, fmt.Errorf("device %s: %w", d.ID, err)
	}
	return r, d, nil
}

// RemoveNode takes away what a node was approved for, and the device's grant
// for that role: it comes back when a person approves both.
func RemoveNode(t Table, who chela.Principal, device string, now time.Time) (Device, error) {
	d, g, err := granted(t, who, device, wire.RoleNode)
	if chela.CodeOf(err) == chela.CodeNotFound {
		return Device{}, chela.Errorf(chela.CodeNotFound, "unknown nodeId")
	}
	if err != nil {
		return Device{}, err
	}
	d.bury(g, now)
	d.Node = nil
	if err := t.PutDevice(d); err != nil {
		return Device{}, fmt.Errorf("device %s: %w", device, err)
	}
	return d, nil
}

// Nodes returns the devices that may connect in the role of a node, by time of
// creation.
func Nodes(r Reader) ([]Device, error) {
	all, err := r.Devices()
	if err != nil {
		return nil, fmt.Errorf("devices: %w", err)
	}
	return slices.DeleteFunc(all, func(d Device) bool { return !d.Live() || !d.Grant(wire.RoleNode).Live() }), nil
}

// asked returns a node's request that who may decide, and the node.
func asked(t Table, who chela.Principal, id string, now time.Time) (Device, NodeRequest, error) {
	if who.ID == "" || !who.May(chela.ScopePairing) {
		return Device{}, NodeRequest{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopePairing)
	}
	nodes, err := Nodes(t)
	if err != nil {
		return Device{}, NodeRequest{}, err
	}
	for _, d := range nodes {
		if d.Node != nil && d.Node.Asked != nil && d.Node.Asked.ID == id && !d.Node.Asked.Expired(now) {
			return d, *d.Node.Asked, nil
		}
	}
	return Device{}, NodeRequest{}, chela.Errorf(chela.CodeNotFound, "unknown requestId")
}

// Rename gives a device a name of the person's choice.
func Rename(t Table, who chela.Principal, device, name string) (Device, error) {
	d, err := managed(t, who, device)
	if err != nil {
		return Device{}, err
	}
	d.Label = strings.TrimSpace(name)
	if d.Label == "" || len(d.Label) > maxLabel || strings.ContainsFunc(d.Label, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Device{}, chela.Errorf(chela.CodeInvalid, "a name is 1 to %d bytes on one line", maxLabel)
	}
	if err := t.PutDevice(d); err != nil {
		return Device{}, fmt.Errorf("device %s: %w", device, err)
	}
	return d, nil
}

// maxLabel bounds the name that a person gives a device.
const maxLabel = 64
