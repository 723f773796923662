package access

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/wire"
)

// Authentication modes.
const (
	ModeToken    = "token"
	ModePassword = "password"
	ModeProxy    = "trusted-proxy"
	ModeNone     = "none"
)

// Options configures an Authenticator. Log and Store are required.
type Options struct {
	Log      *slog.Logger
	Store    store.Store // holds the paired devices
	Mode     string      // "": ModeToken
	Token    secret.Value
	Password secret.Value

	AskLocal bool           // new devices on this machine need approval, too
	NodeNets []netip.Prefix // networks whose new nodes are paired without asking

	Proxies []netip.Prefix // trusted to report client addresses and users
	Proxy   ProxyOptions

	Tailnet *Tailnet // forwards from a Tailscale network; nil: nothing does

	Origins []string // allowed origins of web pages besides the gateway's own; nil: those on this machine
	Hosts   []string // names of this machine, in lower case

	// PairingRequested is called when a device requests pairing; it may be
	// nil.
	PairingRequested func(pairing.Admission)
}

// ProxyOptions is gateway.auth.trustedProxy: how a proxy reports its user.
type ProxyOptions struct {
	UserHeader string   `json:"userHeader"`      // header with the user's name
	Required   []string `json:"requiredHeaders"` // headers that must be present
	Users      []string `json:"allowUsers"`      // allowed users; nil: all
	Loopback   bool     `json:"allowLoopback"`   // accept a proxy on this machine
}

// Authenticator authenticates clients. Use [New].
type Authenticator struct {
	o        Options
	limit    *Limiter
	failures atomic.Int64
}

// New returns an Authenticator.
func New(o Options) *Authenticator {
	if o.Mode == "" {
		o.Mode = ModeToken
	}
	return &Authenticator{o: o, limit: NewLimiter(maxFailures, window, lockout)}
}

// Mode returns the authentication mode.
func (d *Authenticator) Mode() string { return d.o.Mode }

// Failures returns the number of wrong credentials received.
func (d *Authenticator) Failures() int64 { return d.failures.Load() }

// Attempt is a client's attempt to connect, after the challenge.
type Attempt struct {
	Source  Source
	Nonce   string
	Connect wire.Connect
}

// Grant is the identity and the rights of an accepted client.
type Grant struct {
	Principal  chela.Principal
	Method     string // method of authentication
	Mode       string // authentication mode; shown to admins
	Token      string // of the device
	Issued     time.Time
	RoleTokens []pairing.RoleToken // for further roles, if the device was invited
	// Check returns an error if the grant was revoked; nil: it cannot be
	// revoked.
	Check func(context.Context) error
}

// isSharedSecret reports whether the credential is the shared secret.
func (d *Authenticator) isSharedSecret(token, password string) bool {
	switch d.o.Mode {
	case ModeToken:
		return !d.o.Token.IsZero() && d.o.Token.Equal(secret.New(token))
	case ModePassword:
		return !d.o.Password.IsZero() && d.o.Password.Equal(secret.New(password))
	}
	return false
}

// countFailure counts a wrong credential.
func (d *Authenticator) countFailure(f Source) {
	d.failures.Add(1)
	if d.limit.Add(f.Addr) {
		d.o.Log.Warn("too many wrong credentials", "from", f.Addr.String(), "locked out for", lockout.String())
	}
}

// Bearer authenticates an HTTP request that passed the guard. It returns false
// for an unauthenticated request.
func (d *Authenticator) Bearer(r *http.Request) (chela.Principal, bool) {
	f := FromContext(r.Context())
	if f.locked > 0 { // on a probe path, which the guard lets through
		return chela.Principal{}, false
	}
	switch d.o.Mode {
	case ModeNone:
		return chela.Owner("none"), f.Local
	case ModeProxy:
		g, err := d.proxyUser(f, nil)
		return g.Principal, err == nil
	}
	text := bearer(r.Header)
	if text == "" {
		return chela.Principal{}, false
	}
	if d.isSharedSecret(text, text) {
		return chela.Owner(d.o.Mode), true
	}
	var pass pairing.Access
	var ok bool
	err := d.o.Store.View(r.Context(), func(rd store.Reader) error {
		var err error
		pass, ok, err = pairing.Bearer(rd.Devices(), text)
		return err
	})
	switch {
	case err != nil:
		return chela.Principal{}, false
	case !ok:
		d.countFailure(f)
		return chela.Principal{}, false
	}
	return pass.Principal(), true
}

// bearer returns the credential of a request: that of the Authorization header or, without
// such a header, of X-Api-Key, which clients of Anthropic's API send; "": there is none.
func bearer(h http.Header) string {
	if h.Get("Authorization") == "" {
		return strings.TrimSpace(h.Get("X-Api-Key"))
	}
	word, text, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(word, "Bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// proxyUser returns the grant of the user whom a trusted proxy reports. asked are the scopes that
// a client of the WebSocket asks for. An HTTP request cannot ask, and asked is nil: it has all
// that the header X-Openclaw-Scopes allows.
func (d *Authenticator) proxyUser(f Source, asked []string) (Grant, error) {
	o := d.o.Proxy
	if !f.Proxied {
		return Grant{}, unauthorized("AUTH_UNAUTHORIZED", "trusted_proxy_untrusted_source",
			"trusted proxy source is not in gateway.trustedProxies")
	}
	for _, h := range o.Required {
		if f.header.Get(h) == "" {
			return Grant{}, unauthorized("AUTH_UNAUTHORIZED", "trusted_proxy_missing_header", "trusted proxy header "+
				h+" is missing")
		}
	}
	user := strings.TrimSpace(f.header.Get(o.UserHeader))
	switch {
	case o.UserHeader == "" || user == "":
		return Grant{}, unauthorized("AUTH_IDENTITY_HEADER_REQUIRED", "trusted_proxy_user_missing",
			"trusted proxy identity header is missing")
	case o.Users != nil && !slices.Contains(o.Users, user):
		return Grant{}, unauthorized("AUTH_VERIFIED_USER_REQUIRED", "trusted_proxy_user_not_allowed",
			"user is not in gateway.auth.trustedProxy.allowUsers")
	}
	scopes := knownScopes(asked)
	if asked == nil {
		scopes = []chela.Scope{chela.ScopeAdmin}
	}
	if limit := f.header.Values("X-Openclaw-Scopes"); limit != nil {
		cap := chela.Principal{
			Scopes: knownScopes(strings.FieldsFunc(strings.Join(limit, ","), func(r rune) bool { return r == ',' || r == ' ' }))}
		if asked == nil {
			scopes = cap.Scopes
		}
		scopes = slices.DeleteFunc(scopes, func(s chela.Scope) bool { return !cap.May(s) })
	}
	return Grant{Principal: chela.Principal{ID: user, Credential: ModeProxy, Scopes: scopes},
		Method: ModeProxy, Mode: d.o.Mode}, nil
}

// knownScopes returns the requested scopes that exist.
func knownScopes(asked []string) []chela.Scope {
	out := []chela.Scope{}
	for _, s := range asked {
		if s := chela.Scope(s); s.Known() && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
