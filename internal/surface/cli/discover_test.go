package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// TestDiscover lists gateways on the local network, whose texts are anybody's.
func TestDiscover(t *testing.T) {
	t.Parallel()
	pin := strings.Repeat("0f", 32)
	home := Beacon{
		Name:        "home\x1b[31m",
		Host:        "home.local",
		Addrs:       []netip.Addr{netip.MustParseAddr("192.168.1.2")},
		Port:        18789,
		TLS:         true,
		Fingerprint: pin,
	}
	run := func(list []Beacon, args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		c := &commands{console: console{stdout: &out, stderr: &errs, getenv: func(string) string { return "" }}, app: App{
			Discover: func(ctx context.Context) ([]Beacon, error) {
				if _, ok := ctx.Deadline(); !ok {
					t.Error("the question has no end")
				}
				return list, nil
			},
		}}
		code := c.run(t.Context(), append([]string{"gateway", "discover"}, args...))
		return out.String(), errs.String(), code
	}
	t.Run("GW-11 the JSON has host, port and the certificate", func(t *testing.T) {
		out, _, code := run([]Beacon{home}, "--json")
		var got struct {
			Beacons []map[string]any
			Count   int
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.Count != 1 {
			t.Fatalf("%s, %v, exit code %d", out, err, code)
		}
		if b := got.Beacons[0]; b["host"] != "home.local" || b["port"] != 18789.0 || b["tls"] != true ||
			b["tlsFingerprint"] != pin {
			t.Errorf("%v", b)
		}
	})
	t.Run("GW-24 gateway discover says how to use what it found", func(t *testing.T) {
		out, errs, code := run([]Beacon{home})
		if code != 0 || !strings.Contains(out, "wss://192.168.1.2:18789  "+pin) || strings.Contains(out, "\x1b[31m") {
			t.Errorf("%q, exit code %d", out, code)
		}
		if want := "chela onboard --mode remote --remote-url wss://192.168.1.2:18789 --remote-tls-fingerprint " + pin +
			" --remote-token TOKEN"; !strings.Contains(errs, want) {
			t.Errorf("%q", errs)
		}
	})
	t.Run("a fingerprint that is none is not for typing", func(t *testing.T) {
		odd := home
		odd.Fingerprint = "$(reboot)" + pin
		if _, errs, _ := run([]Beacon{odd}); strings.Contains(errs, "reboot") {
			t.Errorf("%q", errs)
		}
	})
	t.Run("nobody answers", func(t *testing.T) {
		if out, _, code := run(nil); code != 0 || !strings.Contains(out, "no gateway answers") {
			t.Errorf("%q, exit code %d", out, code)
		}
	})
}
