package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// client returns the HTTP client of a connection.
func (p *Pool) client(c *conn, s mcp.Server) *http.Client {
	client := *p.o.HTTP(s)
	u, _ := url.Parse(s.URL) // Validate parsed it
	client.Transport = &transport{base: client.Transport, conn: c, url: u, headers: s.Headers}
	return &client
}

// transport adds headers to the requests to the server, and ends requests with the
// connection.
type transport struct {
	base    http.RoundTripper
	conn    *conn
	url     *url.URL
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	unwatch := context.AfterFunc(t.conn.ctx, cancel)
	end := func() { unwatch(); cancel() }
	r = r.Clone(ctx)
	own := r.URL.Scheme == t.url.Scheme && r.URL.Host == t.url.Host // a redirect can lead elsewhere
	if own {
		for name, value := range t.headers {
			r.Header.Set(name, value)
		}
	}
	res, err := t.base.RoundTrip(r)
	if err != nil {
		end()
		return nil, err
	}
	if own && res.StatusCode == http.StatusUnauthorized {
		t.conn.unknown.Store(true)
	}
	b := &body{ReadCloser: res.Body, end: end, left: -1}
	if kind := res.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") { // whose events are limited
		b.left = maxMessage
	}
	res.Body = b
	return res, nil
}

// body is the body of a response.
type body struct {
	io.ReadCloser
	end  func()
	left int // bytes that may be read; negative: any number
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("the answer is larger than %s", humanize.Bytes(maxMessage))
	}
	if b.left > 0 {
		p = p[:min(len(p), b.left)]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left > 0 {
		b.left -= n
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
