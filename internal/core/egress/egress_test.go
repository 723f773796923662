package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/chela-ai/chela/internal/core/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	public  = "93.184.216.34"
	public2 = "93.184.216.35"
)

func TestResolution(t *testing.T) {
	t.Run("S19 dials an address that the name resolves to", func(t *testing.T) {
		w := newWorld(t)
		w.name("site.example", []string{public})
		w.serve(public+":80", respond("hello"))
		if got, err := get(t, w.client(egress.Options{}), "http://site.example/"); err != nil || got != "hello" {
			t.Errorf("%q, %v", got, err)
		}
		if diff := cmp.Diff([]string{public + ":80"}, w.dials); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("S19 one forbidden address refuses the name", func(t *testing.T) {
		for _, bad := range []string{"127.0.0.1", "10.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1%eth0", "64:ff9b::7f00:1",
			"2002:7f00:1::", "169.254.169.254", "2606:2800:220:1::1%eth0", "fe80::5efe:5db8:d822"} {
			w := newWorld(t)
			w.name("site.example", []string{public, bad})
			w.serve(public+":80", respond("hello"))
			if _, err := get(t, w.client(egress.Options{}), "http://site.example/"); !refused(err) || len(w.dials) > 0 {
				t.Errorf("%s: %v, dials %v", bad, err, w.dials)
			}
		}
	})
	t.Run("S19 a name that later resolves to a forbidden address is refused", func(t *testing.T) {
		w := newWorld(t)
		w.name("site.example", []string{public}, []string{"127.0.0.1"})
		w.serve(public+":80", respond("hello"))
		w.serve("127.0.0.1:80", respond("secret"))
		c := w.client(egress.Options{})
		if got, err := get(t, c, "http://site.example/"); err != nil || got != "hello" {
			t.Fatalf("%q, %v", got, err)
		}
		c.CloseIdleConnections()
		if got, err := get(t, c, "http://site.example/"); !refused(err) {
			t.Errorf("%q, %v", got, err)
		}
		if diff := cmp.Diff([]string{public + ":80"}, w.dials); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a public IPv4 address in NAT64 form is allowed", func(t *testing.T) {
		w := newWorld(t)
		w.name("site.example", []string{"64:ff9b::5db8:d822"})
		w.serve("[64:ff9b::5db8:d822]:80", respond("hello"))
		if got, err := get(t, w.client(egress.Options{}), "http://site.example/"); err != nil || got != "hello" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("no address is an error", func(t *testing.T) {
		w := newWorld(t)
		w.name("site.example", []string{})
		if _, err := get(t, w.client(egress.Options{}), "http://site.example/"); err == nil || refused(err) {
			t.Error(err)
		}
	})
}

func TestPolicy(t *testing.T) {
	tests := []struct {
		name   string
		policy egress.Policy
		yes    []string
		no     []string
	}{
		{
			"a host", egress.Policy{Hosts: []string{"LocalHost.", "inner.example", "10.0.0.5", "[::1]", "not a host"}},
			[]string{"localhost", "localhost:8080", "LOCALHOST.", "inner.example", "10.0.0.5", "10.0.0.5.", "10.0.0.5:1",
				"[::1]:9", "[::ffff:10.0.0.5]"},
			[]string{"10.0.0.6", "127.0.0.1", "a.localhost", "evillocalhost", "other.example",
				"x.inner.example", "evilinner.example"},
		},
		{
			"a host with a port", egress.Policy{Hosts: []string{"127.0.0.1:11434", "[::1]:80", "localhost:443"}},
			[]string{"127.0.0.1:11434", "[::1]", "https://localhost"},
			[]string{"127.0.0.1", "[::1]:81", "localhost"},
		},
		{
			"a network", egress.Policy{Networks: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15"),
				netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("10.1.1.0/24")}},
			[]string{"198.18.0.1", "198.19.255.255", "[fd00::1]", "mapped-inner.example"},
			[]string{"10.0.0.1", "[fe80::1]"},
		},
		{
			"private", egress.Policy{Private: true},
			[]string{"10.0.0.1", "172.16.0.1", "192.168.0.1", "localhost", "127.0.0.1", "[::1]", "[fd00::1]", "100.64.0.1",
				"printer.local", "inner.example", "mapped-inner.example"},
			[]string{
				"169.254.169.254", "168.63.129.16", "0.0.0.0", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1",
				"198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
				"[fe80::1]", "[fec0::1]", "[ff02::1]", "[::5db8:d822]", "[2001::1]", "[2001:10::1]", "[2001:db8::1]", "[3fff::1]",
				"[64:ff9b::a00:1]", "[64:ff9b:1::1]", "[2002:a00:1::]", "metadata.example",
			},
		},
		{
			"none", egress.Policy{},
			[]string{public, "[2606:2800:220:1::1]", "site.example", "172.32.0.1", "100.128.0.1", "169.253.0.1", "11.0.0.1",
				"[2400::1]", "mapped.example", "site.example:65535"},
			[]string{"inner.example", "mapped-inner.example", "metadata.example", "site.example:0", "site.example:65536"},
		},
	}
	for _, tt := range tests {
		t.Run("S19 allows "+tt.name, func(t *testing.T) {
			w := newWorld(t)
			for n, a := range map[string]string{
				"site.example":         public,
				"inner.example":        "10.1.1.1",
				"other.example":        "10.1.1.1",
				"x.inner.example":      "10.1.1.1",
				"evilinner.example":    "10.1.1.1",
				"metadata.example":     "169.254.169.254",
				"localhost":            "127.0.0.1",
				"a.localhost":          "127.0.0.1",
				"evillocalhost":        "127.0.0.1",
				"printer.local":        "192.168.0.9",
				"mapped.example":       "::ffff:" + public,
				"mapped-inner.example": "::ffff:10.1.1.1",
			} {
				w.name(n, []string{a})
			}
			c := w.client(egress.Options{Policy: tt.policy})
			for _, h := range tt.yes {
				w.dials = nil
				if !strings.Contains(h, "://") {
					h = "http://" + h
				}
				if _, err := get(t, c, h+"/"); len(w.dials) != 1 {
					t.Errorf("%s: %v, want it allowed", h, err)
				}
			}
			for _, h := range tt.no {
				w.dials = nil
				if _, err := get(t, c, "http://"+h+"/"); !refused(err) || len(w.dials) != 0 {
					t.Errorf("%s: %v, want it refused", h, err)
				}
			}
		})
	}
}

// Names that are refused whatever they resolve to, and their neighbours.
func TestNames(t *testing.T) {
	label, name := strings.Repeat("a", 63), strings.Repeat("a.", 123)+"example" // of 253 bytes
	for host, allowed := range map[string]bool{
		label + ".example":  true,
		label + "a.example": false,
		name:                true,
		"a" + name:          false,
		"a_b-c9.z0.example": true,
		"münchen.example":   true,
		"site.1a":           true,
		"site.0xg":          true,
		"a~b.example":       false,
		"a$b.example":       false,
		"a;b.example":       false,
		"site.a$b":          false,
		"a..example":        false,
		"..":                false,
		"127.1":             false,
		"017700000001":      false,
		"1.2.3.256":         false,
		"site.1":            false,
		"site.0x":           false,
		"site.0x1F":         false,
		"site.localdomain":  false,
		"site.local":        false,
		"site.internal":     false,
		"site.home.arpa":    false,
		"site.localhost":    false,
	} {
		c := egress.Client(egress.Options{
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr(public)}, nil
			},
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF },
		})
		if _, err := get(t, c, "http://"+host+"/"); refused(err) == allowed ||
			allowed && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, want it allowed: %v", host, err, allowed)
		}
	}
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

