package devices

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// nodes implements the methods about the devices that are nodes.
type nodes struct{ methods }

// all returns the devices that are nodes.
func (m nodes) all(ctx context.Context) ([]pairing.Device, error) {
	return store.Get(ctx, m.o.Store, func(r store.Reader) ([]pairing.Device, error) { return pairing.Nodes(r.Devices()) })
}

func (m nodes) node(d pairing.Device, now time.Time) wire.Node {
	return wireview.Node(d, m.connected(d, wire.RoleNode), now)
}

func (m nodes) list(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.Nodes, error) {
	now := time.Now()
	out := wire.Nodes{Time: wire.At(now), Nodes: []wire.Node{}}
	all, err := m.all(ctx)
	for _, d := range all {
		out.Nodes = append(out.Nodes, m.node(d, now))
	}
	return out, err
}

func (m nodes) describe(ctx context.Context, _ rpc.Peer, in wire.NodeID) (wire.NodeDescription, error) {
	now := time.Now()
	all, err := m.all(ctx)
	if err != nil {
		return wire.NodeDescription{}, err
	}
	for _, d := range all {
		if d.ID == in.ID {
			return wire.NodeDescription{Time: wire.At(now), Node: m.node(d, now)}, nil
		}
	}
	return wire.NodeDescription{}, wire.Errorf(wire.InvalidRequest, "unknown nodeId")
}

func (m nodes) rename(ctx context.Context, _ rpc.Peer, in wire.NodeRename) (wire.NodeRename, error) {
	d, err := change(ctx, m.methods, func(tx store.Tx, who chela.Principal, _ time.Time) (pairing.Device, error) {
		return pairing.Rename(tx.Devices(), who, in.ID, in.Name)
	})
	if chela.CodeOf(err) == chela.CodeNotFound {
		err = wire.Errorf(wire.InvalidRequest, "unknown nodeId")
	}
	return wire.NodeRename{ID: in.ID, Name: d.Label}, err
}

func (m nodes) pairs(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.NodePairs, error) {
	who, now := chela.PrincipalFrom(ctx), time.Now()
	out := wire.NodePairs{Pending: []wire.NodeRequest{}, Paired: []wire.PairedNode{}}
	all, err := m.all(ctx)
	for _, d := range all {
		if d.Node == nil || !pairing.MaySee(who, d.ID) {
			continue
		}
		if r := d.Node.Request; r != nil && !r.Expired(now) {
			out.Pending = append(out.Pending, wireview.NodeRequest(d, *r))
		}
		if !d.Node.Since.IsZero() {
			out.Paired = append(out.Paired, wireview.PairedNode(d))
		}
	}
	return out, err
}

func (m nodes) approve(ctx context.Context, _ rpc.Peer, in wire.DeviceRequestID) (wire.NodeApprovedResult, error) {
	d, err := change(ctx, m.methods, func(tx store.Tx, who chela.Principal, now time.Time) (pairing.Device, error) {
		_, d, err := pairing.ApproveNode(tx.Devices(), who, in.ID, now)
		return d, err
	})
	if err != nil {
		return wire.NodeApprovedResult{}, err
	}
	m.resolved(in.ID, d.ID, wire.PairApproved)
	return wire.NodeApprovedResult{ID: in.ID, Node: wireview.PairedNode(d)}, nil
}

func (m nodes) reject(ctx context.Context, _ rpc.Peer, in wire.DeviceRequestID) (wire.NodeRejected, error) {
	d, err := change(ctx, m.methods, func(tx store.Tx, who chela.Principal, now time.Time) (pairing.Device, error) {
		_, d, err := pairing.RejectNode(tx.Devices(), who, in.ID, now)
		return d, err
	})
	if err != nil {
		return wire.NodeRejected{}, err
	}
	m.resolved(in.ID, d.ID, wire.PairRejected)
	return wire.NodeRejected{ID: in.ID, Node: d.ID}, nil
}

func (m nodes) remove(ctx context.Context, _ rpc.Peer, in wire.NodeID) (wire.NodeID, error) {
	_, err := change(ctx, m.methods, func(tx store.Tx, who chela.Principal, now time.Time) (pairing.Device, error) {
		return pairing.RemoveNode(tx.Devices(), who, in.ID, now)
	})
	if err != nil {
		return wire.NodeID{}, err
	}
	m.o.Drop(pairing.Credential(in.ID), nil)
	return in, nil
}

func (m nodes) resolved(request, node, decision string) {
	m.o.Announce(wire.EventNodePairResolved,
		wire.NodePairResolved{ID: request, Node: node, Decision: decision, Time: wire.At(time.Now())})
}
