package endpoint

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
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
		{"GW-13 GW-22 no configuration, in a container", Options{}, tailnet, true, "127.0.0.1", "127.0.0.1",
			"127.0.0.1", "127.0.0.1"},
		{"GW-22 loopback", Options{Bind: "loopback"}, tailnet, true, "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"GW-22 GW-04 lan", Options{Bind: "lan"}, home, false, unguarded, open, "0.0.0.0", "0.0.0.0"},
		{"GW-22 tailnet", Options{Bind: "tailnet"}, tailnet, false, unguarded, open, "100.101.102.103", "100.101.102.103"},
		{"tailnet, on a machine without one", Options{Bind: "tailnet"}, home, false, "no tailnet address",
			"no tailnet address", "no tailnet address", "no tailnet address"},
		{"GW-22 auto", Options{Bind: "auto"}, tailnet, false, "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"GW-13 GW-22 auto in a container", Options{Bind: "auto"}, tailnet, true, unguarded, open, "0.0.0.0", "0.0.0.0"},
		{"GW-22 custom", Options{Bind: "custom", CustomHost: "192.168.1.5"}, home, false, unguarded, open,
			"192.168.1.5", "192.168.1.5"},
		{"GW-22 custom, IPv6", Options{Bind: "custom", CustomHost: "::"}, home, false, unguarded, open, "::", "::"},
		{"GW-22 custom on this machine", Options{Bind: "custom", CustomHost: "::1"}, home, false, "::1", "::1", "::1", "::1"},
		{"custom without an address", Options{Bind: "custom"}, home, false, "customBindHost", "customBindHost",
			"customBindHost", "customBindHost"},
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

// TestOpen opens a port at an address that no machine has, and one that is used.
func TestOpen(t *testing.T) {
	t.Parallel()
	used, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	named, want := runtime.GOOS != "windows", "is used by" // the cause is not recognized there
	if !named {
		want = "cannot be used"
	}
	for _, tt := range []struct {
		name, host string
		port       int
		taken      bool
		want, hint string
	}{
		{"an address of no machine", "192.0.2.1", 18789, false, "port 18789 cannot be used",
			"chela gateway run --port 18790"},
		{"the last port", "192.0.2.1", 65535, false, "port 65535 cannot be used", "chela gateway run --port 1"},
		{"a used port", "127.0.0.1", used.Addr().(*net.TCPAddr).Port, named, want, "chela gateway run --port"},
	} {
		g := Options{Port: &tt.port}
		l, _, err := g.Open(t.Context(), Env{State: t.TempDir()}, netip.MustParseAddr(tt.host))
		if err == nil {
			l.Close()
			t.Errorf("%s was opened", tt.name)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || !strings.Contains(chela.HintOf(err), tt.hint) ||
			chela.CodeOf(err) != chela.CodeUnavailable {
			t.Errorf("%s: %v (%s), want %q (%s)", tt.name, err, chela.HintOf(err), tt.want, tt.hint)
		}
		if _, ok := errors.AsType[*TakenError](err); ok != tt.taken {
			t.Errorf("%s: another process has it: %v", tt.name, ok)
		}
		if cause, ok := errors.AsType[*net.OpError](err); ok == tt.taken {
			t.Errorf("%s: the cause is %v", tt.name, cause)
		}
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
