package access

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// TestTailnet sends requests as Tailscale's program does, and as others could.
func TestTailnet(t *testing.T) {
	t.Parallel()
	const name, here = "box.tail1.ts.net", "127.0.0.1:5000"
	program := func(ok, known bool) func(peer, own netip.AddrPort) (bool, bool) {
		return func(peer, own netip.AddrPort) (bool, bool) {
			return ok && peer.String() == here && own.String() == "127.0.0.1:18789", known
		}
	}
	whois := func(_ context.Context, a netip.Addr) (string, error) {
		switch a.String() {
		case "100.64.0.9", "fd7a:115c:a1e0::9", "203.0.113.9":
			return "Ann@example.com", nil
		case "100.64.0.8":
			return "", nil // a machine with tags
		}
		return "", errors.New("peer not found")
	}
	serve := func() Tailnet { return Tailnet{Name: name, From: program(true, true), WhoIs: whois} }
	const forwarded, ann = "X-Forwarded-For: 100.64.0.9\nX-Forwarded-Proto: https",
		"\nTailscale-User-Login: ann@example.com"
	for _, tc := range []struct {
		name, remote, host, header string
		set                        func(*Tailnet)
		mode                       string
		status                     int
		addr                       string
		user                       bool
	}{
		{"the user of a machine", here, name, forwarded + ann, nil, "", 200, "100.64.0.9", true},
		{"by IPv6", here, name + ":443", "X-Forwarded-For: fd7a:115c:a1e0::9" + ann, nil, "", 200, "fd7a:115c:a1e0::9", true},
		{"with a password", here, name, forwarded + ann, nil, ModePassword, 200, "100.64.0.9", true},
		{"another user than Tailscale says", here, name, forwarded + "\nTailscale-User-Login: eve@example.com", nil, "",
			200, "100.64.0.9", false},
		{"a machine with tags", here, name, "X-Forwarded-For: 100.64.0.8\nTailscale-User-Login: x", nil, "",
			200, "100.64.0.8", false},
		{"a machine with tags and no user", here, name, "X-Forwarded-For: 100.64.0.8", nil, "", 200, "100.64.0.8", false},
		{"an unknown machine", here, name, "X-Forwarded-For: 100.64.0.1" + ann, nil, "", 200, "100.64.0.1", false},
		{"two users", here, name, forwarded + ann + ann, nil, "", 200, "100.64.0.9", false},
		{"identities are not accepted", here, name, forwarded + ann, func(t *Tailnet) { t.WhoIs = nil }, "",
			200, "100.64.0.9", false},
		{"from the internet", here, name, forwarded + ann, func(t *Tailnet) { t.Public = true }, "",
			200, "100.64.0.9", false},
		{"an address that is not of the network", here, name, "X-Forwarded-For: 203.0.113.9" + ann, nil, "",
			200, "203.0.113.9", false},
		{"a system that does not tell whose a connection is", here, name, forwarded + ann,
			func(t *Tailnet) { t.From = program(false, false) }, "", 200, "100.64.0.9", false},
		{"the authentication of a proxy", here, name, forwarded + ann, nil, ModeProxy, 200, "100.64.0.9", false},
		{"a program of another user", here, name, forwarded + ann, func(t *Tailnet) { t.From = program(false, true) }, "",
			403, "", false},
		{"a web page with a name of its own", here, "evil.example", forwarded + ann, nil, "", 403, "", false},
		{"the address of this machine as the host", here, "127.0.0.1:18789", forwarded + ann, nil, "", 403, "", false},
		{"two clients", here, name, "X-Forwarded-For: 100.64.0.9\nX-Forwarded-For: 100.64.0.9" + ann,
			nil, "", 403, "", false},
		{"a chain of clients", here, name, "X-Forwarded-For: 100.64.0.9, 100.64.0.8" + ann, nil, "", 403, "", false},
		{"another header for the client", here, name, forwarded + "\nForwarded: for=100.64.0.9" + ann,
			nil, "", 403, "", false},
		{"another machine", "192.168.1.2:5000", name, forwarded + ann, nil, "", 403, "", false},
		{"no client", here, name, "X-Forwarded-Proto: https" + ann, nil, "", 403, "", false},
		{"no forwarding", here, "localhost", "Tailscale-User-Login: ann@example.com", nil, "", 200, "127.0.0.1", false},
	} {
		t.Run("GW-09 "+tc.name, func(t *testing.T) {
			t.Parallel()
			net9 := serve()
			if tc.set != nil {
				tc.set(&net9)
			}
			d := New(Options{
				Log:      slog.New(slog.DiscardHandler),
				Mode:     tc.mode,
				Token:    secret.New("t"),
				Password: secret.New("p"),
				Tailnet:  &net9,
				Proxy:    ProxyOptions{UserHeader: "Tailscale-User-Login", Loopback: true},
			})
			var from Source
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			own := context.WithValue(t.Context(), http.LocalAddrContextKey,
				net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 18789}))
			r = r.WithContext(own)
			r.RemoteAddr, r.Host, r.Header = tc.remote, tc.host, headers(tc.header)
			d.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				from = FromContext(r.Context())
			})).ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if tc.status != 200 {
				return
			}
			if from.Addr.String() != tc.addr || from.Local != (tc.name == "no forwarding") || from.Proxied {
				t.Errorf("source %+v", from)
			}
			if got := d.tailnetUser(t.Context(), from); got != tc.user {
				t.Errorf("user: %v", got)
			}
			if _, err := d.proxyUser(from, nil); tc.mode == ModeProxy && err == nil {
				t.Error("a user of the network is taken for one of a trusted proxy")
			}
		})
	}
}
