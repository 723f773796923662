package egress_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chela-ai/chela/internal/core/egress"
)

// forbidden returns hosts that must not be reached, in many spellings.
func forbidden() []string {
	hosts := []string{
		// plain
		"127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.255", "10.0.0.1", "10.255.255.255",
		"172.16.0.1", "172.31.255.254",
		"192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.170.2", "100.64.0.1",
		"100.100.100.200", "100.127.255.255",
		"0.0.0.0", "0.1.2.3", "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
		"203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16", "192.88.99.1",
		// other spellings of IPv4 addresses
		"127.1", "127.0.1", "127.0.0.1.", "127.0.0.1..", "2130706433", "0x7f000001", "0x7f.0.0.1", "0x7f.1",
		"0x7F.0X0.0.0x1", "017700000001",
		"0177.0.0.1", "0177.1", "127.0.0.01", "127.00.0.1", "127.0.0.0x1", "00000177.0.0.1", "0", "0.0",
		"0x0", "00", "127.0x1",
		"2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.254.43518", "169.16689662",
		"3232235521", "0xc0a80001",
		"167772161", "0x0a000001", "012.0.0.1", "10.1", "172.1048577", "1.2.3.4.5", "256.256.256.256", "127.0.0.1.1",
		"0x7f.0.0.01", "4294967295",
		"1", "1.1", "1.1.1", "08.8.8.8", "127。0。0。1", "１２７.０.０.１", "①②⑦.0.0.1", "127．0．0．1", "127｡0｡0｡1", "１２７。１",
		// IPv6
		"[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::]", "[0::0]", "[::0001]",
		"[::127.0.0.1]", "[::7f00:1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::FFFF:127.0.0.1]",
		"[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]",
		"[::ffff:169.254.169.254]", "[::ffff:192.168.1.1]", "[::ffff:0.0.0.0]", "[::ffff:100.64.0.1]", "[::ffff:0:127.0.0.1]",
		"[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::a9fe:a9fe]",
		"[64:ff9b:1::127.0.0.1]", "[64:ff9b:1::1]",
		"[2002:7f00:1::]", "[2002:7f00:0001::1]", "[2002:a9fe:a9fe::]", "[2002:0a00:0001::]", "[2002:c0a8:0101::1]",
		"[2001:0000:7f00:1::]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[2001::1]", "[2001:10::1]",
		"[2001:db8::1]", "[3fff::1]",
		"[fe80::1]", "[fe80::1%25eth0]", "[fe80::1%25lo]", "[::1%25lo]", "[::1%251]", "[febf::1]", "[fec0::1]",
		"[fc00::1]", "[fd00::1]",
		"[fd00:ec2::254]", "[fdff:ffff::1]", "[ff02::1]", "[ff01::1]", "[ff0e::1]", "[100::1]", "[5f00::1]",
		"[4000::1]", "[e000::1]",
		"[2607:f8b0::5efe:127.0.0.1]", "[2607:f8b0::200:5efe:10.0.0.1]", "[2607:f8b0::5efe:a9fe:a9fe]", "::1",
		"0:0:0:0:0:0:0:1", "[127.0.0.1]",
		// local names
		"localhost", "LOCALHOST", "LocalHost", "localhost.", "localhost..", "foo.localhost", "a.b.localhost.",
		"localhost.localdomain",
		"x.localdomain", "printer.local", "router.home.arpa", "metadata.google.internal",
		"METADATA.google.internal.", "vault.internal",
		"ｌｏｃａｌｈｏｓｔ", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "loca\u00adlhost", "localhost。", "kubernetes.default.svc.cluster.local",
		// names that resolve to this machine, as all names do in these tests
		"evil.example", "EVIL.example", "evil.example.", "127.0.0.1.nip.example", "0x7f.1.example", "localtest.example",
		"xn--nxasmq6b.example",
		"münchen.example", "例え.example", "a_b.example", "a-b.example", "single", "x.y.z.example",
		"1.2.3.4.in-addr.arpa", "0x7f000001.example",
		// not hosts
		"", ".", "..", "...", "a..b", ".localhost", "%31%32%37.0.0.1", "127.0.0.1%00", "127.0.0.1%0d%0a",
		"127.0.0.1%2f@example.com",
		"127.0.0.1\r\nHost: example.com", "127.0.0.1\t", " 127.0.0.1", "127.0.0.1 ", "127.0.0.1\x00",
		"127.0.0.1\\@example.com", "[::1", "::1]",
		"[[::1]]", "[]", "[:::1]", "[::1]extra", "[::1%]", "[::1%25]", "127.0.0.1:80:80", "*", "*.example", "a$b", "a,b",
		"a;b", "a'b", "<script>",
		strings.Repeat("a", 64) + ".example", strings.Repeat("a.", 130) + "example", "-", "_", "exa mple",
		"example\u202ecom", "\u200b127.0.0.1",
		// userinfo and other decorations before and after
		"example.com@127.0.0.1", "user:pass@127.0.0.1", "127.0.0.1@127.0.0.1", "example.com:80@127.0.0.1", "a@b@127.0.0.1",
		"example.com%40127.0.0.1",
		"@127.0.0.1", ":@127.0.0.1", "http://example.com@localhost", "%61:%62@[::1]", "example.com#@127.0.0.1",
		"example.com%2f@localhost",
	}
	for _, h := range []string{"127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]",
		"evil.example", "127.1"} {
		for _, p := range []string{":0", ":00", ":99999", ":-1", ":+80", ":080", ":8０", ":", ":http", ":80 ", ":%38%30"} {
			hosts = append(hosts, h+p)
		}
	}
	return hosts
}

