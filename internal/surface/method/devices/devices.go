// Package devices implements the methods that manage paired devices, and what
// those of them that are nodes offer.
package devices

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
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
	// Drop closes the connections of a credential; see gateway.Server.Drop.
	Drop func(credential string, last func())
	// Stop aborts the runs started with a credential.
	Stop func(ctx context.Context, credential string) error
	// Connected reports whether a credential is connected in a role; "": in any.
	Connected func(credential, role string) bool
	// Endpoint returns the authentication mode and the URL at which other
	// machines reach the gateway; "": they cannot.
	Endpoint func() (mode, url string)
	// Page returns the address of the web page for this machine, and whether the page takes
	// setup codes; "": there is no page.
	Page func() (url string, codes bool)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o, newWaits()}
	n := nodes{m}
	return []rpc.Method{
		rpc.New(wire.MethodDevicePairList, wire.RoleOperator, chela.ScopePairing, m.list).Reads(),
		rpc.New(wire.MethodDevicePairApprove, wire.RoleOperator, chela.ScopePairing, m.approve),
		rpc.New(wire.MethodDevicePairReject, wire.RoleOperator, chela.ScopePairing, m.reject),
		rpc.New(wire.MethodDevicePairRemove, wire.RoleOperator, chela.ScopePairing, m.remove),
		rpc.New(wire.MethodDevicePairRename, wire.RoleOperator, chela.ScopePairing, m.rename),
		rpc.New(wire.MethodDeviceSetupCode, wire.RoleOperator, chela.ScopeAdmin,
			m.setup).Ignoring("preferRemoteUrl", "includeQr"),
		rpc.New(wire.MethodDeviceSetupState, wire.RoleOperator, chela.ScopeAdmin, m.setupState).Reads(),
		rpc.New(wire.MethodDeviceTokenRotate, wire.RoleOperator, chela.ScopePairing, m.rotate),
		rpc.New(wire.MethodDeviceTokenRevoke, wire.RoleOperator, chela.ScopePairing, m.revoke),
		rpc.New(wire.MethodDeviceUpgrade, wire.RoleOperator, chela.ScopeRead, m.requestUpgrade).Changes(),
		rpc.New(wire.MethodDeviceUpgradeWait, wire.RoleOperator, chela.ScopeRead, m.waitUpgrade),
		rpc.New(wire.MethodNodeList, wire.RoleOperator, chela.ScopeRead, n.list),
		rpc.New(wire.MethodNodeDescribe, wire.RoleOperator, chela.ScopeRead, n.describe),
		rpc.New(wire.MethodNodeRename, wire.RoleOperator, chela.ScopePairing, n.rename),
		rpc.New(wire.MethodNodePairList, wire.RoleOperator, chela.ScopePairing, n.pairs).Reads(),
		rpc.New(wire.MethodNodePairApprove, wire.RoleOperator, chela.ScopePairing, n.approve),
		rpc.New(wire.MethodNodePairReject, wire.RoleOperator, chela.ScopePairing, n.reject),
		rpc.New(wire.MethodNodePairRemove, wire.RoleOperator, chela.ScopePairing, n.remove),
	}
}

type methods struct {
	o     Options
	waits *waits
}

func (m methods) list(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.DevicePairs, error) {
	var out wire.DevicePairs
	who, now := chela.PrincipalFrom(ctx), time.Now()
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		out = wire.DevicePairs{Pending: []wire.PairRequest{}, Paired: []wire.PairedDevice{}}
		waiting, err := r.Devices().Requests()
		if err != nil {
			return err
		}
		for _, q := range waiting {
			if !q.Expired(now) && pairing.MaySee(who, q.Device) {
				out.Pending = append(out.Pending, wireview.PairRequest(q))
			}
		}
		all, err := r.Devices().Devices()
		for _, d := range all {
			if d.Paired() && pairing.MaySee(who, d.ID) {
				out.Paired = append(out.Paired, m.device(d))
			}
		}
		return err
	})
	return out, err
}

// update changes devices on behalf of the principal in ctx. The change is on
// disk when it returns.
func (m methods) update(ctx context.Context, f func(t store.Tx, who chela.Principal, now time.Time) error) error {
	who, now := chela.PrincipalFrom(ctx), time.Now()
	return m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return f(tx, who, now) })
}

// change is [methods.update] for a change that returns a value.
func change[T any](ctx context.Context, m methods,
	f func(t store.Tx, who chela.Principal, now time.Time) (T, error)) (v T, err error) {
	err = m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		v, err = f(tx, who, now)
		return err
	})
	return v, err
}

// connected reports whether a device is connected in a role; "": in any.
func (m methods) connected(d pairing.Device, role string) bool {
	return m.o.Connected(pairing.Credential(d.ID), role)
}

func (m methods) approve(ctx context.Context, _ rpc.Peer, in wire.DeviceRequestID) (wire.DeviceApproved, error) {
	var q pairing.Request
	var d pairing.Device
	err := m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		q, d, err = pairing.Approve(tx.Devices(), who, in.ID, now)
		return err
	})
	if err != nil {
		return wire.DeviceApproved{}, err
	}
	m.decided(q, wire.PairApproved, d.Approved)
	return wire.DeviceApproved{ID: q.ID, Device: m.device(d)}, nil
}

func (m methods) reject(ctx context.Context, _ rpc.Peer, in wire.DeviceRequestID) (wire.DeviceRejected, error) {
	q, err := change(ctx, m, func(tx store.Tx, who chela.Principal, now time.Time) (pairing.Request, error) {
		return pairing.Reject(tx.Devices(), who, in.ID, now)
	})
	if err != nil {
		return wire.DeviceRejected{}, err
	}
	m.decided(q, wire.PairRejected, time.Now())
	return wire.DeviceRejected{ID: q.ID, Device: q.Device}, nil
}

