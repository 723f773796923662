package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// OriginRefused is the error for web pages of other origins.
const OriginRefused = "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi.allowedOrigins)"

// Connect authenticates a client that answered the challenge.
func (d *Authenticator) Connect(ctx context.Context, a Attempt) (Grant, error) {
	p := a.Connect
	if inBrowser(p.Client) && !a.Source.Browser {
		return Grant{}, wire.Errorf(wire.InvalidRequest, "%s", OriginRefused).With(map[string]any{
			"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "origin missing or invalid",
		})
	}
	if d.o.Mode == ModeProxy {
		asked := p.Scopes
		if asked == nil || p.Role == wire.RoleNode {
			asked = []string{}
		}
		return d.proxyUser(a.Source, asked)
	}
	auth := wire.Auth{}
	if p.Auth != nil {
		auth = *p.Auth
	}
	if p.Device == nil {
		return d.anonymous(a, auth)
	}
	return d.device(ctx, a, auth)
}

// device authenticates a client with a device key.
func (d *Authenticator) device(ctx context.Context, a Attempt, auth wire.Auth) (Grant, error) {
	now := time.Now()
	id, err := pairing.Verify(a.Connect, a.Nonce, now)
	if err != nil {
		if e, ok := errors.AsType[*wire.Error](err); ok && e.Detail() == pairing.CodeSignatureInvalid {
			d.countFailure(a.Source)
		}
		return Grant{}, err
	}
	by := d.proof(a, auth)
	if by == "" && auth.Password == "" && d.tailnetUser(ctx, a.Source) {
		by = byTailnet
	}
	if by == "" {
		if auth.Password != "" {
			d.countFailure(a.Source)
			return Grant{}, d.mismatch(true)
		}
		return Grant{}, d.missing()
	}
	surface, err := pairing.NewSurface(a.Connect.Caps, a.Connect.Commands)
	if err != nil && id.Role == wire.RoleNode {
		return Grant{}, wire.Errorf(wire.InvalidRequest, "invalid connect params: %v", err)
	}
	var in pairing.Admission
	// Synced: the client is told its token, or the id of its request. A refusal is committed
	// as well, because it may be a new request for pairing.
	err = d.o.Store.Update(ctx, store.Synced, func(tx store.Tx) (err error) {
		if in, err = d.admission(tx.Devices(), a, auth, id, by, now); err != nil || in.Refusal != nil ||
			id.Role != wire.RoleNode {
			return err
		}
		in, err = pairing.Declare(tx.Devices(), in, surface, a.Connect.Client.Version, now)
		return err
	})
	if err != nil {
		return Grant{}, fmt.Errorf("device: %w", err)
	}
	if d.o.PairingRequested != nil && in.HasEvents() {
		d.o.PairingRequested(in)
	}
	if in.Refusal != nil {
		return Grant{}, d.refused(a, auth, in.Refusal)
	}
	return d.grant(in, by), nil
}

// Methods by which a device authenticates.
const (
	byShared = "shared"
	byInvite = "bootstrap-token"
	byToken  = "device-token"

	byTailnet = "tailscale" // the user of the machine in the Tailscale network
)

// proof returns the method by which a device authenticates; "" for none. The
// shared secret takes precedence over an invitation, and that over the device's
// own token.
func (d *Authenticator) proof(a Attempt, auth wire.Auth) string {
	switch {
	case d.isSharedSecret(auth.Token, auth.Password) || d.o.Mode == ModeNone && a.Source.Local:
		return byShared
	case auth.Bootstrap != "":
		return byInvite
	case auth.DeviceToken != "" || auth.Token != "":
		return byToken
	}
	return ""
}

// admission admits the device by its credential. A device that was already
// invited and also sends its own token is admitted by the token.
func (d *Authenticator) admission(t pairing.Table, a Attempt, auth wire.Auth, id pairing.Identity, by string,
	now time.Time) (pairing.Admission, error) {
	switch by {
	case byShared:
		return pairing.Admit(t, id, pairing.Proof{
			Local:     a.Source.Local && !d.o.AskLocal,
			Trusted:   slices.ContainsFunc(d.o.NodeNets, func(p netip.Prefix) bool { return p.Contains(a.Source.Addr) }),
			Authority: []chela.Scope{chela.ScopeAdmin},
		}, now)
	case byTailnet: // it takes the place of the shared secret, not that of an approval
		return pairing.Admit(t, id, pairing.Proof{Authority: []chela.Scope{chela.ScopeAdmin}}, now)
	case byInvite:
		in, err := pairing.Accept(t, id, auth.Bootstrap, now)
		if err != nil || in.Refusal == nil || in.Refusal.Detail() != pairing.CodeInviteInvalid || auth.DeviceToken == "" {
			return in, err
		}
	}
	return pairing.Redeem(t, id, cmp.Or(auth.DeviceToken, auth.Token), now)
}

// grant returns the grant of a device.
func (d *Authenticator) grant(in pairing.Admission, by string) Grant {
	g := Grant{
		Principal:  in.Access.Principal(),
		Method:     by,
		Mode:       d.o.Mode,
		Token:      in.Access.Token,
		Issued:     in.Access.Issued,
		RoleTokens: in.Access.OtherRoles,
		Check: func(ctx context.Context) error {
			return d.o.Store.View(ctx, func(r store.Reader) error { return pairing.Check(r.Devices(), in.Access) })
		},
	}
	if by == byShared {
		g.Method = d.o.Mode
	}
	return g
}

