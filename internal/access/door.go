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

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// How clients prove themselves.
const (
	ModeToken    = "token"
	ModePassword = "password"
	ModeProxy    = "trusted-proxy"
	ModeNone     = "none"
)

// Options is what a Door knows. Log and Store are required.
type Options struct {
	Log      *slog.Logger
	Store    store.Store // of the devices
	Mode     string      // "": token
	Token    secret.Value
	Password secret.Value

	Proxies []netip.Prefix // whose word about addresses and users is taken
	Proxy   ProxyOptions

	Origins []string // of web pages that may ask, beside the gateway's own
	Hosts   []string // names of this machine, lower case

	// Asked is called when a device asks to be paired; it may be nil.
	Asked func(pairing.Admission)
}

// ProxyOptions is gateway.auth.trustedProxy: how a proxy names its user.
type ProxyOptions struct {
	UserHeader string   `json:"userHeader"`      // that holds the user's name
	Required   []string `json:"requiredHeaders"` // that must be there
	Users      []string `json:"allowUsers"`      // nil: all
	Loopback   bool     `json:"allowLoopback"`   // a proxy on this machine
}

// Door lets clients in, or not. Use [New].
type Door struct {
	o        Options
	limit    limiter
	failures atomic.Int64
}

// New returns a Door.
func New(o Options) *Door {
	if o.Mode == "" {
		o.Mode = ModeToken
	}
	return &Door{o: o, limit: limiter{hosts: map[netip.Addr]*tries{}}}
}

// Mode returns how clients prove themselves.
func (d *Door) Mode() string { return d.o.Mode }

// Failures returns how many wrong credentials were shown.
func (d *Door) Failures() int64 { return d.failures.Load() }

// Attempt is a client that answered the challenge.
type Attempt struct {
	From    From
	Nonce   string
	Connect wire.Connect
}

// Grant is what a client is let in as.
type Grant struct {
	Who    chela.Principal
	Method string // by which it proved itself
	Mode   string // how clients prove themselves here; told to admins
	Token  string // of its device
	Issued time.Time
	Others []pairing.Handoff // tokens of further roles, for a device that was invited
	// Check says whether the grant is still good; nil: it cannot be taken away.
	Check func(context.Context) error
}

// shared reports whether the credential is the shared secret.
func (d *Door) shared(token, password string) bool {
	switch d.o.Mode {
	case ModeToken:
		return !d.o.Token.IsZero() && d.o.Token.Equal(secret.New(token))
	case ModePassword:
		return !d.o.Password.IsZero() && d.o.Password.Equal(secret.New(password))
	}
	return false
}

// failed counts a wrong credential.
func (d *Door) failed(f From) {
	d.failures.Add(1)
	if d.limit.failed(f.Addr) {
		d.o.Log.Warn("too many wrong credentials", "from", f.Addr.String(), "refused for", lockout.String())
	}
}

// Bearer returns who makes an HTTP request that passed the guard, and whether
// that is anybody.
func (d *Door) Bearer(r *http.Request) (chela.Principal, bool) {
	f := FromContext(r.Context())
	if f.locked > 0 {
		return chela.Principal{}, false
	}
	switch d.o.Mode {
	case ModeNone:
		return chela.Owner("none"), f.Local
	case ModeProxy:
		g, err := d.proxied(f, nil)
		return g.Who, err == nil
	}
	word, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(word, "Bearer") || text == "" {
		return chela.Principal{}, false
	}
	text = strings.TrimSpace(text)
	if d.shared(text, text) {
		return chela.Owner(d.o.Mode), true
	}
	var pass pairing.Pass
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
		d.failed(f)
		return chela.Principal{}, false
	}
	return pass.Principal(), true
}

// proxied returns the user whom a proxy names.
func (d *Door) proxied(f From, asked []string) (Grant, error) {
	o := d.o.Proxy
	if !f.Proxied {
		return Grant{}, unauthorized("AUTH_UNAUTHORIZED", "trusted_proxy_untrusted_source", "trusted proxy source is not in gateway.trustedProxies")
	}
	for _, h := range o.Required {
		if f.header.Get(h) == "" {
			return Grant{}, unauthorized("AUTH_UNAUTHORIZED", "trusted_proxy_missing_header", "trusted proxy header "+h+" is missing")
		}
	}
	user := strings.TrimSpace(f.header.Get(o.UserHeader))
	switch {
	case o.UserHeader == "" || user == "":
		return Grant{}, unauthorized("AUTH_IDENTITY_HEADER_REQUIRED", "trusted_proxy_user_missing", "trusted proxy identity header is missing")
	case o.Users != nil && !slices.Contains(o.Users, user):
		return Grant{}, unauthorized("AUTH_VERIFIED_USER_REQUIRED", "trusted_proxy_user_not_allowed", "user is not in gateway.auth.trustedProxy.allowUsers")
	}
	scopes := known(asked)
	if asked == nil {
		scopes = []chela.Scope{chela.ScopeAdmin}
	}
	if limit := f.header.Values("X-Openclaw-Scopes"); limit != nil {
		cap := chela.Principal{Scopes: known(strings.FieldsFunc(strings.Join(limit, ","), func(r rune) bool { return r == ',' || r == ' ' }))}
		if asked == nil {
			scopes = cap.Scopes
		}
		scopes = slices.DeleteFunc(scopes, func(s chela.Scope) bool { return !cap.May(s) })
	}
	return Grant{Who: chela.Principal{ID: user, Credential: ModeProxy, Scopes: scopes}, Method: ModeProxy, Mode: d.o.Mode}, nil
}

// known returns the scopes that exist.
func known(asked []string) []chela.Scope {
	out := []chela.Scope{}
	for _, s := range asked {
		if s := chela.Scope(s); s.Known() && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