func TestRefused(t *testing.T) {
	body := &closer{Reader: strings.NewReader("x")}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", body)
	if _, err := egress.New(egress.Options{}).RoundTrip(r); !refused(err) || !body.closed {
		t.Errorf("%v, the body is closed: %v", err, body.closed)
	}
	w := newWorld(t)
	w.name("site.example", []string{"10.0.0.1"})
	for u, want := range map[string]string{
		"http://127.0.0.1/":                    "127.0.0.1 is not allowed: loopback address",
		"http://[64:ff9b::169.254.169.254]/":   "64:ff9b::169.254.169.254 is not allowed: it resolves to 64:ff9b::a9fe:a9fe (link-local or metadata, in another form address)",
		"http://site.example/":                 "site.example is not allowed: it resolves to 10.0.0.1 (private address)",
		"http://printer.local/":                "printer.local is not allowed: a local name",
		"http://site.example:0/":               "site.example is not allowed: there is no such port",
		"http://0x7f.1/":                       "0x7f.1 is not allowed: not a host name, nor an address in standard form",
		"ftp://user:secret-word@site.example/": "ftp://user:xxxxx@site.example/ is not allowed: want http or https",
	} {
		_, err := get(t, w.client(egress.Options{}), u)
		if r, ok := errors.AsType[*egress.Refused](err); !ok || r.Error() != want {
			t.Errorf("%s: %v, want %q", u, err, want)
		}
	}
}

