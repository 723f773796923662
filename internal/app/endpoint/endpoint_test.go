package endpoint

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// TestBind resolves the bind modes on machines with and without a tailnet, in and
// out of a container, with each way of authentication.
func TestBind(t *testing.T) {
	addr := func(s string) net.Addr { ip, n, _ := net.ParseCIDR(s); n.IP = ip; return n }
	home := []net.Addr{addr("127.0.0.1/8"), addr("192.168.1.5/24"), addr("100.128.0.1/32")}
	tailnet := append(slices.Clone(home), addr("100.101.102.103/32"), addr("fd7a:115c:a1e0::1/128"))
	const (
		unguarded = "without authentication"
		open      = "without TLS"
	)
	for _, tt := range []struct {
		name                   string
		g                      Options
		interfaces             []net.Addr
		container              bool
		none, token, tls, flag string // the address or the error: mode none; with a token; and TLS; and --allow-insecure
	}{
		{"GW-22 no configuration", Options{}, tailnet, true, "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"GW-22 loopback", Options{Bind: "loopback"}, tailnet, true, "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"GW-22 GW-04 lan", Options{Bind: "lan"}, home, false, unguarded, open, "0.0.0.0", "0.0.0.0"},
		{"GW-22 tailnet", Options{Bind: "tailnet"}, tailnet, false, unguarded, open, "100.101.102.103", "100.101.102.103"},
		{"tailnet, on a machine without one", Options{Bind: "tailnet"}, home, false, "no tailnet address", "no tailnet address", "no tailnet address", "no tailnet address"},
		{"GW-22 auto", Options{Bind: "auto"}, tailnet, false, "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"GW-22 auto in a container", Options{Bind: "auto"}, tailnet, true, unguarded, open, "0.0.0.0", "0.0.0.0"},
		{"GW-22 custom", Options{Bind: "custom", CustomHost: "192.168.1.5"}, home, false, unguarded, open, "192.168.1.5", "192.168.1.5"},
		{"GW-22 custom, IPv6", Options{Bind: "custom", CustomHost: "::"}, home, false, unguarded, open, "::", "::"},
		{"GW-22 custom on this machine", Options{Bind: "custom", CustomHost: "::1"}, home, false, "::1", "::1", "::1", "::1"},
		{"custom without an address", Options{Bind: "custom"}, home, false, "customBindHost", "customBindHost", "customBindHost", "customBindHost"},
		{"nonsense", Options{Bind: "moon"}, home, false, "want loopback", "want loopback", "want loopback", "want loopback"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, way := range []struct {
				mode      string
				tls, flag bool
				want      string
			}{
				{"none", false, false, tt.none},
				{"none", true, true, tt.none},
				{"token", false, false, tt.token},
				{"token", true, false, tt.tls},
				{"token", false, true, tt.flag},
				{"trusted-proxy", false, false, tt.tls},
			} {
				g := tt.g
				g.Auth.Mode, g.TLS.Enabled = way.mode, way.tls
				host, err := g.hostOn(tt.interfaces, tt.container)
				if err == nil {
					err = g.Safe(host, way.flag)
				}
				got := host.String()
				if err != nil {
					got = err.Error()
				}
				if got != way.want && (err == nil || !strings.Contains(got, way.want)) {
					t.Errorf("%s, TLS %v, allowed %v: got %s, want %s", way.mode, way.tls, way.flag, got, way.want)
				}
			}
		})
	}
}

func TestToken(t *testing.T) {
	p := Env{State: t.TempDir(), Env: func(string) string { return "" }}
	var g Options
	first, made, err := g.token(p)
	if err != nil || !made || len(first.Reveal()) < 32 {
		t.Fatalf("first start: made %v, %v", made, err)
	}
	if info, err := os.Stat(tokenPath(p.State)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of the token: %v, %v; want mode 0600", info, err)
	}
	second, made, err := g.token(p)
	if err != nil || made || !second.Equal(first) {
		t.Errorf("second start: made %v, another token %v, %v", made, !second.Equal(first), err)
	}
	g.Auth.Token = secret.ParseRef("mine")
	if v, made, err := g.token(p); err != nil || made || v.Reveal() != "mine" {
		t.Errorf("the configuration's token: made %v, %v", made, err)
	}
}
