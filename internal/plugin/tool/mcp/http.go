package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp/oauth"
)

// client returns the HTTP client of a connection.
func (p *Pool) client(c *conn, s mcp.Server) *http.Client {
	client := *p.o.HTTP(s)
	u, _ := url.Parse(s.URL) // Validate parsed it
	client.Transport = &transport{base: client.Transport, pool: p, conn: c, server: s, url: u, login: usesLogin(s)}
	return &client
}

// transport adds headers and the token of a login to the requests to the server, renews
// the token, and ends requests with the connection.
type transport struct {
	base   http.RoundTripper
	pool   *Pool
	conn   *conn
	server mcp.Server
	url    *url.URL
	login  bool // requests have the token of the login
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != t.url.Scheme || r.URL.Host != t.url.Host { // a redirect can lead elsewhere
		return t.send(r, "")
	}
	r = r.Clone(r.Context())
	for name, value := range t.server.Headers {
		r.Header.Set(name, value)
	}
	if !t.login {
		res, err := t.send(r, "")
		if err == nil && res.StatusCode == http.StatusUnauthorized {
			t.refuse(fmt.Errorf("MCP server %s: %w (401 Unauthorized): chela mcp login %s, or change its header: chela mcp add %s --url URL --header 'Authorization=Bearer TOKEN' --replace",
				t.conn.name, ErrNeedsAuth, t.conn.name, t.conn.name))
		}
		return res, err
	}
	token, err := t.token(r, "")
	if err != nil {
		return nil, err
	}
	res, err := t.send(r, token)
	if err == nil && res.StatusCode == http.StatusUnauthorized && token != "" && (r.Body == nil || r.GetBody != nil) {
		if token, err = t.token(r, token); err != nil {
			_ = res.Body.Close() // it is not read
			return nil, err
		}
		again := r.Clone(r.Context())
		if r.GetBody != nil {
			if again.Body, err = r.GetBody(); err != nil {
				_ = res.Body.Close() // as above
				return nil, err
			}
		}
		_ = res.Body.Close() // as above
		res, err = t.send(again, token)
	}
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusUnauthorized:
		t.refuse(needsLogin(t.conn.name, ""))
	case res.StatusCode == http.StatusForbidden && token != "":
		if scopes, lacks := oauth.Wanted(res.Header.Values("WWW-Authenticate")); lacks {
			_ = res.Body.Close() // as above
			return nil, loginError{t.pool.lacks(r.Context(), t.conn.name, t.server, scopes)}
		}
	}
	return res, nil
}

// token returns the token for a request.
func (t *transport) token(r *http.Request, rejected string) (string, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(t.conn.ctx, cancel)()
	token, err := t.pool.token(ctx, t.conn.name, t.server, rejected)
	if errors.Is(err, ErrNeedsAuth) {
		t.refuse(err)
	}
	if err != nil {
		err = loginError{err}
	}
	return token, err
}

// refuse ends the connection to a server that refuses this program.
func (t *transport) refuse(why error) {
	t.conn.refused.CompareAndSwap(nil, &why)
	t.conn.cancel(why)
}

// send sends a request with a token; "": none.
func (t *transport) send(r *http.Request, token string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	unwatch := context.AfterFunc(t.conn.ctx, cancel)
	end := func() { unwatch(); cancel() }
	r = r.Clone(ctx)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := t.base.RoundTrip(r)
	if err != nil {
		end()
		return nil, err
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
