package access

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

// guarded passes a request through a guard and returns the status and, if it passed,
// its source.
func guarded(d *Authenticator, remote, host, target string, header http.Header) (status int, from Source) {
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr, r.Host, r.Header = remote, host, header
	w := httptest.NewRecorder()
	d.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { from = FromContext(r.Context()) })).ServeHTTP(
		w, r)
	return w.Code, from
}

// headers returns a header of "Name: value" lines.
func headers(lines string) http.Header {
	h := http.Header{}
	for line := range strings.SplitSeq(lines, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

// TestSource checks which requests a guard refuses, and where it says that the
// others come from.
func TestSource(t *testing.T) {
	t.Parallel()
	d := New(Options{
		Log: slog.New(slog.DiscardHandler), Hosts: []string{"box"},
		Origins: []string{"https://ui.example", "https://second.example/"},
		Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	})
	const here, lan, proxy = "127.0.0.1:5000", "192.168.1.2:5000", "10.0.0.5:5000"
	const local, proxied, remote = "local", "proxied", "remote"
	for _, tt := range []struct {
		remote, host, target, header string
		status                       int
		addr, kind                   string
	}{
		// host names
		{here, "localhost:18789", "/", "", 200, "127.0.0.1", local},
		{here, "LOCALHOST.", "/", "", 200, "127.0.0.1", local},
		{"[::ffff:127.0.0.1]:1", "127.0.0.1", "/", "", 200, "127.0.0.1", local},
		{here, "10.1.1.1", "/", "", 200, "127.0.0.1", local},
		{here, "8.8.8.8", "/", "", 200, "127.0.0.1", remote}, // a public name of this machine
		{here, "box", "/", "", 200, "127.0.0.1", remote},
		{lan, "box:18789", "/", "", 200, "192.168.1.2", remote},
		{lan, "localhost", "/", "", 200, "192.168.1.2", remote},
		{lan, "ui.example", "/", "", 200, "192.168.1.2", remote},
		{lan, "second.example", "/", "", 200, "192.168.1.2", remote},
		{lan, "evilbox", "/", "", 403, "", ""},
		{lan, "x.box", "/", "", 403, "", ""},
		{lan, "box.example", "/", "", 403, "", ""},
		{lan, "evilui.example", "/", "", 403, "", ""},
		{lan, "x.ui.example", "/", "", 403, "", ""},
		{lan, "ui.example.example", "/", "", 403, "", ""},
		{lan, "evillocalhost", "/", "", 403, "", ""},
		// origins of web pages
		{lan, "box", "/", "Origin: http://box", 200, "192.168.1.2", remote},
		{lan, "box", "/", "Origin: HTTP://BOX", 200, "192.168.1.2", remote},
		{lan, "box", "/", "Origin: https://ui.example", 200, "192.168.1.2", remote},
		{lan, "box", "/", "Origin: https://second.example", 200, "192.168.1.2", remote},
		{here, "localhost:1", "/", "Origin: http://localhost:1", 200, "127.0.0.1", local},
		{here, "localhost:1", "/", "Origin: http://127.0.0.1:9", 403, "", ""}, // origins are configured
		{lan, "box", "/", "Origin: http://127.0.0.1:9", 403, "", ""},
		{lan, "box", "/", "Origin: http://evilbox", 403, "", ""},
		{lan, "box", "/", "Origin: http://x.box", 403, "", ""},
		{lan, "box", "/", "Origin: http://box:81", 403, "", ""},
		{lan, "box", "/", "Origin: http://ui.example", 403, "", ""},
		{lan, "box", "/", "Origin: https://ui.example:81", 403, "", ""},
		{lan, "box", "/", "Origin: https://evilui.example", 403, "", ""},
		{lan, "box", "/", "Origin: http://box\nOrigin: http://box", 403, "", ""},
		{lan, "box", "/", "Origin: http://box\nOrigin: http://evil.example", 403, "", ""},
		// credentials in the URL
		{lan, "box", "/?token=x", "", 400, "", ""},
		{lan, "box", "/?password=x", "", 400, "", ""},
		{lan, "box", "/?access_token=x", "", 400, "", ""},
		{lan, "box", "/?deviceToken=x", "", 400, "", ""},
		{lan, "box", "/?a=b&bootstrapToken=", "", 400, "", ""},
		{lan, "box", "/?TOKEN=x", "", 400, "", ""},
		{lan, "box", "/?auth=x", "", 400, "", ""},
		{lan, "box", "/?apikey=x", "", 400, "", ""},
		{lan, "box", "/?api_key=x", "", 400, "", ""},
		{lan, "box", "/?X=1&Key=x", "", 400, "", ""},
		{lan, "box", "/?keys=1&session=agent:main:main&author=x", "", 200, "192.168.1.2", remote},
		{lan, "box", "/?tokens=1&page=2", "", 200, "192.168.1.2", remote},
		// addresses that a proxy reports
		{proxy, "any.example", "/", "X-Forwarded-For: 203.0.113.7", 200, "203.0.113.7", proxied},
		{proxy, "any.example", "/", "X-Forwarded-For: 198.51.100.1, 203.0.113.7", 200, "203.0.113.7", proxied},
		{proxy, "any.example", "/", "X-Forwarded-For: 198.51.100.1\nX-Forwarded-For: 203.0.113.7", 200,
			"203.0.113.7", proxied},
		{proxy, "any.example", "/", "X-Forwarded-For: 198.51.100.1, 203.0.113.7, 10.0.0.9", 200, "203.0.113.7", proxied},
		{proxy, "any.example", "/", "X-Forwarded-For: 203.0.113.7, nonsense, 10.0.0.9", 200, "10.0.0.9", proxied},
		{proxy, "localhost", "/", "X-Forwarded-For: 127.0.0.1", 200, "127.0.0.1", proxied},
		{proxy, "localhost", "/", "X-Forwarded-Proto: https", 200, "10.0.0.5", proxied},
		{lan, "box", "/", "X-Forwarded-For: 127.0.0.1", 403, "", ""},
		{lan, "box", "/", "X-Real-IP: 127.0.0.1", 403, "", ""},
		{lan, "box", "/", "Forwarded: for=127.0.0.1", 403, "", ""},
		{lan, "box", "/", "X-Forwarded-Host: localhost", 403, "", ""},
		{here, "localhost", "/", "X-Forwarded-For: 127.0.0.1", 403, "", ""},
	} {
		status, from := guarded(d, tt.remote, tt.host, tt.target, headers(tt.header))
		kind := map[[2]bool]string{
			{true, false}:  local,
			{false, true}:  proxied,
			{false, false}: remote,
		}[[2]bool{from.Local, from.Proxied}]
		if status != tt.status || status == 200 && (from.Addr.String() != tt.addr || kind != tt.kind) {
			t.Errorf("%s to %s%s, %q: %d, %s %s; want %d, %s %s", tt.remote, tt.host, tt.target, tt.header, status, kind,
				from.Addr, tt.status, tt.kind, tt.addr)
		}
	}
}

// TestProxyUsers checks whom a trusted proxy may report.
func TestProxyUsers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		users  []string
		header string
		scopes string // "": refused
	}{
		{nil, "X-User: ada", "operator.admin"},
		{[]string{"ada", "bob"}, "X-User: bob", "operator.admin"},
		{[]string{"ada"}, "X-User:  ada ", "operator.admin"},
		{[]string{"ada"}, "X-User: adam", ""},
		{[]string{"ada"}, "X-User: xada", ""},
		{[]string{"ada"}, "X-User: Ada", ""},
		{[]string{"ada"}, "X-User: ada, bob", ""},
		{[]string{"ada"}, "X-Other: ada", ""},
		{[]string{}, "X-User: ada", ""},
		{nil, "X-User: ", ""},
		{nil, "X-User: ada\nX-Missing: 1", ""},
		{nil, "X-User: ada\nX-Openclaw-Scopes: operator.read", "operator.read"},
		{nil, "X-User: ada\nX-Openclaw-Scopes: operator.read operator.approvals,nonsense",
			"operator.read operator.approvals"},
		{nil, "X-User: ada\nX-Openclaw-Scopes: ", "none"},
	} {
		d := New(Options{
			Log: slog.New(slog.DiscardHandler), Mode: ModeProxy, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
			Proxy: ProxyOptions{UserHeader: "X-User", Required: []string{"X-Signed", "X-Second"}, Users: tt.users},
		})
		h := headers(tt.header)
		if h.Get("X-Missing") == "" {
			h.Set("X-Second", "1")
		}
		h.Set("X-Signed", "1")
		ask := func(remote string) string {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr, r.Host, r.Header = remote, "any.example", h
			if remote != "10.0.0.5:1" {
				r.Host = "127.0.0.1"
			}
			var who chela.Principal
			ok := false
			d.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who, ok = d.Bearer(r) })).ServeHTTP(
				httptest.NewRecorder(), r)
			if !ok {
				return ""
			}
			var scopes []string
			for _, s := range who.Scopes {
				scopes = append(scopes, string(s))
			}
			if len(scopes) == 0 {
				return "none"
			}
			return strings.Join(scopes, " ")
		}
		if got := ask("10.0.0.5:1"); got != tt.scopes {
			t.Errorf("users %q, %q: %q, want %q", tt.users, tt.header, got, tt.scopes)
		}
		for _, remote := range []string{"127.0.0.1:1", "192.168.1.2:1", "11.0.0.1:1"} {
			if got := ask(remote); got != "" {
				t.Errorf("users %q, %q from %s: %q, want it refused", tt.users, tt.header, remote, got)
			}
		}
	}
}