// TestForms requests every forbidden host while every name resolves to this
// machine, where a listener counts connections.
func TestForms(t *testing.T) {
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(s.Close)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	var dials atomic.Int32
	lookups := map[string]bool{}
	options := egress.Options{
		MaxRedirects: 3,
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			lookups[host] = true
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dials.Add(1)
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
	var urls []string
	for _, h := range forbidden() {
		urls = append(urls, "http://"+h+"/x", "HTTP://"+h+"?q")
		if !strings.Contains(h, ":") || strings.HasSuffix(h, "]") {
			urls = append(urls, "http://"+h+":"+port+"/x")
		}
	}
	urls = append(urls,
		"ftp://127.0.0.1/", "file:///etc/passwd", "file://localhost/etc/passwd", "gopher://127.0.0.1:70/x",
		"data:text/plain,x", "javascript:1",
		"ws://127.0.0.1/", "unix:///tmp/s", "//127.0.0.1/", "127.0.0.1", "/x", "", "http:", "http:/127.0.0.1",
		"http:127.0.0.1", "http:///x", "https://",
		"http://127.0.0.1:"+port, "https://127.0.0.1:"+port, "https://localhost:"+port, "http:\\\\127.0.0.1",
		"jar:http://127.0.0.1!/")
	if len(urls) < 300 {
		t.Fatalf("%d forms, want 300", len(urls))
	}
	c := egress.Client(options)
	defer c.CloseIdleConnections()
	t.Run("S19 no form of a forbidden address is connected to", func(t *testing.T) {
		for _, u := range urls {
			if _, err := get(t, c, u); err == nil {
				t.Errorf("%q got a response", u)
			} else if r, parse := refused(err), strings.Contains(err.Error(), "parse"); !r && !parse &&
				!strings.Contains(err.Error(), "unsupported protocol") && !strings.Contains(err.Error(), "no Host") {
				t.Errorf("%q: %v, want it refused", u, err)
			}
		}
		if hits.Load() != 0 || dials.Load() != 0 {
			t.Errorf("%d requests, %d connections", hits.Load(), dials.Load())
		}
		if !lookups["evil.example"] || !lookups["xn--mnchen-3ya.example"] || lookups["localhost"] || lookups["2130706433"] {
			t.Errorf("lookups %v", lookups)
		}
		t.Logf("%d forms, 0 connections", len(urls))
	})
	t.Run("S19 the listener is reachable if private networks are allowed", func(t *testing.T) {
		options.Private = true
		c := egress.Client(options)
		defer c.CloseIdleConnections()
		for _, h := range []string{"127.0.0.1", "localhost", "evil.example", "[::ffff:127.0.0.1]"} {
			if _, err := get(t, c, "http://"+h+":"+port+"/"); err != nil {
				t.Error(err)
			}
		}
		if hits.Load() != 4 {
			t.Errorf("%d requests, want 4", hits.Load())
		}
		for _, h := range []string{"169.254.169.254", "2130706433", "[fe80::1]", "224.0.0.1", "0.0.0.0"} {
			if _, err := get(t, c, "http://"+h+":"+port+"/"); !refused(err) {
				t.Errorf("%s: %v, want it refused even if private networks are allowed", h, err)
			}
		}
	})
}

func FuzzPolicy(f *testing.F) {
	for _, h := range forbidden() {
		f.Add("http://" + h + "/")
	}
	for _, u := range []string{"https://example.com/a?b=c#d", "http://93.184.216.34:8080", "http://[2606:2800:220:1::1]/",
		"http://bücher.example/"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) {
		var dialled []string
		c := egress.Client(egress.Options{
			Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
				if a, ok := loose(host); ok {
					return []netip.Addr{a}, nil
				}
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			},
			Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
				dialled = append(dialled, addr)
				return nil, net.ErrClosed
			},
		})
		_, _ = get(t, c, u)
		for _, addr := range dialled {
			a, err := netip.ParseAddrPort(addr)
			if err != nil {
				t.Fatalf("%q: dials %s: %v", u, addr, err)
			}
			ip := a.Addr()
			if ip != ip.Unmap() || ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() ||
				ip.IsUnspecified() || ip.Zone() != "" {
				t.Errorf("%q: dials %s", u, addr)
			}
		}
	})
}

// loose parses an address like inet_aton, which many resolvers use.
func loose(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var n uint64
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 0, 32)
		if err != nil || p[0] == '+' || strings.Contains(p, "_") {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			n = n<<(8*(4-i)) | v
		} else {
			n = n<<8 | v
		}
	}
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), true
}
