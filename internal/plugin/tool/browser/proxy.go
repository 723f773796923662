package browser

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/kit/splice"
)

const (
	maxConns   = 512 // connections of a browser
	maxRefused = 256 // hosts that are remembered
	helloTime  = 30 * time.Second
)

// proxy is the only way of a browser to the network. It is bound to loopback, and
// connects to the addresses that the policy allows.
type proxy struct {
	server    *http.Server
	listener  net.Listener
	transport *egress.Transport
	blocked   []string // host names, lower case
	ctx       context.Context
	cancel    context.CancelFunc
	tunnels   sync.WaitGroup

	mu      sync.Mutex
	conns   int
	refused map[string]string // why hosts are not allowed, by host
}

// newProxy starts a proxy.
func newProxy(c *Config) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{
		listener: l, refused: map[string]string{},
		transport: egress.New(egress.Options{Policy: c.policy(), MaxIdlePerHost: 6}),
	}
	for _, h := range c.Policy.Blocked {
		p.blocked = append(p.blocked, strings.ToLower(strings.TrimSuffix(h, ".")))
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: helloTime,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	p.tunnels.Go(func() { _ = p.server.Serve(l) }) // until close
	return p, nil
}

// address returns the address that the browser connects to.
func (p *proxy) address() string { return p.listener.Addr().String() }

// close ends all connections.
func (p *proxy) close() {
	p.cancel()
	_ = p.server.Close() // the connections end with it
	p.tunnels.Wait()
	p.transport.CloseIdleConnections()
}

// why returns why a host is not allowed; "": it is, or was not asked for.
func (p *proxy) why(host string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused[strings.ToLower(host)]
}

// note remembers whether a host is allowed.
func (p *proxy) note(host string, err error) {
	host = strings.ToLower(host)
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := errors.AsType[*egress.Refused](err)
	if !ok {
		delete(p.refused, host)
		return
	}
	if len(p.refused) < maxRefused {
		p.refused[host] = r.Error()
	}
}

// check returns an error for a host that the configuration blocks.
func (p *proxy) check(host string) error {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	match := func(b string) bool {
		domain, wild := strings.CutPrefix(b, "*.")
		return name == b || wild && strings.HasSuffix(name, "."+domain)
	}
	if slices.ContainsFunc(p.blocked, match) {
		return &egress.Refused{Host: host, Reason: "it is in browser.ssrfPolicy.blockedHostnames"}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.conns++
	full := p.conns > maxConns
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.conns--
		p.mu.Unlock()
	}()
	switch {
	case full:
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Scheme != "http" || r.URL.Host == "":
		http.Error(w, "this is a proxy", http.StatusBadRequest)
	default:
		p.forward(w, r)
	}
}

// connect serves CONNECT, with which https and WebSockets are loaded.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		http.Error(w, "want host:port", http.StatusBadRequest)
		return
	}
	var to net.Conn
	if err = p.check(host); err == nil {
		to, err = p.transport.Dial(r.Context(), "tcp", r.Host)
	}
	p.note(host, err)
	if err != nil {
		refuse(w, err)
		return
	}
	defer to.Close()
	c, in, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	p.tunnels.Add(1)
	defer p.tunnels.Done()
	defer context.AfterFunc(p.ctx, func() { _ = c.Close(); _ = to.Close() })() // ends the copying
	_ = c.SetDeadline(time.Time{})
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		splice.Both(c, in, to)
	}
}

// forward serves a request of a page that is not encrypted.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI, out.Close = "", false
	for _, name := range hopByHop(r.Header) {
		out.Header.Del(name)
	}
	if out.Header.Get("Accept-Encoding") == "" {
		out.Header.Set("Accept-Encoding", "identity") // nothing is decoded here
	}
	if r.ContentLength == 0 {
		out.Body = nil
	}
	err := p.check(r.URL.Hostname())
	var resp *http.Response
	if err == nil {
		resp, err = p.transport.RoundTrip(out)
	}
	p.note(r.URL.Hostname(), err)
	if err != nil {
		refuse(w, err)
		return
	}
	defer resp.Body.Close()
	for _, name := range hopByHop(resp.Header) {
		resp.Header.Del(name)
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	flushing := resp.ContentLength < 0
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return // the page is gone
			}
			if flushing {
				_ = http.NewResponseController(w).Flush() // events arrive when they happen
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			panic(http.ErrAbortHandler) // the page must not take a part for the whole
		}
	}
}

// hopByHop returns the headers that belong to one connection.
func hopByHop(h http.Header) []string {
	names := []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive", "Te",
		"Trailer", "Transfer-Encoding", "Upgrade"}
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// refuse answers a request that was not carried out.
func refuse(w http.ResponseWriter, err error) {
	status, text := http.StatusBadGateway, "the page could not be loaded"
	if r, ok := errors.AsType[*egress.Refused](err); ok {
		status, text = http.StatusForbidden, "Chela: "+r.Error()
	}
	http.Error(w, text, status)
}

// hostOf returns the host of an address; "": it has none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
