package devices

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// limited is the scopes of a device that was invited without more words.
var limited = [...]chela.Scope{chela.ScopeRead, chela.ScopeWrite, chela.ScopeApprovals}

// profile returns what an invitation grants.
func profile(access string) (roles []string, scopes []chela.Scope) {
	switch access {
	case wire.AccessNode:
		return []string{wire.RoleNode}, nil
	case wire.AccessFull:
		return []string{wire.RoleNode, wire.RoleOperator}, append(slices.Clone(limited[:]), chela.ScopeAdmin)
	}
	return []string{wire.RoleNode, wire.RoleOperator}, limited[:]
}

// access returns what an invitation grants, in one word.
func access(i pairing.Invite) string {
	switch {
	case !slices.Contains(i.Roles, wire.RoleOperator):
		return wire.AccessNode
	case slices.Contains(i.Scopes, chela.ScopeAdmin):
		return wire.AccessFull
	}
	return wire.AccessLimited
}

// setup makes an invitation and tells it in the form that devices read. A
// device is given everything only over a way that nobody can read.
func (m methods) setup(ctx context.Context, _ rpc.Peer, in wire.DeviceSetup) (wire.DeviceSetupCode, error) {
	const method = wire.MethodDeviceSetupCode
	if !slices.Contains([]string{"", wire.AccessLimited, wire.AccessNode}, in.Profile) {
		return wire.DeviceSetupCode{}, rpc.Invalid(method, "at /bootstrapProfile: must be equal to one of the allowed values")
	}
	mode, own := m.o.Place()
	if mode == "" {
		return wire.DeviceSetupCode{}, wire.Errorf(wire.Unavailable, "the gateway serves no port")
	}
	if mode != "token" && mode != "password" {
		return wire.DeviceSetupCode{}, wire.Errorf(wire.InvalidRequest, "a setup code needs gateway.auth.mode token or password, not %q", mode)
	}
	out := wire.DeviceSetupCode{Auth: mode, Access: cmp.Or(in.Profile, wire.AccessFull), Source: "request.publicUrl"}
	text := in.URL
	if text == "" {
		if text, out.Source = own, "gateway.bind"; text == "" {
			return out, wire.Errorf(wire.InvalidRequest, "the gateway listens on this machine only: set gateway.bind, or say how other machines reach it")
		}
	}
	u, err := gatewayURL(text)
	if err != nil {
		return out, rpc.Invalid(method, "at /publicUrl: %v", err)
	}
	out.URL = u.String()
	if out.Access == wire.AccessFull && !unread(u) {
		out.Access, out.Downgraded = wire.AccessLimited, true
	}
	roles, scopes := profile(out.Access)
	var i pairing.Invite
	var token string
	err = m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		i, token, err = pairing.NewInvite(tx.Devices(), who, roles, scopes, now)
		return err
	})
	if err != nil {
		return wire.DeviceSetupCode{}, err
	}
	out.ID, out.Expires = i.ID, wire.At(i.Expires())
	b, err := json.Marshal(wire.SetupPayload{URL: out.URL, Token: token, Expires: out.Expires})
	out.Code = base64.RawURLEncoding.EncodeToString(b)
	return out, err
}

// gatewayURL reads the address of a gateway.
func gatewayURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return nil, errors.New("must be an address such as wss://gateway.example")
	}
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	if u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an address such as wss://gateway.example")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// unread reports whether nobody on the way can read what is sent to u.
func unread(u *url.URL) bool {
	a, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "wss" || u.Hostname() == "localhost" || err == nil && a.IsLoopback()
}

func (m methods) setupState(ctx context.Context, _ rpc.Peer, in wire.DeviceSetupID) (wire.DeviceSetupState, error) {
	var out wire.DeviceSetupState
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		i, err := pairing.FindInvite(r.Devices(), in.ID, time.Now())
		out.Done = nil
		if errors.Is(err, chela.ErrNotFound) || err == nil && i.Used.IsZero() {
			return nil
		}
		if err != nil {
			return err
		}
		out.Done = &wire.DeviceSetupDone{ID: i.ID, Device: i.Device, Access: access(i), Time: wire.At(i.Used)}
		d, err := r.Devices().Device(i.Device)
		out.Done.Name = cmp.Or(d.Label, d.DisplayName)
		return err
	})
	return out, err
}

func (m methods) rename(ctx context.Context, _ rpc.Peer, in wire.DeviceRename) (wire.DeviceRename, error) {
	var d pairing.Device
	err := m.update(ctx, func(tx store.Tx, who chela.Principal, _ time.Time) (err error) {
		d, err = pairing.Rename(tx.Devices(), who, in.ID, in.Label)
		return err
	})
	return wire.DeviceRename{ID: in.ID, Label: d.Label}, err
}
