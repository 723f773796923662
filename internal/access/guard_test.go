package access

import (
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzGuard: whatever a browser says, a page passes only when it is the
// gateway's own under a name that the gateway goes by, one of this machine, or
// one that is allowed.
func FuzzGuard(f *testing.F) {
	d := New(Options{Log: slog.New(slog.DiscardHandler), Origins: []string{"https://ui.example"}, Hosts: []string{"box"}})
	for _, seed := range [][3]string{
		{"127.0.0.1:18789", "http://127.0.0.1:18789", ""}, {"box", "http://box", ""}, {"ui.example", "https://ui.example", ""},
		{"evil.example", "http://evil.example", ""}, {"localhost", "null", ""}, {"localhost", "http://localhost@evil.example", ""},
		{"127.0.0.1", "http://127.0.0.1.evil.example", ""}, {"[::1]:1", "http://[::1]:1", ""}, {"localhost", "http://LOCALHOST.evil.example", "1.1.1.1"},
		{"localhost", "http://evil.example/http://localhost", ""}, {"localhost", "http://evil.example#localhost", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, host, origin, forwarded string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Host = "127.0.0.1:1", host
		r.Header.Set("Origin", origin)
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		from, no := d.inspect(r)
		if no != nil {
			return
		}
		name := hostname(host)
		if _, err := netip.ParseAddr(name); err != nil && name != "box" && name != "ui.example" && !loopback(name) {
			t.Fatalf("host %q passed", host)
		}
		if forwarded != "" {
			t.Fatalf("forwarded for %q passed", forwarded)
		}
		if origin == "" {
			return
		}
		u, err := url.Parse(strings.ToLower(origin))
		if err != nil || !strings.EqualFold(u.Host, host) && !(from.Local && loopback(hostname(u.Host))) && u.Host != "ui.example" {
			t.Fatalf("origin %q passed for host %q", origin, host)
		}
	})
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{Log: slog.New(slog.DiscardHandler)})
		a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for range maxFailures - 1 {
			d.limit.failed(a)
		}
		if d.limit.locked(a) != 0 {
			t.Error("nine failures lock out")
		}
		time.Sleep(window + time.Second)
		d.limit.failed(a)
		if d.limit.locked(a) != 0 {
			t.Error("failures of another minute count")
		}
		for range maxFailures {
			d.limit.failed(a)
		}
		if got := d.limit.locked(a); got != lockout {
			t.Errorf("locked out for %v, want %v", got, lockout)
		}
		if d.limit.locked(b) != 0 {
			t.Error("another address is locked out")
		}
		if d.limit.locked(netip.MustParseAddr("::ffff:192.0.2.1")) == 0 {
			t.Error("the same address in IPv6 is let in")
		}
		for range maxFailures {
			d.limit.failed(netip.MustParseAddr("2001:db8::1"))
		}
		if d.limit.locked(netip.MustParseAddr("2001:db8::2")) == 0 {
			t.Error("an address of the same network is let in")
		}
		for i := range 3 * maxHosts {
			d.limit.failed(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
		}
		if n := len(d.limit.hosts); n > maxHosts {
			t.Errorf("%d addresses are remembered, want at most %d", n, maxHosts)
		}
		if d.limit.locked(a) == 0 {
			t.Error("who is locked out was forgotten for others")
		}
		time.Sleep(lockout)
		if d.limit.locked(a) != 0 {
			t.Error("locked out for longer than five minutes")
		}
	})
}
