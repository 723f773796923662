package access

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/canvas"
)

// Source describes where a request comes from.
type Source struct {
	Addr    netip.Addr // of the client, as reported by a trusted proxy if there is one
	Local   bool       // from this machine and not proxied
	Browser bool       // from a web page
	Proxied bool       // through a trusted proxy
	tailnet way        // through Tailscale's program on this machine
	header  http.Header
	locked  time.Duration // remaining lockout after too many failures
}

// String returns the address; "socket" if there is none.
func (f Source) String() string {
	if !f.Addr.IsValid() {
		return "socket"
	}
	return f.Addr.String()
}

type sourceKey struct{}

// FromContext returns the source of the request in ctx. It is zero if the
// request did not pass a guard, as on a pipe or a private socket.
func FromContext(ctx context.Context) Source {
	f, _ := ctx.Value(sourceKey{}).(Source)
	return f
}

// refusal is the answer to a refused request.
type refusal struct {
	status int
	kind   string
	text   string
	after  time.Duration
}

// Guard returns a handler that passes acceptable requests to next. The probe
// paths are answered even for addresses that are locked out, so that a load
// balancer does not take the gateway for dead because of another client behind
// the same address.
func (d *Authenticator) Guard(next http.Handler, probes ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Permissions-Policy", "camera=(), geolocation=()")
		from, no := d.inspect(r)
		if no == nil && from.locked > 0 && (!slices.Contains(probes, r.URL.Path) || r.Header.Get("Upgrade") != "") {
			no = &refusal{http.StatusTooManyRequests, "rate_limited",
				"too many failed authentication attempts (retry later)", from.locked}
		}
		if no != nil {
			d.o.Log.Info("request refused", "from", from.Addr.String(), "path", withoutSecret(r.URL.Path), "why", no.text)
			no.write(w)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sourceKey{}, from)))
	})
}

// withoutSecret returns a path without the secret of a capability.
func withoutSecret(path string) string {
	if strings.HasPrefix(path, canvas.CapabilityPath) {
		return canvas.CapabilityPath + "…"
	}
	return path
}

// write answers the request.
func (no *refusal) write(w http.ResponseWriter) {
	if no.after > 0 {
		// The clients of OpenAI (7.59.0) and Vercel ignore more than a minute, and come back at once.
		w.Header().Set("Retry-After", strconv.Itoa(min(60, int(no.after.Round(time.Second)/time.Second)+1)))
	}
	Error(w, no.status, no.kind, no.text)
}

// Error answers a request with an error as JSON.
func Error(w http.ResponseWriter, status int, kind, text string) {
	WriteJSON(w, status, map[string]any{"error": map[string]string{"message": text, "type": kind}})
}

// WriteJSON answers a request with v, a value that can be encoded, as JSON.
//
// The length is part of the answer, so that one that was flushed is complete: without it, the
// end of the answer is sent after the handler, when the gateway may have closed the connection.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot fail for types of this program
	}
	b = append(b, '\n')
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may be gone
}

// inspect returns the source of a request and whether to refuse it.
//
// The address comes first, since the lockout and the error depend on it. A request from this
// machine under a public name is not local: a tunnel that adds no header has probably forwarded
// it.
func (d *Authenticator) inspect(r *http.Request) (Source, *refusal) {
	f := Source{header: r.Header, Browser: r.Header.Get("Origin") != ""}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // a listener in memory
		peer = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	f.Addr = peer.Addr().Unmap()
	no := d.forwarded(r, &f)
	if d.o.Tailnet != nil && peer.Addr().IsLoopback() && !d.proxy(f.Addr) && forwardedFor(r) {
		no = d.throughTailnet(r, &f, peer)
	}
	if no != nil {
		return f, no
	}
	f.locked = d.limit.Locked(f.Addr)
	for name := range r.URL.Query() {
		if isCredential(name) {
			return f, &refusal{http.StatusBadRequest, "invalid_request_error",
				"credentials in a URL are not accepted: URLs are logged", 0}
		}
	}
	host := hostname(r.Host)
	if !f.Proxied && f.tailnet == notTailnet && !d.isKnownHost(host) {
		return f, &refusal{http.StatusForbidden, "forbidden", fmt.Sprintf("host %q is not a known name of this gateway",
			host), 0}
	}
	f.Local = !f.Proxied && f.tailnet == notTailnet && f.Addr.IsLoopback() && private(host)
	if f.Browser && !d.allowsOrigin(r, f.Local) && !fromSandbox(r) {
		return f, &refusal{http.StatusForbidden, "forbidden", OriginRefused, 0}
	}
	return f, nil
}

