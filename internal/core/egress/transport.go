package egress

import (
	"cmp"
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

// Options configure a client.
type Options struct {
	Policy

	// Proxy returns the proxy for a URL, or nil for none; see [Proxies]. A nil
	// Proxy means no proxy.
	Proxy func(*url.URL) (*url.URL, error)
	// ProxyResolves lets the proxy resolve names that cannot be looked up here.
	ProxyResolves bool

	MaxRedirects   int           // 0: redirects are not followed and returned as they are
	ConnectTimeout time.Duration // limits a lookup and a connection attempt; 0: 10 s
	MaxIdlePerHost int           // idle connections kept per host; 0: 2
	TLS            *tls.Config   // nil: the system's root certificates

	// Resolve looks a name up. Nil means the system's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address and a port. Nil means the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	maxHeader   = 256 << 10 // bytes of a response header
	writeBuffer = 32 << 10  // bytes
)

// Transport is an http.RoundTripper that reaches only what its policy allows.
// It is safe for concurrent use.
type Transport struct {
	o       Options
	table   *rules
	direct  *http.Transport
	proxied *http.Transport
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a transport.
func New(o Options) *Transport {
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 10*time.Second)
	if o.Resolve == nil {
		o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	t := &Transport{o: o, table: compile(o.Policy)}
	t.direct = t.base()
	t.direct.DialContext = t.Dial
	t.proxied = t.base()
	t.proxied.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
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
		MaxIdleConnsPerHost:    t.o.MaxIdlePerHost,
		MaxResponseHeaderBytes: maxHeader,
		WriteBufferSize:        writeBuffer,
		ForceAttemptHTTP2:      true,
	}
}

// RoundTrip sends a request. If the policy does not allow it, the error is a
// [*Refused].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	via, err := t.route(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // required of a RoundTripper, also on errors
		}
		return nil, err
	}
	return via.RoundTrip(r)
}

// route checks the target of a request and returns the transport to use. The
// addresses of direct connections are checked when they are dialled.
func (t *Transport) route(r *http.Request) (*http.Transport, error) {
	to, err := t.table.urlTarget(r.URL)
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
	case to.listed || to.addr.IsValid():
		return t.proxied, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), t.o.ConnectTimeout)
	defer cancel()
	_, err = t.resolve(ctx, to)
	if _, refused := errors.AsType[*Refused](err); err != nil && !refused && t.o.ProxyResolves {
		err = nil
	}
	return t.proxied, err
}

// CloseIdleConnections closes connections that are not in use.
func (t *Transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}

// Dial connects to a host if the policy allows it.
func (t *Transport) Dial(ctx context.Context, network, hostport string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, t.o.ConnectTimeout)
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
	return t.dialFirst(ctx, network, addrs, to.port)
}

// resolve returns the addresses of a target if the policy allows all of them.
func (t *Transport) resolve(ctx context.Context, to target) ([]netip.Addr, error) {
	if to.addr.IsValid() {
		return []netip.Addr{to.addr}, nil // checked by target
	}
	addrs, err := t.o.Resolve(ctx, to.host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no address", Name: to.host, IsNotFound: true}
	}
	if to.listed {
		return addrs, nil
	}
	return addrs, t.table.check(to.host, addrs...)
}

// stagger is the delay before the next address is tried in parallel (RFC 8305).
const stagger = 250 * time.Millisecond

// dialFirst tries the addresses in order and returns the first connection.
func (t *Transport) dialFirst(ctx context.Context, network string, addrs []netip.Addr, port string) (net.Conn, error) {
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
	defer func() { // all attempts end before dialFirst returns
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

// Proxies returns the proxy function that HTTP_PROXY, HTTPS_PROXY, NO_PROXY and
// their lower-case forms define, or nil if they name no proxy.
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
