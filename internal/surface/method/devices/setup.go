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

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// limitedScopes is the default scopes of an invited device.
var limitedScopes = [...]chela.Scope{chela.ScopeRead, chela.ScopeWrite, chela.ScopeApprovals}

// profile returns the grants of an access profile.
func profile(access string) (roles []string, scopes []chela.Scope) {
	switch access {
	case wire.AccessNode:
		return []string{wire.RoleNode}, nil
	case wire.AccessFull:
		return []string{wire.RoleNode, wire.RoleOperator}, append(slices.Clone(limitedScopes[:]), chela.ScopeAdmin)
	}
	return []string{wire.RoleNode, wire.RoleOperator}, limitedScopes[:]
}

// access returns the name of the access that an invitation grants.
func access(i pairing.Invite) string {
	switch {
	case !slices.Contains(i.Roles, wire.RoleOperator):
		return wire.AccessNode
	case slices.Contains(i.Scopes, chela.ScopeAdmin):
		return wire.AccessFull
	}
	return wire.AccessLimited
}

// setup creates an invitation and returns its setup code. Full access is
// granted only over a connection that nobody can read.
func (m methods) setup(ctx context.Context, _ rpc.Peer, in wire.DeviceSetup) (wire.DeviceSetupCode, error) {
	if in.Profile == wire.AccessPage {
		return m.page(ctx, in)
	}
	if !slices.Contains([]string{"", wire.AccessLimited, wire.AccessNode}, in.Profile) {
		return wire.DeviceSetupCode{}, rpc.Invalid("at /bootstrapProfile: must be equal to one of the allowed values")
	}
	if in.Join { // the address of a page for one node, which Chela does not have; the code is for a node, too
		if in.Profile != "" && in.Profile != wire.AccessNode {
			return wire.DeviceSetupCode{}, rpc.Invalid("at /joinUrl: needs the bootstrapProfile node")
		}
		in.Profile = wire.AccessNode
	}
	mode, own := m.o.Endpoint()
	if mode == "" {
		return wire.DeviceSetupCode{}, wire.Errorf(wire.Unavailable, "the gateway is not listening on a port")
	}
	if mode != "token" && mode != "password" {
		return wire.DeviceSetupCode{},
			wire.Errorf(wire.InvalidRequest, "a setup code needs gateway.auth.mode token or password, not %q", mode)
	}
	out := wire.DeviceSetupCode{Auth: mode, Access: cmp.Or(in.Profile, wire.AccessFull), Source: "request.publicUrl"}
	text := in.URL
	if text == "" {
		if text, out.Source = own, "gateway.bind"; text == "" {
			return out, wire.Errorf(wire.InvalidRequest,
				"the gateway listens on this machine only: set gateway.bind, or pass the URL at which other machines reach it")
		}
	}
	u, err := gatewayURL(text)
	if err != nil {
		return out, rpc.Invalid("at /publicUrl: %v", err)
	}
	out.URL = u.String()
	if out.Access == wire.AccessFull && !confidential(u) {
		out.Access, out.Downgraded = wire.AccessLimited, true
	}
	roles, scopes := profile(out.Access)
	_, err = m.invite(ctx, &out, roles, scopes)
	return out, err
}

// invite creates an invitation, writes it to out, and returns its token.
func (m methods) invite(ctx context.Context, out *wire.DeviceSetupCode, roles []string,
	scopes []chela.Scope) (token string, err error) {
	var i pairing.Invite
	err = m.update(ctx, func(tx store.Tx, who chela.Principal, now time.Time) (err error) {
		i, token, err = pairing.NewInvite(tx.Devices(), who, roles, scopes, now)
		return err
	})
	if err != nil {
		return "", err
	}
	out.ID, out.Expires = i.ID, wire.At(i.Expires())
	b, err := json.Marshal(wire.SetupPayload{URL: out.URL, Token: token, Expires: out.Expires})
	out.Code = base64.RawURLEncoding.EncodeToString(b)
	return token, err
}

// page creates an invitation for the web page and returns the address that opens it. The code
// is in the fragment of the address, which a browser sends to nobody.
func (m methods) page(ctx context.Context, in wire.DeviceSetup) (wire.DeviceSetupCode, error) {
	mode, _ := m.o.Endpoint()
	if mode == "" {
		return wire.DeviceSetupCode{}, wire.Errorf(wire.Unavailable, "the gateway is not listening on a port")
	}
	own, codes := m.o.Page()
	if own == "" {
		return wire.DeviceSetupCode{},
			wire.Errorf(wire.InvalidRequest, "the gateway serves no web page: gateway.controlUi.enabled is false").
				With(map[string]any{"code": wire.DetailNoPage})
	}
	u, err := gatewayURL(cmp.Or(in.URL, own))
	if err != nil {
		return wire.DeviceSetupCode{}, rpc.Invalid("at /publicUrl: %v", err)
	}
	out := wire.DeviceSetupCode{Auth: mode, URL: u.String(), Source: "gateway.bind"}
	if in.URL != "" {
		out.Source = "request.publicUrl"
	}
	u.Scheme, u.Path = strings.Replace(u.Scheme, "ws", "http", 1), u.Path+"/"
	out.Page = u.String()
	if !codes || mode != "token" && mode != "password" {
		return out, nil // the page asks for the secret, or needs none
	}
	scopes := append(slices.Clone(limitedScopes[:]), chela.ScopeAdmin)
	out.Access, out.Downgraded = wire.AccessFull, !confidential(u)
	if out.Downgraded {
		out.Access, scopes = wire.AccessLimited, limitedScopes[:]
	}
	token, err := m.invite(ctx, &out, []string{wire.RoleOperator}, scopes)
	out.Page += "#code=" + token
	if out.Downgraded {
		out.Page += "&access=limited"
	}
	return out, err
}

// gatewayURL parses the address of a gateway.
func gatewayURL(s string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil {
		return nil, errors.New("must be an address such as wss://gateway.example")
	}
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	if u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an address such as wss://gateway.example")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// confidential reports whether nobody can read what is sent to u.
func confidential(u *url.URL) bool {
	a, _ := netip.ParseAddr(u.Hostname()) // the zero address is not a loopback address
	return u.Scheme == "wss" || u.Scheme == "https" || u.Hostname() == "localhost" || a.IsLoopback()
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
	d, err := change(ctx, m, func(tx store.Tx, who chela.Principal, _ time.Time) (pairing.Device, error) {
		return pairing.Rename(tx.Devices(), who, in.ID, in.Label)
	})
	return wire.DeviceRename{ID: in.ID, Label: d.Label}, err
}
