// Package nodes implements the methods that list nodes and approve what they
// declare.
package nodes

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

// Options configures the methods. All fields are required.
type Options struct {
	Store store.Store
	// Announce sends an event to clients that may manage devices.
	Announce func(event string, payload any)
	// Drop closes the connections of a credential.
	Drop func(credential string)
	// Connected reports whether a device is connected in a role.
	Connected func(device, role string) bool
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodNodeList, op, chela.ScopeRead, m.list),
		rpc.New(wire.MethodNodeDescribe, op, chela.ScopeRead, m.describe),
		rpc.New(wire.MethodNodeRename, op, chela.ScopePairing, m.rename),
		rpc.New(wire.MethodNodePairList, op, chela.ScopePairing, m.pairs),
		rpc.New(wire.MethodNodePairApprove, op, chela.ScopePairing, m.approve),
		rpc.New(wire.MethodNodePairReject, op, chela.ScopePairing, m.reject),
		rpc.New(wire.MethodNodePairRemove, op, chela.ScopePairing, m.remove),
	}
}

type methods struct{ o Options }

// nodes returns the devices that are nodes.
func (m methods) nodes(ctx context.Context) ([]pairing.Device, error) {
	return store.Get(ctx, m.o.Store, func(r store.Reader) ([]pairing.Device, error) { return pairing.Nodes(r.Devices()) })
}

func (m methods) node(d pairing.Device, now time.Time) wire.Node {
	return wireview.Node(d, m.o.Connected(d.ID, wire.RoleNode), now)
}

func (m methods) list(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.Nodes, error) {
	now := time.Now()
	out := wire.Nodes{Time: wire.At(now), Nodes: []wire.Node{}}
	all, err := m.nodes(ctx)
	for _, d := range all {
		out.Nodes = append(out.Nodes, m.node(d, now))
	}
	return out, err
}

func (m methods) describe(ctx context.Context, _ rpc.Peer, in wire.NodeID) (wire.NodeDescription, error) {
	now := time.Now()
	all, err := m.nodes(ctx)
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

// update changes devices on behalf of the principal in ctx. The change is on
// disk when it returns.
func (m methods) update(ctx context.Context, f func(t pairing.Table, who chela.Principal, now time.Time) error) error {
	who, now := chela.PrincipalFrom(ctx), time.Now()
	return m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return f(tx.Devices(), who, now) })
}

func (m methods) rename(ctx context.Context, _ rpc.Peer, in wire.NodeRename) (wire.NodeRename, error) {
	var d pairing.Device
	err := m.update(ctx, func(t pairing.Table, who chela.Principal, _ time.Time) (err error) {
		d, err = pairing.Rename(t, who, in.ID, in.Name)
		return err
	})
	if chela.CodeOf(err) == chela.CodeNotFound {
		err = wire.Errorf(wire.InvalidRequest, "unknown nodeId")
	}
	return wire.NodeRename{ID: in.ID, Name: d.Label}, err
}

func (m methods) pairs(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.NodePairs, error) {
	who, now := chela.PrincipalFrom(ctx), time.Now()
	out := wire.NodePairs{Pending: []wire.NodeRequest{}, Paired: []wire.PairedNode{}}
	all, err := m.nodes(ctx)
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

func (m methods) approve(ctx context.Context, _ rpc.Peer, in wire.DeviceRequestID) (wire.NodeApprovedResult, error) {
	var d pairing.Device
	err := m.update(ctx, func(t pairing.Table, who chela.Principal, now time.Time) (err error) {
		_, d, err = pairing.ApproveNode(t, who, in.ID, now)
		return err
	})
	if err != nil {
		return wire.NodeApprovedResult{}, err
	}
	m.resolved(in.ID, d.ID, wire.PairApproved)
	return wire.NodeApprovedResult{ID: in.ID, Node: wireview.PairedNode(d)}, nil
}

func (m methods) reject(ctx context.Context, _ rpc.Peer, in wire.DeviceRequestID) (wire.NodeRejected, error) {
	var d pairing.Device
	err := m.update(ctx, func(t pairing.Table, who chela.Principal, now time.Time) (err error) {
		_, d, err = pairing.RejectNode(t, who, in.ID, now)
		return err
	})
	if err != nil {
		return wire.NodeRejected{}, err
	}
	m.resolved(in.ID, d.ID, wire.PairRejected)
	return wire.NodeRejected{ID: in.ID, Node: d.ID}, nil
}

func (m methods) remove(ctx context.Context, _ rpc.Peer, in wire.NodeID) (wire.NodeID, error) {
	err := m.update(ctx, func(t pairing.Table, who chela.Principal, now time.Time) error {
		_, err := pairing.RemoveNode(t, who, in.ID, now)
		return err
	})
	if err != nil {
		return wire.NodeID{}, err
	}
	m.o.Drop(pairing.Credential(in.ID))
	return in, nil
}

func (m methods) resolved(request, node, decision string) {
	m.o.Announce(wire.EventNodePairResolved, wire.NodePairResolved{ID: request, Node: node, Decision: decision, Time: wire.At(time.Now())})
}