func (m methods) remove(ctx context.Context, p rpc.Peer, in wire.DeviceID) (wire.DeviceID, error) {
	var q *pairing.Request
	err := m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		if _, q, err = pairing.Remove(tx.Devices(), who, in.ID, now); err != nil {
			return err
		}
		return cancel(tx.Queue(), in.ID)
	})
	if err != nil {
		return wire.DeviceID{}, err
	}
	if q != nil {
		m.decided(*q, wire.PairRejected, time.Now())
	}
	m.drop(ctx, p, in.ID, in)
	return in, m.stop(ctx, in.ID)
}

func (m methods) rotate(ctx context.Context, p rpc.Peer, in wire.DeviceRotate) (wire.DeviceRotated, error) {
	var scopes []chela.Scope
	if in.Scopes != nil {
		scopes = pairing.KnownScopes(*in.Scopes)
		if len(scopes) != len(*in.Scopes) {
			return wire.DeviceRotated{}, rpc.Invalid("at /scopes: must be existing scopes, each once")
		}
	}
	var g pairing.Grant
	var token string
	err := m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		g, token, err = pairing.Rotate(tx.Devices(), who, in.ID, in.Role, scopes, now)
		return err
	})
	if err != nil {
		return wire.DeviceRotated{}, err
	}
	out := wire.DeviceRotated{
		ID:        in.ID,
		Role:      g.Role,
		Scopes:    wireview.Scopes(g.Scopes),
		RotatedAt: wire.At(g.Rotated),
		Token:     token,
		Delivery:  wire.TokenWithheld,
	}
	if token != "" {
		out.Delivery = wire.TokenReturned
	}
	m.drop(ctx, p, in.ID, out)
	return out, nil
}

func (m methods) revoke(ctx context.Context, p rpc.Peer, in wire.DeviceRole) (wire.DeviceRevoked, error) {
	var g pairing.Grant
	err := m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		if g, err = pairing.Revoke(tx.Devices(), who, in.ID, in.Role, now); err != nil || in.Role != wire.RoleOperator {
			return err
		}
		return cancel(tx.Queue(), in.ID)
	})
	if err != nil {
		return wire.DeviceRevoked{}, err
	}
	out := wire.DeviceRevoked{ID: in.ID, Role: g.Role, RevokedAt: wire.At(g.Revoked)}
	m.drop(ctx, p, in.ID, out)
	if in.Role != wire.RoleOperator {
		return out, nil
	}
	return out, m.stop(ctx, in.ID)
}

// drop closes the device's connections. If the device itself made the request,
// it is answered first.
func (m methods) drop(ctx context.Context, p rpc.Peer, device string, answer any) {
	var last func()
	if self, ok := pairing.DeviceOf(chela.PrincipalFrom(ctx)); ok && self == device {
		last = func() { p.Accept(answer) }
	}
	m.o.Drop(pairing.Credential(device), last)
}

// stop aborts the runs started by a device. It ignores the end of ctx, because
// the device's own connection may have been closed.
func (m methods) stop(ctx context.Context, device string) error {
	if err := m.o.Stop(context.WithoutCancel(ctx), pairing.Credential(device)); err != nil {
		return fmt.Errorf("device %s was revoked, but its runs could not be stopped: %w", device, err)
	}
	return nil
}

// cancel removes the device's messages from the queue.
func cancel(t queue.Table, device string) error {
	keys, err := t.Sessions()
	if err != nil {
		return err
	}
	for _, key := range keys {
		items, err := t.Waiting(key)
		if err != nil {
			return err
		}
		for _, it := range items {
			if it.Kind != queue.Message || it.Principal.Credential != pairing.Credential(device) {
				continue
			}
			it.Note = "the device was revoked"
			if err := t.Set(queue.Cancelled, it); err != nil {
				return err
			}
		}
	}
	return nil
}

// decided announces the decision on a request.
func (m methods) decided(q pairing.Request, decision string, now time.Time) {
	m.waits.wake()
	m.o.Announce(wire.EventPairResolved,
		wire.PairResolved{ID: q.ID, Device: q.Device, Decision: decision, Time: wire.At(now)})
}

func (m methods) device(d pairing.Device) wire.PairedDevice {
	out := wire.PairedDevice{
		ID:          d.ID,
		PublicKey:   d.PublicKey,
		DisplayName: cmp.Or(d.Label, d.DisplayName),
		Platform:    d.Platform,
		Family:      d.Family,
		ClientID:    d.ClientID,
		ClientMode:  d.ClientMode,
		Roles:       d.Roles(),
		Scopes:      wireview.Scopes(d.Scopes()),
		ApprovedVia: d.Via,
		CreatedAt:   wire.At(d.Created),
		ApprovedAt:  wire.At(d.Approved),
		LastSeenAt:  wire.At(d.LastSeen),
		Connected:   m.connected(d, ""),
		Tokens:      []wire.DeviceToken{},
	}
	if len(out.Roles) > 0 {
		out.Role = out.Roles[len(out.Roles)-1]
	}
	if !d.LastSeen.IsZero() {
		out.LastSeen = "connect"
	}
	for _, g := range d.Grants {
		out.Tokens = append(out.Tokens, wire.DeviceToken{
			Role: g.Role, Scopes: wireview.Scopes(g.Scopes), CreatedAt: wire.At(g.Created), RotatedAt: wire.At(g.Rotated),
			RevokedAt: wire.At(g.Revoked), UsedAt: wire.At(g.Used),
		})
	}
	return out
}
