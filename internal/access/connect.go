package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// OriginRefused is what a web page is told that may not connect.
const OriginRefused = "origin not allowed (open the Control UI from the gateway host or allow it in gateway.controlUi.allowedOrigins)"

// Connect decides who a client is that answered the challenge.
func (d *Door) Connect(ctx context.Context, a Attempt) (Grant, error) {
	p := a.Connect
	if isPage(p.Client) && !a.From.Browser {
		return Grant{}, wire.Errorf(wire.InvalidRequest, "%s", OriginRefused).With(map[string]any{
			"code": "CONTROL_UI_ORIGIN_NOT_ALLOWED", "reason": "origin missing or invalid",
		})
	}
	if d.o.Mode == ModeProxy {
		asked := p.Scopes
		if asked == nil {
			asked = []string{}
		}
		return d.proxied(a.From, asked)
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

// device lets in a client that has a key of its own.
func (d *Door) device(ctx context.Context, a Attempt, auth wire.Auth) (Grant, error) {
	now := time.Now()
	id, err := pairing.Verify(a.Connect, a.Nonce, now)
	if err != nil {
		if e, ok := errors.AsType[*wire.Error](err); ok && e.Detail() == pairing.CodeSignatureInvalid {
			d.failed(a.From)
		}
		return Grant{}, err
	}
	by := d.proof(a, auth)
	if by == "" {
		if auth.Password != "" {
			d.failed(a.From)
			return Grant{}, d.mismatch(true)
		}
		return Grant{}, d.missing()
	}
	surface, err := pairing.NewSurface(a.Connect.Caps, a.Connect.Commands)
	if err != nil && id.Role == wire.RoleNode {
		return Grant{}, wire.Errorf(wire.InvalidRequest, "invalid connect params: %v", err)
	}
	sync := store.Ordered
	if by == byInvite {
		sync = store.Synced // what is used up stays so
	}
	var in pairing.Admission
	err = d.o.Store.Update(ctx, sync, func(tx store.Tx) (err error) {
		if in, err = d.admission(tx.Devices(), a, auth, id, by, now); err != nil || in.Refusal != nil || id.Role != wire.RoleNode {
			return err
		}
		in, err = pairing.Declare(tx.Devices(), in, surface, a.Connect.Client.Version, now)
		return err
	})
	if err != nil {
		return Grant{}, fmt.Errorf("device: %w", err)
	}
	if d.o.Asked != nil && in.News() {
		d.o.Asked(in)
	}
	if in.Refusal != nil {
		return Grant{}, d.refused(a, auth, in.Refusal)
	}
	return d.grant(in, by), nil
}

// How a device proves itself.
const (
	byShared = "shared"
	byInvite = "bootstrap-token"
	byToken  = "device-token"
)

// proof says with what a device proves itself; "" with nothing. The shared
// secret goes before an invitation, and that before a token of the device's own.
func (d *Door) proof(a Attempt, auth wire.Auth) string {
	switch {
	case d.shared(auth.Token, auth.Password) || d.o.Mode == ModeNone && a.From.Local:
		return byShared
	case auth.Bootstrap != "":
		return byInvite
	case auth.DeviceToken != "" || auth.Token != "":
		return byToken
	}
	return ""
}

// admission looks the device up by its proof. A device that was invited before
// and shows its own token, too, is let in with that.
func (d *Door) admission(t pairing.Table, a Attempt, auth wire.Auth, id pairing.Identity, by string, now time.Time) (pairing.Admission, error) {
	switch by {
	case byShared:
		return pairing.Admit(t, id, pairing.Proof{Local: a.From.Local, Authority: []chela.Scope{chela.ScopeAdmin}}, now)
	case byInvite:
		in, err := pairing.Accept(t, id, auth.Bootstrap, now)
		if err != nil || in.Refusal == nil || in.Refusal.Detail() != pairing.CodeInviteInvalid || auth.DeviceToken == "" {
			return in, err
		}
	}
	return pairing.Redeem(t, id, cmp.Or(auth.DeviceToken, auth.Token), now)
}

// grant returns what a device is let in as.
func (d *Door) grant(in pairing.Admission, by string) Grant {
	g := Grant{
		Who: in.Pass.Principal(), Method: by, Mode: d.o.Mode, Token: in.Pass.Token, Issued: in.Pass.Issued, Others: in.Pass.Others,
		Check: func(ctx context.Context) error {
			return d.o.Store.View(ctx, func(r store.Reader) error { return pairing.Check(r.Devices(), in.Pass) })
		},
	}
	if by == byShared {
		g.Method = d.o.Mode
	}
	return g
}

// refused counts a wrong token of a device. Who showed it as the shared secret
// is told that this is what it is not.
func (d *Door) refused(a Attempt, auth wire.Auth, e *wire.Error) error {
	switch e.Detail() {
	case pairing.CodeInviteInvalid:
		d.failed(a.From)
		return e
	case pairing.CodeTokenMismatch:
		d.failed(a.From)
	default:
		return e
	}
	if auth.DeviceToken == "" {
		return d.mismatch(true)
	}
	return e
}

// missing says that a shared secret must be shown.
func (d *Door) missing() error {
	code, reason, what := "AUTH_TOKEN_MISSING", "token_missing", "token"
	if d.o.Mode == ModePassword {
		code, reason, what = "AUTH_PASSWORD_MISSING", "password_missing", "password"
	}
	return wire.Errorf(wire.InvalidRequest, "unauthorized: gateway %s missing (use this gateway's gateway.auth.%s or pair the device)", what, what).
		With(map[string]any{"code": code, "authReason": reason, "canRetryWithDeviceToken": false, "recommendedNextStep": "update_auth_configuration"})
}

// anonymous lets in a client that has no device.
func (d *Door) anonymous(a Attempt, auth wire.Auth) (Grant, error) {
	p := a.Connect
	shown := auth.Token != "" || auth.Password != "" || auth.DeviceToken != ""
	right := d.shared(auth.Token, auth.Password) || d.o.Mode == ModeNone && a.From.Local
	switch {
	case !right && shown:
		d.failed(a.From)
		return Grant{}, d.mismatch(false)
	case right && isUI(p.Client):
		return Grant{}, wire.Errorf(wire.InvalidRequest, "control ui requires device identity (use HTTPS or localhost secure context)").
			With(map[string]any{"code": "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"})
	case !right, p.Role == wire.RoleNode:
		return Grant{}, wire.Errorf(wire.NotPaired, "device identity required").With(map[string]any{"code": "DEVICE_IDENTITY_REQUIRED"})
	}
	g := Grant{Who: chela.Principal{ID: "owner", Credential: d.o.Mode, Scopes: []chela.Scope{}}, Method: d.o.Mode, Mode: d.o.Mode}
	if a.From.Local && !a.From.Browser && isOwn(p.Client) {
		g.Who.Scopes = known(p.Scopes)
	}
	return g, nil
}

// mismatch says that a shared secret is wrong.
func (d *Door) mismatch(device bool) error {
	code, reason, what := "AUTH_TOKEN_MISMATCH", "token_mismatch", "token"
	if d.o.Mode == ModePassword {
		code, reason, what = "AUTH_PASSWORD_MISMATCH", "password_mismatch", "password"
	}
	next := "update_auth_credentials"
	if device {
		next = "retry_with_device_token"
	}
	return wire.Errorf(wire.InvalidRequest, "unauthorized: gateway %s mismatch (use this gateway's gateway.auth.%s or pair the device)", what, what).
		With(map[string]any{"code": code, "authReason": reason, "canRetryWithDeviceToken": device, "recommendedNextStep": next})
}

// unauthorized is a refusal that no other credential of the client changes.
func unauthorized(code, reason, text string) error {
	return wire.Errorf(wire.InvalidRequest, "unauthorized: %s", text).With(map[string]any{
		"code": code, "authReason": reason, "canRetryWithDeviceToken": false, "recommendedNextStep": "review_auth_configuration",
	})
}

// isPage reports whether the client is a web page, which always has an origin.
func isPage(c wire.ClientInfo) bool {
	return c.ID == "openclaw-control-ui" || c.ID == "webchat-ui" || c.ID == "openclaw-browser-copilot"
}

// isUI reports whether the client is one that always has a device.
func isUI(c wire.ClientInfo) bool { return isPage(c) || c.ID == "openclaw-tui" }

// isOwn reports whether the client is a command or a program of the owner's,
// which keeps its scopes without a device.
func isOwn(c wire.ClientInfo) bool {
	return slices.Contains([]wire.ClientInfo{
		{ID: "cli", Mode: wire.ModeCLI}, {ID: "chela", Mode: wire.ModeCLI}, {ID: "gateway-client", Mode: wire.ModeBackend},
	}, wire.ClientInfo{ID: c.ID, Mode: c.Mode})
}
