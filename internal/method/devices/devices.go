// Package devices is the methods by which a person decides which devices may
// connect, and with which scopes.
package devices

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All of it is required.
type Options struct {
	Store store.Store
	// Announce tells all who may decide about devices.
	Announce func(event string, payload any)
	// Drop ends the connections that a credential let in.
	Drop func(credential string)
	// Stop ends the runs that a credential began.
	Stop func(ctx context.Context, credential string) error
	// Connected reports whether a device is connected.
	Connected func(device string) bool
	// Place says how clients prove themselves, and where other machines reach
	// the gateway; "": they do not.
	Place func() (mode, url string)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o, newWaits()}
	return []rpc.Method{
		rpc.New(wire.MethodDevicePairList, wire.RoleOperator, chela.ScopePairing, m.list),
		rpc.New(wire.MethodDevicePairApprove, wire.RoleOperator, chela.ScopePairing, m.approve),
		rpc.New(wire.MethodDevicePairReject, wire.RoleOperator, chela.ScopePairing, m.reject),
		rpc.New(wire.MethodDevicePairRemove, wire.RoleOperator, chela.ScopePairing, m.remove),
		rpc.New(wire.MethodDevicePairRename, wire.RoleOperator, chela.ScopePairing, m.rename),
		rpc.New(wire.MethodDeviceSetupCode, wire.RoleOperator, chela.ScopeAdmin, m.setup).Accepting("preferRemoteUrl", "includeQr"),
		rpc.New(wire.MethodDeviceSetupState, wire.RoleOperator, chela.ScopeAdmin, m.setupState),
		rpc.New(wire.MethodDeviceTokenRotate, wire.RoleOperator, chela.ScopePairing, m.rotate),
		rpc.New(wire.MethodDeviceTokenRevoke, wire.RoleOperator, chela.ScopePairing, m.revoke),
		rpc.New(wire.MethodDeviceWiden, wire.RoleOperator, chela.ScopeRead, m.widen),
		rpc.New(wire.MethodDeviceWidenWait, wire.RoleOperator, chela.ScopeRead, m.widened),
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
			if !q.Expired(now) && pairing.Sees(who, q.Device) {
				out.Pending = append(out.Pending, shape.PairRequest(q))
			}
		}
		all, err := r.Devices().Devices()
		for _, d := range all {
			if d.Live() && pairing.Sees(who, d.ID) {
				out.Paired = append(out.Paired, m.device(d))
			}
		}
		return err
	})
	return out, err
}

// update changes devices as who acts in ctx. It is on disk when it returns:
// what was taken away stays away.
func (m methods) update(ctx context.Context, f func(t store.Tx, who chela.Principal, now time.Time) error) error {
	who, now := chela.PrincipalFrom(ctx), time.Now()
	return m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return f(tx, who, now) })
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
	var q pairing.Request
	err := m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		q, err = pairing.Reject(tx.Devices(), who, in.ID, now)
		return err
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
		scopes = pairing.Scopes(*in.Scopes)
		if len(scopes) != len(*in.Scopes) {
			return wire.DeviceRotated{}, rpc.Invalid(wire.MethodDeviceTokenRotate, "at /scopes: must be scopes that exist, each once")
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
		ID: in.ID, Role: g.Role, Scopes: shape.Scopes(g.Scopes), RotatedAt: wire.At(g.Rotated), Token: token, Delivery: wire.TokenWithheld,
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

// drop ends the device's connections. One that asked for this itself is
// answered before it is closed: what is answered later reaches nobody.
func (m methods) drop(ctx context.Context, p rpc.Peer, device string, answer any) {
	if self, ok := pairing.DeviceOf(chela.PrincipalFrom(ctx)); ok && self == device {
		p.Accept(answer)
	}
	m.o.Drop(pairing.Credential(device))
}

// stop ends the runs that a device began. Its own connection may have ended by
// now, and ctx with it.
func (m methods) stop(ctx context.Context, device string) error {
	if err := m.o.Stop(context.WithoutCancel(ctx), pairing.Credential(device)); err != nil {
		return fmt.Errorf("device %s: its credential is gone, and its runs go on: %w", device, err)
	}
	return nil
}

// cancel takes back what the device asked for and nothing has begun with.
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

// decided tells what became of a request.
func (m methods) decided(q pairing.Request, decision string, now time.Time) {
	m.waits.wake()
	m.o.Announce(wire.EventPairResolved, wire.PairResolved{ID: q.ID, Device: q.Device, Decision: decision, Time: wire.At(now)})
}

func (m methods) device(d pairing.Device) wire.PairedDevice {
	out := wire.PairedDevice{
		ID: d.ID, PublicKey: d.PublicKey, DisplayName: cmp.Or(d.Label, d.DisplayName), Platform: d.Platform, Family: d.Family,
		ClientID: d.ClientID, ClientMode: d.ClientMode, Roles: d.Roles(), Scopes: shape.Scopes(d.Scopes()), ApprovedVia: d.Via,
		CreatedAt: wire.At(d.Created), ApprovedAt: wire.At(d.Approved), LastSeenAt: wire.At(d.LastSeen),
		Connected: m.o.Connected(d.ID), Tokens: []wire.DeviceToken{},
	}
	if len(out.Roles) > 0 {
		out.Role = out.Roles[len(out.Roles)-1]
	}
	if !d.LastSeen.IsZero() {
		out.LastSeen = "connect"
	}
	for _, g := range d.Grants {
		out.Tokens = append(out.Tokens, wire.DeviceToken{
			Role: g.Role, Scopes: shape.Scopes(g.Scopes), CreatedAt: wire.At(g.Created), RotatedAt: wire.At(g.Rotated),
			RevokedAt: wire.At(g.Revoked), UsedAt: wire.At(g.Used),
		})
	}
	return out
}
