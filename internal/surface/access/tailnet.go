package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Tailnet is the way on which Tailscale's program on this machine forwards requests from its
// network to the gateway (tailscale serve), or from the internet (tailscale funnel). A request
// on it is never a local one.
type Tailnet struct {
	Name   string // DNS name of this machine in the network, in lower case
	Public bool   // from the internet
	// From reports whether a connection to own is one of Tailscale's program. known is false
	// if this system does not tell whose it is.
	From func(peer, own netip.AddrPort) (ok, known bool)
	// WhoIs returns the login name of the user whose machine has an address in the network.
	// nil: users need a credential like anybody else.
	WhoIs func(context.Context, netip.Addr) (string, error)
}

// way is how a request came from a Tailscale network.
type way int

const (
	notTailnet   way = iota
	throughIt        // with the address that the program of this machine says
	identifiable     // and the program is Tailscale's for certain, and the address is of the network
)

// userHeader is the header in which Tailscale's program names the user.
const userHeader = "Tailscale-User-Login"

// tailnets are the networks of the addresses that Tailscale gives.
var tailnets = [...]netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("fd7a:115c:a1e0::/48")}

// forwardedFor reports whether a request names the address of a client.
func forwardedFor(r *http.Request) bool { return r.Header.Get("X-Forwarded-For") != "" }

// throughTailnet applies the address that Tailscale's program reports. It refuses what another
// program of this machine, or a web page with a name of its own, could send.
func (d *Authenticator) throughTailnet(r *http.Request, f *Source, peer netip.AddrPort) *refusal {
	t := d.o.Tailnet
	if host := hostname(r.Host); host != t.Name {
		return &refusal{http.StatusForbidden, "forbidden",
			fmt.Sprintf("host %q is not the name of this machine in the Tailscale network", host), 0}
	}
	own, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	ok, known := false, false
	if own != nil {
		if a, err := netip.ParseAddrPort(own.String()); err == nil {
			ok, known = t.From(peer, a)
		}
	}
	if known && !ok {
		return &refusal{http.StatusForbidden, "forbidden", "forwarded by a program that is not Tailscale's", 0}
	}
	values := r.Header.Values("X-Forwarded-For")
	client, err := netip.ParseAddr(strings.TrimSpace(values[0]))
	if err != nil || len(values) != 1 || r.Header.Get("Forwarded") != "" {
		return &refusal{http.StatusForbidden, "forbidden", "Tailscale's program names one client", 0}
	}
	f.Addr, f.Proxied, f.tailnet = client.Unmap(), false, throughIt
	if known && !t.Public && inTailnet(f.Addr) {
		f.tailnet = identifiable
	}
	return nil
}

func inTailnet(a netip.Addr) bool {
	for _, p := range tailnets {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// tailnetUser reports whether a request is of the user of a machine in the Tailscale network:
// the program on this machine says so, and Tailscale says that the machine is the user's.
func (d *Authenticator) tailnetUser(ctx context.Context, f Source) bool {
	t := d.o.Tailnet
	if t == nil || t.WhoIs == nil || f.tailnet != identifiable || d.o.Mode != ModeToken && d.o.Mode != ModePassword {
		return false
	}
	says := f.header.Values(userHeader)
	if len(says) != 1 || says[0] == "" {
		return false
	}
	login, err := t.WhoIs(ctx, f.Addr)
	if err != nil {
		d.o.Log.Warn("ask Tailscale whose machine it is", "addr", f.Addr.String(), "err", err)
		return false
	}
	return login != "" && strings.EqualFold(login, says[0])
}
