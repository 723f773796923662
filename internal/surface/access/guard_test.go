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

// FuzzGuard checks that a web page passes only if its origin is the gateway's
// own under a known name, on this machine, or allowed.
func FuzzGuard(f *testing.F) {
	d := New(Options{Log: slog.New(slog.DiscardHandler), Origins: []string{"https://ui.example"}, Hosts: []string{"box"}})
	for _, seed := range [][3]string{
		{"127.0.0.1:18789", "http://127.0.0.1:18789", ""}, {"box", "http://box", ""},
		{"ui.example", "https://ui.example", ""},
		{"evil.example", "http://evil.example", ""}, {"localhost", "null", ""},
		{"localhost", "http://localhost@evil.example", ""},
		{"127.0.0.1", "http://127.0.0.1.evil.example", ""}, {"[::1]:1", "http://[::1]:1", ""},
		{"localhost", "http://LOCALHOST.evil.example", "1.1.1.1"},
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
		if err != nil || !strings.EqualFold(u.Host, host) && !(from.Local && loopback(hostname(u.Host))) &&
			u.Host != "ui.example" {
			t.Fatalf("origin %q passed for host %q", origin, host)
		}
	})
}

// TestLoopback checks names that only end in the letters of a local one. The
// fuzz test cannot find them, because its oracle is loopback itself.
func TestLoopback(t *testing.T) {
	d := New(Options{Log: slog.New(slog.DiscardHandler)})
	for host, want := range map[string]bool{
		"localhost":         true,
		"a.localhost":       true,
		"127.0.0.1":         true,
		"::1":               true,
		"::ffff:127.0.0.1":  true,
		"evillocalhost":     false,
		"evil-localhost":    false,
		"localhost.example": false,
		"evil.127.0.0.1":    false,
		"10.0.0.1":          false,
		"":                  false,
	} {
		if got := loopback(host); got != want {
			t.Errorf("loopback(%q) = %v, want %v", host, got, want)
		}
		if _, err := netip.ParseAddr(host); err != nil && d.isKnownHost(host) != want {
			t.Errorf("knows(%q) = %v, want %v", host, !want, want)
		}
	}
}

// TestNoHost checks that a request without a host is refused, whatever is configured.
func TestNoHost(t *testing.T) {
	d := New(Options{Log: slog.New(slog.DiscardHandler), Hosts: []string{""}, Origins: []string{"*", "%"}})
	if d.isKnownHost("") {
		t.Error("no host is a known one")
	}
}

// TestEviction checks whom a full limiter forgets first: not who is still locked out,
// and not who just failed.
func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{Log: slog.New(slog.DiscardHandler)})
		host := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 3, byte(i >> 8), byte(i)}) }
		for range maxFailures {
			d.limit.Add(host(0))
		}
		d.limit.Add(host(1))
		time.Sleep(window + time.Second)
		for i := range maxHosts - 2 {
			d.limit.Add(host(2 + i))
		}
		d.limit.Add(host(maxHosts))
		if d.limit.Locked(host(0)) == 0 {
			t.Error("the address that is locked out was forgotten")
		}
		if len(d.limit.hosts) != maxHosts || d.limit.hosts[host(1)] != nil {
			t.Errorf("of %d addresses the one that failed long ago is stored: %v", len(d.limit.hosts),
				d.limit.hosts[host(1)] != nil)
		}
	})
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{Log: slog.New(slog.DiscardHandler)})
		a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for range maxFailures - 1 {
			d.limit.Add(a)
		}
		if d.limit.Locked(a) != 0 {
			t.Error("locked out after nine failures")
		}
		time.Sleep(window + time.Second)
		d.limit.Add(a)
		if d.limit.Locked(a) != 0 {
			t.Error("failures of an earlier minute count")
		}
		for range maxFailures {
			d.limit.Add(a)
		}
		if got := d.limit.Locked(a); got != lockout {
			t.Errorf("locked out for %v, want %v", got, lockout)
		}
		if d.limit.Locked(b) != 0 {
			t.Error("another address is locked out")
		}
		if d.limit.Locked(netip.MustParseAddr("::ffff:192.0.2.1")) == 0 {
			t.Error("the same address as IPv6 is not locked out")
		}
		for range maxFailures {
			d.limit.Add(netip.MustParseAddr("2001:db8::1"))
		}
		if d.limit.Locked(netip.MustParseAddr("2001:db8::2")) == 0 {
			t.Error("an address in the same network is not locked out")
		}
		for i := range 3 * maxHosts {
			d.limit.Add(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}))
		}
		if n := len(d.limit.hosts); n > maxHosts {
			t.Errorf("%d addresses are stored, want at most %d", n, maxHosts)
		}
		if d.limit.Locked(a) == 0 {
			t.Error("a locked-out address was evicted")
		}
		time.Sleep(lockout)
		if d.limit.Locked(a) != 0 {
			t.Error("locked out for longer than five minutes")
		}
	})
}

// TestManyLockouts locks out more addresses than are stored.
func TestManyLockouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(Options{Log: slog.New(slog.DiscardHandler)})
		host := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}) }
		const more = 20
		for i := range maxHosts + more {
			for range maxFailures {
				d.limit.Add(host(i))
			}
			time.Sleep(time.Millisecond)
		}
		if n := len(d.limit.hosts); n > maxHosts {
			t.Errorf("%d addresses are stored, want at most %d", n, maxHosts)
		}
		forgotten := 0
		for i := range maxHosts + more {
			if d.limit.Locked(host(i)) == 0 {
				forgotten++
				if i >= more {
					t.Errorf("address %d is not locked out any more, although others were before it", i)
				}
			}
		}
		if forgotten != more {
			t.Errorf("%d addresses are not locked out any more, want %d", forgotten, more)
		}
	})
}
