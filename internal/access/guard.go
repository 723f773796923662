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
)

// From is where a request comes from.
type From struct {
	Addr    netip.Addr // of the client; that which a trusted proxy names
	Local   bool       // from this machine, without a proxy between
	Browser bool       // a web page asks
	Proxied bool       // a trusted proxy asks
	header  http.Header
	locked  time.Duration // out, after too many failures; its credentials are not looked at
}

// String returns the address; "socket" when there is none.
func (f From) String() string {
	if !f.Addr.IsValid() {
		return "socket"
	}
	return f.Addr.String()
}

type fromKey struct{}

// FromContext returns where the request of ctx comes from: the zero From when
// it did not pass a guard, as over a pipe or a socket of the owner's.
func FromContext(ctx context.Context) From {
	f, _ := ctx.Value(fromKey{}).(From)
	return f
}

// refusal is a request that is not let in.
type refusal struct {
	status int
	kind   string
	text   string
	after  time.Duration
}

// Guard returns a handler that gives to next what may pass. The paths of probes
// are answered also to addresses that are locked out: a load balancer must not
// take a gateway for dead because somebody behind the same address guesses.
func (d *Door) Guard(next http.Handler, probes ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Permissions-Policy", "camera=(), geolocation=()")
		from, no := d.inspect(r)
		if no == nil && from.locked > 0 && (!slices.Contains(probes, r.URL.Path) || r.Header.Get("Upgrade") != "") {
			no = &refusal{http.StatusTooManyRequests, "rate_limited", "too many failed authentication attempts (retry later)", from.locked}
		}
		if no != nil {
			d.o.Log.Info("request refused", "from", from.Addr.String(), "path", r.URL.Path, "why", no.text)
			no.write(w)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), fromKey{}, from)))
	})
}

// write answers with the refusal.
func (no *refusal) write(w http.ResponseWriter) {
	if no.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(no.after.Round(time.Second)/time.Second)+1))
	}
	Error(w, no.status, no.kind, no.text)
}

// Error answers a request with an error in JSON.
func Error(w http.ResponseWriter, status int, kind, text string) {
	b, err := json.Marshal(map[string]any{"error": map[string]string{"message": text, "type": kind}})
	if err != nil {
		panic(err) // strings
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that went away needs no answer
}

// inspect says where a request comes from, and why it is refused.
func (d *Door) inspect(r *http.Request) (From, *refusal) {
	f := From{header: r.Header, Browser: r.Header.Get("Origin") != ""}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // a listener in memory
		peer = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	f.Addr = peer.Addr().Unmap()
	if no := d.forwarded(r, &f); no != nil {
		return f, no
	}
	f.locked = d.limit.locked(f.Addr)
	for _, name := range [...]string{"token", "password", "access_token", "deviceToken", "bootstrapToken"} {
		if r.URL.Query().Has(name) {
			return f, &refusal{http.StatusBadRequest, "invalid_request_error", "credentials in a URL are not accepted: URLs are logged", 0}
		}
	}
	host := hostname(r.Host)
	if !f.Proxied && !d.knows(host) {
		return f, &refusal{http.StatusForbidden, "forbidden", fmt.Sprintf("host %q is not one of this gateway", host), 0}
	}
	f.Local = !f.Proxied && f.Addr.IsLoopback() && private(host)
	if f.Browser && !d.origin(r, f.Local) {
		return f, &refusal{http.StatusForbidden, "forbidden", OriginRefused, 0}
	}
	return f, nil
}

// forwarded takes the address that a proxy names. Who names one and is no
// proxy of ours is refused: it would choose its own address.
func (d *Door) forwarded(r *http.Request, f *From) *refusal {
	named := false
	for name := range r.Header {
		named = named || name == "Forwarded" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-")
	}
	f.Proxied = d.proxy(f.Addr) && (!f.Addr.IsLoopback() || d.o.Mode != ModeProxy || d.o.Proxy.Loopback)
	if !named {
		f.Proxied = f.Proxied && (!f.Addr.IsLoopback() || d.o.Mode == ModeProxy)
		return nil
	}
	if !f.Proxied {
		return &refusal{http.StatusForbidden, "forbidden", "forwarded by " + f.Addr.String() + ", which is not in gateway.trustedProxies", 0}
	}
	// The last address that is not a proxy's is the client's: those before it
	// are its own words.
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

func (d *Door) proxy(a netip.Addr) bool {
	return slices.ContainsFunc(d.o.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// knows reports whether the gateway goes by the name. An address is no name
// that somebody else's DNS could give to this machine.
func (d *Door) knows(host string) bool {
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

// origin reports whether the web page that asks is the gateway's own, one of
// this machine, or one that the configuration names.
func (d *Door) origin(r *http.Request, local bool) bool {
	if len(r.Header.Values("Origin")) != 1 {
		return false
	}
	text := strings.ToLower(r.Header.Get("Origin"))
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Scheme+"://"+u.Host != text {
		return false
	}
	if strings.EqualFold(u.Host, r.Host) || local && loopback(hostname(u.Host)) {
		return true
	}
	return slices.ContainsFunc(d.o.Origins, func(o string) bool {
		return o == "*" || strings.TrimSuffix(strings.ToLower(o), "/") == text
	})
}

// hostname returns the host of host:port, in lower case.
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
