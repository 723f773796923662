package wireview

import (
	"cmp"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/wire"
)

// Node returns a device in the role of a node.
func Node(d pairing.Device, connected bool, now time.Time) wire.Node {
	n := d.Node
	if n == nil {
		n = &pairing.Node{}
	}
	s := n.Surface()
	w := wire.Node{
		NodeClient: nodeClient(d, n),
		Caps:       s.Caps,
		Commands:   s.Commands,
		Approval:   wire.NodeUnapproved,
		Paired:     true,
		Connected:  connected,
		LastSeenAt: wire.At(d.LastSeen),
		ApprovedAt: wire.At(n.Since),
	}
	if !d.LastSeen.IsZero() {
		w.LastSeen = "connect"
	}
	waits := n.Request != nil && !n.Request.Expired(now)
	switch {
	case waits && n.Since.IsZero():
		w.Approval = wire.NodePending
	case waits:
		w.Approval = wire.NodeReapproval
	case !n.Since.IsZero():
		w.Approval = wire.NodeApproved
	}
	if waits {
		w.Pending = n.Request.ID
	}
	return w
}

// NodeRequest returns a node's request for approval.
func NodeRequest(d pairing.Device, r pairing.NodeRequest) wire.NodeRequest {
	w := wire.NodeRequest{
		ID:         r.ID,
		NodeClient: nodeClient(d, d.Node),
		Caps:       r.Caps,
		Commands:   r.Commands,
		Time:       wire.At(r.Time),
	}
	w.Required = Scopes(r.Scopes())
	return w
}

// PairedNode returns an approved node.
func PairedNode(d pairing.Device) wire.PairedNode {
	w := wire.PairedNode{
		NodeClient: nodeClient(d, d.Node), Caps: d.Node.Approved.Caps, Commands: d.Node.Approved.Commands,
		CreatedAt: wire.At(d.Node.Created), ApprovedAt: wire.At(d.Node.Since), LastSeenAt: wire.At(d.LastSeen),
	}
	if !d.LastSeen.IsZero() {
		w.LastSeen = "connect"
	}
	return w
}

func nodeClient(d pairing.Device, n *pairing.Node) wire.NodeClient {
	w := wire.NodeClient{
		ID:          d.ID,
		DisplayName: cmp.Or(d.Label, d.DisplayName),
		Platform:    d.Platform,
		ClientID:    d.ClientID,
		ClientMode:  d.ClientMode,
		Family:      d.Family,
	}
	if n != nil {
		w.Version = n.Version
	}
	return w
}

// Scopes returns the names of scopes.
func Scopes(scopes []chela.Scope) []string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = string(s)
	}
	return out
}