// refused counts a wrong device token. A client that sent it as the shared
// secret gets the error for a wrong secret.
func (d *Authenticator) refused(a Attempt, auth wire.Auth, e *wire.Error) error {
	switch e.Detail() {
	case pairing.CodeInviteInvalid:
		d.countFailure(a.Source)
		return e
	case pairing.CodeTokenMismatch:
		d.countFailure(a.Source)
	default:
		return e
	}
	if auth.DeviceToken == "" {
		return d.mismatch(true)
	}
	return e
}

// missing returns the error for a missing shared secret.
func (d *Authenticator) missing() error {
	code, reason, what := "AUTH_TOKEN_MISSING", "token_missing", "token"
	if d.o.Mode == ModePassword {
		code, reason, what = "AUTH_PASSWORD_MISSING", "password_missing", "password"
	}
	return wire.Errorf(wire.InvalidRequest,
		"unauthorized: gateway %s missing (use this gateway's gateway.auth.%s or pair the device)", what, what).
		With(map[string]any{
			"code":                    code,
			"authReason":              reason,
			"canRetryWithDeviceToken": false,
			"recommendedNextStep":     "update_auth_configuration",
		})
}

// anonymous authenticates a client without a device.
func (d *Authenticator) anonymous(a Attempt, auth wire.Auth) (Grant, error) {
	p := a.Connect
	shown := auth.Token != "" || auth.Password != "" || auth.DeviceToken != ""
	right := d.isSharedSecret(auth.Token, auth.Password) || d.o.Mode == ModeNone && a.Source.Local
	switch {
	case !right && shown:
		d.countFailure(a.Source)
		return Grant{}, d.mismatch(false)
	case right && isUI(p.Client):
		return Grant{}, wire.Errorf(wire.InvalidRequest,
			"control ui requires device identity (use HTTPS or localhost secure context)").
			With(map[string]any{"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"})
	case !right, p.Role == wire.RoleNode:
		return Grant{},
			wire.Errorf(wire.NotPaired, "device identity required").With(map[string]any{"code": "DEVICE_IDENTITY_REQUIRED"})
	}
	g := Grant{Principal: chela.Principal{ID: "owner", Credential: d.o.Mode, Scopes: []chela.Scope{}},
		Method: d.o.Mode, Mode: d.o.Mode}
	if a.Source.Local && !a.Source.Browser && (isOwn(p.Client) || isOldProbe(p)) {
		g.Principal.Scopes = knownScopes(p.Scopes)
	}
	return g, nil
}

// mismatch returns the error for a wrong shared secret.
func (d *Authenticator) mismatch(device bool) error {
	code, reason, what := "AUTH_TOKEN_MISMATCH", "token_mismatch", "token"
	if d.o.Mode == ModePassword {
		code, reason, what = "AUTH_PASSWORD_MISMATCH", "password_mismatch", "password"
	}
	next := "update_auth_credentials"
	if device {
		next = "retry_with_device_token"
	}
	return wire.Errorf(wire.InvalidRequest,
		"unauthorized: gateway %s mismatch (use this gateway's gateway.auth.%s or pair the device)", what, what).
		With(map[string]any{
			"code":                    code,
			"authReason":              reason,
			"canRetryWithDeviceToken": device,
			"recommendedNextStep":     next,
		})
}

// unauthorized returns a refusal that another credential would not change.
func unauthorized(code, reason, text string) error {
	return wire.Errorf(wire.InvalidRequest, "unauthorized: %s", text).With(map[string]any{
		"code": code, "authReason": reason, "canRetryWithDeviceToken": false,
		"recommendedNextStep": "review_auth_configuration",
	})
}

// isPage reports whether the client is a web page that needs a device.
func isPage(c wire.ClientInfo) bool {
	return c.ID == "openclaw-control-ui" || c.ID == "webchat-ui" || c.ID == "openclaw-browser-copilot"
}

// inBrowser reports whether the client says that it runs in a browser, which always sends
// an origin.
func inBrowser(c wire.ClientInfo) bool {
	return isPage(c) || c.ID == "webchat" || c.Mode == wire.ModeWebchat
}

// isUI reports whether the client is a user interface, which needs a device.
func isUI(c wire.ClientInfo) bool { return isPage(c) || c.ID == "openclaw-tui" }

// isOldProbe reports whether the client is a probe of the command line that takes the gateway
// for unreachable if it may not read. Newer ones expect no scopes.
func isOldProbe(p wire.Connect) bool {
	return p.Client.ID == "cli" && p.Client.Mode == wire.ModeProbe && p.MaxProtocol < wire.Version
}

// isOwn reports whether the client is a command or program of the owner, which
// has scopes without a device.
func isOwn(c wire.ClientInfo) bool {
	return slices.Contains([]wire.ClientInfo{
		{ID: "cli", Mode: wire.ModeCLI}, {ID: "chela", Mode: wire.ModeCLI}, {ID: "gateway-client", Mode: wire.ModeBackend},
	}, wire.ClientInfo{ID: c.ID, Mode: c.Mode})
}
