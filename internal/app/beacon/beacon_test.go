package beacon

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/cli"
)

var home = cli.Beacon{
	Name: "home", Host: "home.local", Addrs: []netip.Addr{netip.MustParseAddr("192.168.1.2")}, Port: 18789,
	TLS: true, Fingerprint: "00ff", SSHPort: 22, Program: "/usr/bin/chela",
}

var here = netip.MustParseAddr("127.0.0.1")

var comparable = cmpopts.EquateComparable(netip.Addr{})

func TestTexts(t *testing.T) {
	t.Parallel()
	minimal := []string{"role=gateway", "transport=gateway", "displayName=home", "lanHost=home.local", "gatewayPort=18789",
		"gatewayTls=1", "gatewayTlsSha256=00ff"}
	for mode, want := range map[string][]string{
		Minimal: minimal, Full: append(minimal[:len(minimal):len(minimal)], "cliPath=/usr/bin/chela", "sshPort=22"),
	} {
		t.Run("GW-10 "+mode, func(t *testing.T) {
			t.Parallel()
			b := Limit(home, mode)
			packet, err := answer(b, ttl, 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			var m dnsmessage.Message
			if err := m.Unpack(packet); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range m.Additionals {
				if txt, ok := r.Body.(*dnsmessage.TXTResource); ok {
					got = append(got, txt.TXT...)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			known := map[string]cli.Beacon{}
			found(packet, here, known)
			if diff := cmp.Diff(map[string]cli.Beacon{"home." + service: b}, known, comparable); diff != "" {
				t.Errorf("read again:\n%s", diff)
			}
		})
	}
}

func TestMode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ section, variable, value, want string }{
		{"", "", "", Minimal}, {`{}`, "", "", Minimal}, {`{"mdns": {"mode": "full"}}`, "", "", Full},
		{`{"mdns": {"mode": "off"}}`, "", "", Off},
		{`{"mdns": {"mode": "full"}}`, "OPENCLAW_DISABLE_BONJOUR", "1", Off}, {"", "CHELA_DISABLE_BONJOUR", "true", Off},
		{"", "CHELA_DISABLE_BONJOUR", "0", Minimal},
	} {
		t.Run("GW-10 "+tc.section+" "+tc.variable+" "+tc.value, func(t *testing.T) {
			t.Parallel()
			var section json.RawMessage
			if tc.section != "" {
				section = json.RawMessage(tc.section)
			}
			got, err := Mode(section, func(name string) string { return map[string]string{tc.variable: tc.value}[name] })
			if got != tc.want || err != nil {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// socket opens a UDP socket of this machine.
func socket(t *testing.T) (*net.UDPConn, *net.UDPAddr) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, c.LocalAddr().(*net.UDPAddr)
}

// loopback returns the loopback interface.
func loopback(t *testing.T) []net.Interface {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return []net.Interface{i}
		}
	}
	t.Skip("no loopback interface")
	return nil
}

// TestServe asks a beacon over the loopback interface, without multicast: the group is the
// beacon's own address.
func TestServe(t *testing.T) {
	t.Parallel()
	links := loopback(t)
	beacon, at := socket(t)
	_, quiet := socket(t) // where the beacon's own announcements go
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, beacon, links, quiet, Limit(home, Minimal)) }()

	t.Run("GW-11 a beacon is found with host, port and certificate", func(t *testing.T) {
		var got []cli.Beacon
		waittest.Until(t, "the beacon", func() bool {
			asker, _ := socket(t)
			limited, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer end()
			var err error
			if got, err = find(limited, asker, links, at); err != nil {
				t.Fatal(err)
			}
			return len(got) > 0
		})
		if diff := cmp.Diff([]cli.Beacon{Limit(home, Minimal)}, got, comparable); diff != "" {
			t.Error(diff)
		}
		if got[0].URL() != "wss://192.168.1.2:18789" {
			t.Error(got[0].URL())
		}
	})
	t.Run("GW-10 only what is asked about the beacon is answered", func(t *testing.T) {
		other := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("_http._tcp.local."),
			Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
		about, err := other.Pack()
		if err != nil {
			t.Fatal(err)
		}
		own, err := answer(home, ttl, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, packet := range [][]byte{about, own, []byte("nonsense"), nil} {
			if _, questions, _ := asked(packet, home); len(questions) > 0 {
				t.Errorf("%q is a question", packet)
			}
		}
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestFound reads what others on the network could send.
func TestFound(t *testing.T) {
	t.Parallel()
	known := map[string]cli.Beacon{}
	for i := range 2 * maxFound {
		b := home
		b.Name = strings.Repeat("x", i%60+1) + string(rune('a'+i/60)) + strings.Repeat("y", i/60)
		packet, err := answer(b, ttl, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		found(packet, here, known)
	}
	if len(known) != maxFound {
		t.Errorf("%d beacons are kept", len(known))
	}
	for name, b := range known {
		b.Name = strings.TrimSuffix(name, "."+service)
		bye, err := answer(b, 0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		found(bye, here, known)
	}
	if len(known) != 0 {
		t.Errorf("%d beacons are left after their goodbyes", len(known))
	}
	far := home
	far.Addrs = nil
	packet, err := answer(far, ttl, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	found(packet, here, known)
	if b := known["home."+service]; len(b.Addrs) != 1 || b.Addrs[0] != here {
		t.Errorf("without an address, it is that of the sender: %+v", b)
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{"127.0.0.1": true, "203.0.113.200": false} {
		if got := near(net.ParseIP(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func FuzzFound(f *testing.F) {
	packet, err := answer(home, ttl, 0, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packet)
	f.Fuzz(func(t *testing.T, packet []byte) {
		found(packet, here, map[string]cli.Beacon{})
		asked(packet, home)
	})
}
