package chelatest_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/test/chelatest"
)

// TestBind starts gateways on the addresses of this machine that no other machine
// reaches. Linux has all of 127.0.0.0/8.
func TestBind(t *testing.T) {
	all := []string{"127.0.0.1", "127.0.0.2", "::1"}
	for _, tt := range []struct {
		name, section string
		want          string // the address, or the error
	}{
		{"GW-22 loopback listens on 127.0.0.1 alone", `{"bind": "loopback", "auth": {"token": "a-token"}}`, "127.0.0.1"},
		{"GW-22 loopback needs no token", `{"bind": "loopback", "auth": {"mode": "none"}}`, "127.0.0.1"},
		{"GW-22 custom listens on its address alone",
			`{"bind": "custom", "customBindHost": "127.0.0.2", "auth": {"token": "a-token"}}`, "127.0.0.2"},
		{"GW-22 custom of this machine needs no token",
			`{"bind": "custom", "customBindHost": "127.0.0.2", "auth": {"mode": "none"}}`, "127.0.0.2"},
		{"GW-22 lan without a token is refused", `{"bind": "lan", "auth": {"mode": "none"}}`,
			"refusing to listen on 0.0.0.0 without authentication"},
		{"GW-22 custom without a token is refused",
			`{"bind": "custom", "customBindHost": "192.0.2.1", "auth": {"mode": "none"}}`,
			"refusing to listen on 192.0.2.1 without authentication"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, err := chelatest.TryStart(t, chelatest.Options{
				Listen: &endpoint.Listen{Port: -1, Insecure: true},
				Config: chelatest.Config{"gateway": json.RawMessage(tt.section)},
			})
			if !slices.Contains(all, tt.want) {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the start: %v, want %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(g.URL())
			if err != nil {
				t.Fatal(err)
			}
			for _, address := range all {
				c, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort(address, u.Port()))
				if err == nil {
					c.Close()
				}
				if address == tt.want && err != nil || address != tt.want && err == nil {
					t.Errorf("a connection to %s: %v; the gateway has to listen on %s", address, err, tt.want)
				} else if err != nil && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
					t.Errorf("a connection to %s: %v", address, err)
				}
			}
		})
	}
}