func TestRedirects(t *testing.T) {
	site := func(t *testing.T, h http.HandlerFunc) *world {
		w := newWorld(t)
		w.name("site.example", []string{public})
		w.name("other.example", []string{public2})
		w.name("evil.example", []string{"127.0.0.1"})
		w.serve("127.0.0.1:80", respond("secret"))
		w.serve(public+":80", h)
		return w
	}
	for _, target := range []string{
		"http://127.0.0.1/", "http://localhost/", "http://evil.example/", "http://[::1]/",
		"http://169.254.169.254/latest/meta-data/",
		"http://2130706433/", "//127.0.0.1/", "http://site.example@127.0.0.1/", "ftp://site.example/",
		"file:///etc/passwd", "http://0/",
		"http://[::ffff:7f00:1]/", "http://127.0.0.1.:80/", "gopher://127.0.0.1/",
	} {
		t.Run("S19 a redirect is checked by the policy: "+target, func(t *testing.T) {
			w := site(t, redirectTo(target))
			got, err := get(t, w.client(egress.Options{MaxRedirects: 3}), "http://site.example/")
			if err == nil {
				t.Errorf("got %q", got)
			}
			if diff := cmp.Diff([]string{public + ":80"}, w.dials); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("S19 a chain is bounded", func(t *testing.T) {
		n := 0
		w := site(t, func(rw http.ResponseWriter, r *http.Request) { n++; redirectTo("/next")(rw, r) })
		if _, err := get(t, w.client(egress.Options{MaxRedirects: 3}), "http://site.example/"); err == nil ||
			!strings.Contains(err.Error(), "more than 3 redirects") || n != 4 {
			t.Errorf("%v after %d requests", err, n)
		}
	})
	t.Run("no redirects are followed by default", func(t *testing.T) {
		w := site(t, redirectTo("/next"))
		resp, err := w.client(egress.Options{}).Get("http://site.example/")
		if err != nil || resp.StatusCode != http.StatusFound {
			t.Fatalf("%v %v", resp, err)
		}
		resp.Body.Close()
	})
	t.Run("S19 credentials are not sent to another origin, nor after a return", func(t *testing.T) {
		var seen []http.Header
		w := site(t, func(rw http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Header.Clone())
			switch r.URL.Path {
			case "/":
				redirectTo("/own")(rw, r)
			case "/own":
				redirectTo("http://user:word@other.example/there")(rw, r)
			default:
				respond("done")(rw, r)
			}
		})
		w.serve(public2+":80", func(rw http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Header.Clone())
			redirectTo("http://site.example/back")(rw, r)
		})
		got, err := get(t, w.client(egress.Options{MaxRedirects: 3}), "http://site.example/?token=t",
			"Authorization", "Bearer t", "Cookie", "a=b", "X-Api-Key", "k", "Proxy-Authorization", "p", "Accept", "text/html",
			"Accept-Language", "de", "User-Agent", "chela")
		if err != nil || got != "done" {
			t.Fatalf("%q, %v", got, err)
		}
		for i, h := range seen {
			h.Del("Accept-Encoding")
			if i < 2 {
				if h.Get("Authorization") == "" || h.Get("Cookie") == "" || h.Get("X-Api-Key") == "" {
					t.Errorf("request %d to its own origin lacks credentials: %v", i, h)
				}
				continue
			}
			if diff := cmp.Diff(http.Header{"Accept": {"text/html"}, "Accept-Language": {"de"}, "User-Agent": {"chela"}},
				h); diff != "" {
				t.Errorf("request %d: %s", i, diff)
			}
		}
	})
	t.Run("S19 a body is not sent to another origin", func(t *testing.T) {
		w := site(t, func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "http://other.example/", http.StatusTemporaryRedirect)
		})
		w.serve(public2+":80", respond("taken"))
		_, err := w.client(egress.Options{MaxRedirects: 3}).Post("http://site.example/", "text/plain",
			strings.NewReader("secret"))
		if err == nil || len(w.dials) != 1 {
			t.Errorf("%v, dials %v", err, w.dials)
		}
	})
	t.Run("S19 another port or scheme is another origin", func(t *testing.T) {
		var auth []string
		w := site(t, redirectTo("http://site.example:8080/"))
		w.serve(public+":8080",
			func(_ http.ResponseWriter, r *http.Request) { auth = append(auth, r.Header.Get("Authorization")) })
		if _, err := get(t, w.client(egress.Options{MaxRedirects: 3}), "http://site.example/", "Authorization",
			"t"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{""}, auth); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what another origin is", func(t *testing.T) {
		check := egress.Client(egress.Options{MaxRedirects: 3}).CheckRedirect
		for _, c := range []struct {
			method, from, to string
			keeps, refused   bool
		}{
			{"GET", "https://site.example/a", "https://SITE.example.:443/b", true, false},
			{"POST", "https://site.example/a", "https://site.example/b", true, false},
			{"GET", "https://site.example/a", "https://x.site.example/b", false, false},
			{"GET", "http://site.example:8443/a", "https://site.example:8443/b", false, false},
			{"GET", "http://site.example/a", "https://site.example/b", false, false},
			{"HEAD", "https://site.example/a", "https://other.example/b", false, false},
			{"PUT", "https://site.example/a", "https://other.example/b", false, true},
		} {
			from, r := httptest.NewRequest(c.method, c.from, nil), httptest.NewRequest(c.method, c.to, nil)
			r.Header = http.Header{
				"Authorization":   {"t"},
				"Accept":          {"a"},
				"Accept-Encoding": {"gzip"},
				"Accept-Language": {"de"},
				"User-Agent":      {"chela"},
			}
			err := check(r, []*http.Request{from})
			if keeps := r.Header.Get("Authorization") != ""; (err != nil) != c.refused ||
				err == nil && (keeps != c.keeps || len(r.Header) < 4) {
				t.Errorf("%s from %s to %s: %v, %v", c.method, c.from, c.to, err, r.Header)
			}
		}
	})
	t.Run("S19 no redirect leads from https to http", func(t *testing.T) {
		w := newWorld(t)
		w.name("example.com", []string{public})
		s := w.serve(public+":443", func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/own" {
				respond(r.Proto)(rw, r)
				return
			}
			redirectTo(r.URL.Query().Get("to"))(rw, r)
		})
		w.serve(public+":80", func(rw http.ResponseWriter, r *http.Request) { redirectTo("https://example.com/own")(rw, r) })
		c := w.client(egress.Options{MaxRedirects: 3, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
		if got, err := get(t, c, "https://example.com/?to=http://example.com/"); err == nil ||
			!strings.Contains(err.Error(), "from https to http") {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := get(t, c, "http://example.com/"); err != nil || got != "HTTP/1.1" {
			t.Errorf("from http to https: %q, %v", got, err)
		}
	})
}

