package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Options say what a client may reach and how.
type Options struct {
	Policy

	// Proxy returns the proxy for a URL, nil for none; see [Proxies]. A nil
	// Proxy is none for all.
	Proxy func(*url.URL) (*url.URL, error)
	// ProxyResolves leaves names that cannot be looked up here to the proxy.
	ProxyResolves bool

	Redirects int           // that are followed; 0: the answer that redirects is the answer
	Connect   time.Duration // bounds a lookup and a connection; 0: 10 s
	Idle      int           // connections to a host that are kept; 0: 2
	TLS       *tls.Config   // nil: the system's roots

	// Resolve looks a name up; nil: the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address and a port; nil: the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	maxHeader = 256 << 10 // bytes of the header of an answer
	oneWrite  = 32 << 10  // bytes of a request that go out in one write
)

// Transport is an http.RoundTripper that reaches what its policy allows. It is
// safe for concurrent use.
type Transport struct {
	o       Options
	table   *table
	direct  *http.Transport
	proxied *http.Transport
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a transport.
func New(o Options) *Transport {
	if o.Connect == 0 {
		o.Connect = 10 * time.Second
	}
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	t := &Transport{o: o, table: newTable(o.Policy)}
	t.direct = t.base()
	t.direct.DialContext = t.dial
	t.proxied = t.base()
	t.proxied.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.Connect)
		defer cancel()
		return o.Dial(ctx, network, addr)
	}
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) { return o.Proxy(r.URL) }
	return t
}

func (t *Transport) base() *http.Transport {
	return &http.Transport{
		TLSClientConfig:        t.o.TLS.Clone(),
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    t.o.Idle,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        oneWrite,
		ForceAttemptHTTP2:      true,
	}
}

// RoundTrip carries out a request that the policy allows. The error of any
// other is a [*Refused].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	via, err := t.route(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper must, also when it fails
		}
		return nil, err
	}
	return via.RoundTrip(r)
}

// route checks where a request goes and returns what carries it there. Direct
// connections are checked when they are made.
func (t *Transport) route(r *http.Request) (*http.Transport, error) {
	to, err := t.table.ofURL(r.URL)
	if err != nil {
		return nil, err
	}
	if t.o.Proxy == nil {
		return t.direct, nil
	}
	proxy, err := t.o.Proxy(r.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("proxy: %w", err)
	case proxy == nil:
		return t.direct, nil
	case to.named || to.addr.IsValid():
		return t.proxied, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), t.o.Connect)
	defer cancel()
	_, err = t.resolve(ctx, to)
	if _, refused := errors.AsType[*Refused](err); err != nil && !refused && t.o.ProxyResolves {
		err = nil
	}
	return t.proxied, err
}

// CloseIdleConnections closes the connections that wait for another request.
func (t *Transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}

// dial connects to a host that the policy allows.
func (t *Transport) dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.Connect)
	defer cancel()
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	to, err := t.table.target(host, port)
	if err != nil {
		return nil, err
	}
	addrs, err := t.resolve(ctx, to)
	if err != nil {
		return nil, err
	}
	return t.first(ctx, network, addrs, to.port)
}

// resolve returns the addresses of a target, all of which are allowed.
func (t *Transport) resolve(ctx context.Context, to target) ([]netip.Addr, error) {
	if to.addr.IsValid() {
		return []netip.Addr{to.addr}, nil // target has checked it
	}
	addrs, err := t.o.Resolve(ctx, to.host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: to.host, IsNotFound: true}
	}
	if to.named {
		return addrs, nil
	}
	return addrs, t.table.check(to.host, addrs...)
}

// stagger is how long an address is waited for before the next one is tried,
// too (RFC 8305).
const stagger = 250 * time.Millisecond

// first connects to whichever address answers first, in order.
func (t *Transport) first(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan result, len(addrs))
	next, open := 0, 0
	start := func() {
		addr := net.JoinHostPort(addrs[next].Unmap().String(), port)
		next, open = next+1, open+1
		go func() {
			c, err := t.o.Dial(ctx, network, addr)
			results <- result{c, err}
		}()
	}
	defer func() { // no attempt outlives the call
		cancel()
		for ; open > 0; open-- {
			if r := <-results; r.conn != nil {
				_ = r.conn.Close()
			}
		}
	}()
	var errs []error
	for start(); ; {
		var late <-chan time.Time
		if next < len(addrs) {
			late = time.After(stagger)
		}
		select {
		case <-late:
			start()
		case r := <-results:
			open--
			if r.err == nil {
				return r.conn, nil
			}
			errs = append(errs, r.err)
			if next < len(addrs) {
				start()
			} else if open == 0 {
				return nil, errs[0]
			}
		}
	}
}

// Proxies reads HTTP_PROXY, HTTPS_PROXY, NO_PROXY and their forms in lower
// case, and returns which proxy goes with which URL; nil when there is none.
func Proxies(env func(string) string) func(*url.URL) (*url.URL, error) {
	get := func(upper, lower string) string {
		if v := env(upper); v != "" {
			return v
		}
		return env(lower)
	}
	c := httpproxy.Config{
		HTTPProxy:  get("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: get("HTTPS_PROXY", "https_proxy"),
		NoProxy:    get("NO_PROXY", "no_proxy"),
		CGI:        env("REQUEST_METHOD") != "",
	}
	if c.HTTPProxy == "" && c.HTTPSProxy == "" {
		return nil
	}
	return c.ProxyFunc()
}