// isCredential reports whether a parameter of a URL is meant to be a credential.
func isCredential(name string) bool {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name)) {
	case "token", "accesstoken", "authtoken", "devicetoken", "bootstraptoken", "password", "auth", "authorization",
		"key", "apikey", "secret":
		return true
	}
	return false
}

// forwarded applies the address reported by a proxy. It refuses a report from
// anyone but a trusted proxy, because a client could forge its address.
func (d *Authenticator) forwarded(r *http.Request, f *Source) *refusal {
	named := false
	for name := range r.Header {
		named = named || name == "Forwarded" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-")
	}
	// A proxy on this machine has the same address as any program here. One that adds no
	// header is taken for such a program, except in trusted-proxy mode: there the user's name
	// in its own header decides.
	f.Proxied = d.proxy(f.Addr) && (!f.Addr.IsLoopback() || d.o.Mode != ModeProxy || d.o.Proxy.Loopback)
	if !named {
		f.Proxied = f.Proxied && (!f.Addr.IsLoopback() || d.o.Mode == ModeProxy)
		return nil
	}
	if !f.Proxied {
		return &refusal{http.StatusForbidden, "forbidden", "forwarded by " + f.Addr.String() +
			", which is not in gateway.trustedProxies", 0}
	}
	// The client's address is the last one that is not a proxy's. The
	// client could have forged those before it.
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		a, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		f.Addr = a.Unmap()
		if !d.proxy(f.Addr) {
			break
		}
	}
	return nil
}

func (d *Authenticator) proxy(a netip.Addr) bool {
	return slices.ContainsFunc(d.o.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// isKnownHost reports whether host is a name of this gateway. Addresses are
// accepted, because DNS rebinding needs a name.
func (d *Authenticator) isKnownHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if host != "" && slices.Contains(d.o.Hosts, host) {
		return true
	}
	return slices.ContainsFunc(d.o.Origins, func(o string) bool {
		u, err := url.Parse(o)
		return err == nil && host != "" && hostname(u.Host) == host
	})
}

// allowsOrigin reports whether the origin is the gateway's own or allowed by the
// configuration. Unless the configuration names origins, those of all pages on this
// machine are allowed, on any port.
func (d *Authenticator) allowsOrigin(r *http.Request, local bool) bool {
	if len(r.Header.Values("Origin")) != 1 {
		return false
	}
	text := strings.ToLower(r.Header.Get("Origin"))
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.Scheme+"://"+u.Host != text {
		return false
	}
	if strings.EqualFold(u.Host, r.Host) || local && len(d.o.Origins) == 0 && loopback(hostname(u.Host)) {
		return true
	}
	return slices.ContainsFunc(d.o.Origins, func(o string) bool {
		return o == "*" || strings.TrimSuffix(strings.ToLower(o), "/") == text
	})
}

// fromSandbox reports whether a page of the canvas, which has no origin, reads from an address
// that is its own credential.
func fromSandbox(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, canvas.CapabilityPath) && r.Method == http.MethodGet &&
		r.Header.Get("Upgrade") == "" &&
		slices.Equal(r.Header.Values("Origin"), []string{"null"})
}

// hostname returns the host of host:port in lower case.
func hostname(s string) string {
	if h, _, err := net.SplitHostPort(s); err == nil {
		s = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(s, "[]")), ".")
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.Unmap().IsLoopback()
}

func private(host string) bool {
	a, err := netip.ParseAddr(host)
	return loopback(host) || err == nil && a.Unmap().IsPrivate()
}