// proxy returns a proxy that answers all requests itself and records them.
func proxy(seen *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r.Method+" "+r.RequestURI)
		if r.Method != http.MethodConnect {
			_, _ = io.WriteString(w, "by proxy")
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 502 no\r\n\r\n")
		_ = conn.Close()
	}
}

func TestProxy(t *testing.T) {
	env := func(key string) string {
		return map[string]string{
			"http_proxy":  "http://10.0.0.1:3128",
			"HTTPS_PROXY": "10.0.0.1:3128",
			"NO_PROXY":    "plain.example",
		}[key]
	}
	setup := func(t *testing.T, o egress.Options) (*http.Client, *world, *[]string) {
		seen := &[]string{}
		w := newWorld(t)
		w.name("site.example", []string{public})
		w.name("plain.example", []string{public2})
		w.name("evil.example", []string{"127.0.0.1"})
		w.serve("10.0.0.1:3128", proxy(seen))
		w.serve(public2+":80", respond("directly"))
		o.Proxy = egress.Proxies(env)
		return w.client(o), w, seen
	}
	t.Run("PROV-19 S19 the proxy of the environment is used, whatever its address", func(t *testing.T) {
		c, w, seen := setup(t, egress.Options{})
		if got, err := get(t, c, "http://site.example/a"); err != nil || got != "by proxy" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := get(t, c, "https://site.example/a"); err == nil {
			t.Error("a refused CONNECT gave a response")
		}
		if got, err := get(t, c, "http://plain.example/"); err != nil || got != "directly" {
			t.Errorf("NO_PROXY: %q, %v", got, err)
		}
		if diff := cmp.Diff([]string{"GET http://site.example/a", "CONNECT site.example:443"}, *seen); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"10.0.0.1:3128", "10.0.0.1:3128", public2 + ":80"}, w.dials); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("S19 forbidden targets do not reach the proxy", func(t *testing.T) {
		c, _, seen := setup(t, egress.Options{ProxyResolves: true})
		for _, u := range []string{
			"http://127.0.0.1/", "https://127.0.0.1/", "http://10.0.0.1:3128/", "http://169.254.169.254/", "http://[::1]/",
			"http://evil.example/", "https://evil.example/",
			"http://2130706433/", "http://0x7f.1/", "http://localhost./", "http://①②⑦.0.0.1/",
			"http://metadata.google.internal/",
		} {
			if _, err := get(t, c, u); !refused(err) {
				t.Errorf("%s: %v", u, err)
			}
		}
		if len(*seen) > 0 {
			t.Errorf("the proxy saw %v", *seen)
		}
	})
	t.Run("S19 a name that only the proxy can resolve needs ProxyResolves", func(t *testing.T) {
		c, _, seen := setup(t, egress.Options{})
		if _, err := get(t, c, "http://unknown.example/"); err == nil || len(*seen) > 0 {
			t.Errorf("%v, seen %v", err, *seen)
		}
		c, _, _ = setup(t, egress.Options{ProxyResolves: true})
		if got, err := get(t, c, "http://unknown.example/"); err != nil || got != "by proxy" {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a listed name and an address need no lookup", func(t *testing.T) {
		c, _, seen := setup(t, egress.Options{Policy: egress.Policy{Hosts: []string{"unknown.example"}}})
		for _, u := range []string{"http://unknown.example/", "http://" + public + "/"} {
			if got, err := get(t, c, u); err != nil || got != "by proxy" {
				t.Errorf("%q, %v, seen %v", got, err, *seen)
			}
		}
	})
	t.Run("no variables, no proxy", func(t *testing.T) {
		if egress.Proxies(func(string) string { return "" }) != nil {
			t.Error("got a proxy function, want nil")
		}
		for _, name := range []string{"HTTP_PROXY", "https_proxy"} {
			if egress.Proxies(func(key string) string { return map[string]string{name: "http://10.0.0.1:3128"}[key] }) == nil {
				t.Errorf("%s alone: got nil", name)
			}
		}
	})
	t.Run("an invalid proxy is an error", func(t *testing.T) {
		w := newWorld(t)
		c := w.client(egress.Options{Proxy: func(*url.URL) (*url.URL, error) { return nil, errors.New("bad proxy") }})
		if _, err := get(t, c, "http://site.example/"); err == nil || !strings.Contains(err.Error(), "bad proxy") {
			t.Error(err)
		}
	})
}

func TestBounds(t *testing.T) {
	t.Run("a header is bounded", func(t *testing.T) {
		w := newWorld(t)
		w.name("site.example", []string{public})
		w.serve(public+":80",
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("x", 300<<10)) })
		if _, err := get(t, w.client(egress.Options{}), "http://site.example/"); err == nil {
			t.Error("a header of 300 KiB was accepted")
		}
	})
	t.Run("lookups and connections have a time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stuck := egress.Options{Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			dead := egress.Options{
				Resolve: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr(public)}, nil
				},
				Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				},
			}
			for _, o := range []egress.Options{stuck, dead} {
				began := time.Now()
				if _, err := get(t, egress.Client(o), "http://site.example/"); !errors.Is(err, context.DeadlineExceeded) ||
					time.Since(began) != 10*time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			}
		})
	})
	t.Run("a request that is given up ends its lookup and its attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := egress.Options{
				Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
					if host == "site.example" {
						return []netip.Addr{netip.MustParseAddr(public)}, nil
					}
					<-ctx.Done()
					return nil, ctx.Err()
				},
				Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				},
			}
			for _, host := range []string{"site.example", "stuck.example"} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				began := time.Now()
				if _, err := egress.New(o).Dial(ctx, "tcp", host+":80"); err == nil || time.Since(began) != time.Second {
					t.Errorf("%s: %v after %v", host, err, time.Since(began))
				}
				cancel()
			}
			o.Proxy = func(*url.URL) (*url.URL, error) { return url.Parse("http://10.0.0.1:3128") }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://stuck.example/", nil)
			if _, err := egress.New(o).RoundTrip(r); err == nil || time.Since(began) != time.Second {
				t.Errorf("by proxy: %v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("a TLS handshake has a time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := egress.Client(egress.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				return ours, nil
			}})
			began := time.Now()
			if _, err := get(t, c, "https://"+public+"/"); err == nil || time.Since(began) != 10*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("as many idle connections are kept as configured", func(t *testing.T) {
		w := newWorld(t)
		var together sync.WaitGroup
		w.serve(public+":80", func(rw http.ResponseWriter, _ *http.Request) {
			together.Done()
			together.Wait()
			respond("hello")(rw, nil)
		})
		c := w.client(egress.Options{MaxIdlePerHost: 4})
		for range 6 {
			together.Add(4)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if _, err := get(t, c, "http://"+public+"/"); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		if len(w.dials) > 8 { // a connection may become idle after the next request has dialled
			t.Errorf("%d connections for 4 requests at a time", len(w.dials))
		}
	})
	t.Run("the next address is tried when one does not answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var late net.Conn // the other end of a connection that is made too late
			c := egress.Client(egress.Options{
				Resolve: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("2606:2800:220:1::1"), netip.MustParseAddr(public2),
						netip.MustParseAddr(public)}, nil
				},
				Dial: func(ctx context.Context, _, addr string) (net.Conn, error) {
					switch addr {
					case public + ":80":
						ours, theirs := net.Pipe()
						go func() {
							if _, err := http.ReadRequest(bufio.NewReader(theirs)); err == nil {
								_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
							}
							_ = theirs.Close()
						}()
						return ours, nil
					case public2 + ":80":
						return nil, errors.New("connection refused")
					}
					<-ctx.Done()
					ours, theirs := net.Pipe()
					late = theirs
					return ours, nil
				},
			})
			began := time.Now()
			if got, err := get(t, c, "http://site.example/"); err != nil || got != "hello" ||
				time.Since(began) != 250*time.Millisecond {
				t.Errorf("%q, %v after %v", got, err, time.Since(began))
			}
			if _, err := late.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the late connection is open: %v", err)
			}
		})
	})
	t.Run("a slow address is not given up when the others fail", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tr := egress.New(egress.Options{
				Resolve: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr(public), netip.MustParseAddr(public2)}, nil
				},
				Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
					if addr == public+":80" {
						time.Sleep(time.Second)
						return nil, errors.New("no route")
					}
					return nil, errors.New("connection refused")
				},
			})
			began := time.Now()
			if _, err := tr.Dial(t.Context(), "tcp", "site.example:80"); err == nil || time.Since(began) != time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	})
	t.Run("the certificate must match the name", func(t *testing.T) {
		w := newWorld(t)
		w.name("other.example", []string{public})
		s := w.serve(public+":443", respond("hello"))
		c := w.client(egress.Options{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
		_, err := get(t, c, "https://other.example/")
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
			t.Errorf("%v", err)
		}
	})
}

