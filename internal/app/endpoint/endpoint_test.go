package endpoint

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/secret"
)

func TestBind(t *testing.T) {
	for _, tt := range []struct {
		name     string
		g        Options
		mode     string
		tls      bool
		insecure bool
		want     string // the address or the error
	}{
		{"GW-22 no configuration", Options{}, "token", false, false, "127.0.0.1"},
		{"GW-22 loopback without a token", Options{Bind: "loopback"}, "none", false, false, "127.0.0.1"},
		{"GW-04 lan without authentication", Options{Bind: "lan"}, "none", true, true, "without authentication"},
		{"GW-04 lan with a token and TLS", Options{Bind: "lan"}, "token", true, false, "0.0.0.0"},
		{"lan with a token, without TLS", Options{Bind: "lan"}, "token", false, false, "without TLS"},
		{"lan with a token, and the flag", Options{Bind: "lan"}, "token", false, true, "0.0.0.0"},
		{"lan behind a proxy", Options{Bind: "lan"}, "trusted-proxy", false, false, "0.0.0.0"},
		{"GW-22 custom", Options{Bind: "custom", CustomHost: "192.168.7.7"}, "token", true, false, "192.168.7.7"},
		{"custom on this machine", Options{Bind: "custom", CustomHost: "::1"}, "token", false, false, "::1"},
		{"custom without an address", Options{Bind: "custom"}, "token", true, false, "customBindHost"},
		{"nonsense", Options{Bind: "moon"}, "token", true, false, "want loopback"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.g.Auth.Mode, tt.g.TLS.Enabled = tt.mode, tt.tls
			host, err := tt.g.Host()
			if err == nil {
				err = tt.g.Safe(host, tt.insecure)
			}
			got := host.String()
			if err != nil {
				got = err.Error()
			}
			if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTailnet(t *testing.T) {
	addr := func(s string) net.Addr { ip, n, _ := net.ParseCIDR(s); n.IP = ip; return n }
	lan := addr("192.168.1.5/24")
	if a, err := tailnet([]net.Addr{lan, addr("100.101.102.103/32")}); err != nil || a != netip.MustParseAddr("100.101.102.103") {
		t.Errorf("GW-22 tailnet: %v, %v", a, err)
	}
	if a, err := tailnet([]net.Addr{lan}); err == nil {
		t.Errorf("without a tailnet: %v, want an error", a)
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