// TestHTTP2 checks that HTTP/2 is used if the server supports it: model services
// send many responses over one connection.
func TestHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(r.Proto)(w, r)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := egress.Client(egress.Options{
		Policy: egress.Policy{Private: true}, TLS: s.Client().Transport.(*http.Transport).TLSClientConfig,
	})
	defer c.CloseIdleConnections()
	if got, err := get(t, c, s.URL); err != nil || got != "HTTP/2.0" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSocket uses real sockets; the other tests run in memory.
func TestSocket(t *testing.T) {
	s := httptest.NewServer(respond("hello"))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, egress.Client(egress.Options{}), s.URL); !refused(err) {
		t.Errorf("%v, want it refused", err)
	}
	c := egress.Client(egress.Options{Policy: egress.Policy{Hosts: []string{"localhost:" + port}}})
	defer c.CloseIdleConnections()
	if got, err := get(t, c, "http://localhost:"+port+"/"); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

// BenchmarkRoundTrip compares requests over a reused connection with those of a
// plain http.Transport.
func BenchmarkRoundTrip(b *testing.B) {
	s := httptest.NewServer(respond("hello"))
	defer s.Close()
	checked := egress.New(egress.Options{Policy: egress.Policy{Hosts: []string{strings.TrimPrefix(s.URL, "http://")}}})
	defer checked.CloseIdleConnections()
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	for name, rt := range map[string]http.RoundTripper{"egress": checked, "plain": plain} {
		b.Run(name, func(b *testing.B) {
			c := &http.Client{Transport: rt}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := c.Get(s.URL)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

// BenchmarkRefuse measures the check alone.
func BenchmarkRefuse(b *testing.B) {
	tr := egress.New(egress.Options{})
	for _, u := range []string{"http://127.0.0.1/", "http://localhost/", "http://münchen.localhost/"} {
		r, err := http.NewRequest(http.MethodGet, u, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(r.URL.Hostname(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tr.RoundTrip(r); err == nil {
					b.Fatal("not refused")
				}
			}
		})
	}
}
