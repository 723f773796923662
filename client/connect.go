package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/wire"
)

// handshake limits the time until the hello.
const handshake = 15 * time.Second

// Delays between reconnect attempts.
const (
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
)

// Backoff is the default of [Options.Delay]: no delay after a restart of the
// gateway, otherwise about a second, doubled with each attempt up to 30 s. Up
// to half of the delay is random, so that clients do not reconnect all at once.
func Backoff(attempt int, err error) time.Duration {
	if ce, ok := errors.AsType[*CloseError](err); ok && ce.Code == wire.CloseRestart && attempt == 1 {
		return 0
	}
	full := min(float64(firstDelay)*math.Pow(2, float64(max(attempt, 1)-1)), float64(maxDelay))
	return time.Duration(full * (1 - rand.Float64()/2))
}

// reconnect reconnects until it succeeds; it returns nil when the client has
// ended.
func (c *Client) reconnect(err error) *link {
	delay := c.o.Delay
	if delay == nil {
		delay = Backoff
	}
	for attempt := 1; ; attempt++ {
		select {
		case <-time.After(delay(attempt, err)):
		case <-c.ctx.Done():
			return nil
		}
		ws, hello, derr := c.dial(c.ctx)
		if derr == nil {
			return c.resume(ws, hello)
		}
		if final(derr) {
			c.end(derr)
			return nil
		}
		err = derr
		if c.ctx.Err() == nil {
			c.notify(EventLost, Outage{Reason: err.Error(), Attempt: attempt})
		}
	}
}

// resume starts to use a new connection, resuming the previous one if the
// gateway can.
func (c *Client) resume(ws *websocket.Conn, hello wire.Hello) *link {
	l := newLink(c.ctx, ws, hello)
	c.recordHello(hello)
	if r := hello.Resumed; r != nil && r.Reset == "" {
		c.notify(EventResumed, Outage{Missed: r.Missed})
		c.attach(l)
		return l
	}
	reason := "the gateway no longer knows what was missed"
	if r := hello.Resumed; r != nil {
		reason = r.Reset
	}
	c.tasks.Go(func() {
		if c.subscribe(c.ctx, l) != nil {
			return // lost again
		}
		c.notify(EventReset, Outage{Reason: reason})
		c.attach(l)
	})
	return l
}

// dial opens a connection and waits for its hello.
func (c *Client) dial(ctx context.Context) (*websocket.Conn, wire.Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	ws, err := c.open(ctx)
	if err != nil {
		return nil, wire.Hello{}, fmt.Errorf("connect to gateway: %w", err)
	}
	hello, err := c.connect(ctx, ws)
	if err != nil {
		ws.CloseNow()
		return nil, wire.Hello{}, fmt.Errorf("connect to gateway: %w", err)
	}
	return ws, hello, nil
}

// open opens a WebSocket over the transport.
func (c *Client) open(ctx context.Context) (*websocket.Conn, error) {
	t := &http.Transport{}
	switch {
	case c.o.Dial != nil:
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.o.Dial(ctx) }
	case c.o.URL == "":
		return nil, errors.New("neither Options.URL nor Options.Dial is set")
	case !IsSecure(c.o.URL):
		return nil, ErrInsecure
	}
	ws, res, err := websocket.Dial(ctx, cmp.Or(c.o.URL, "ws://localhost/"),
		&websocket.DialOptions{HTTPClient: &http.Client{Transport: t}})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, &StatusError{res.StatusCode}
		}
		if ue, ok := errors.AsType[*url.Error](err); ok { // the wrapping error adds nothing
			err = ue.Err
		}
		return nil, err
	}
	ws.SetReadLimit(wire.MaxBuffered)
	return ws, nil
}

// IsSecure reports whether the connection to a URL is encrypted or within a
// private network.
func IsSecure(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "wss" || u.Scheme == "https" {
		return true // an invalid URL cannot be dialed
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	a = a.Unmap()
	// shared address space, used by overlay networks
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10)
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || shared.Contains(a)
}

// connect answers the challenge and returns the hello.
func (c *Client) connect(ctx context.Context, ws *websocket.Conn) (wire.Hello, error) {
	var hello wire.Hello
	var nonce wire.Challenge
	for nonce.Nonce == "" {
		f, err := next(ctx, ws)
		if err != nil {
			return hello, err
		}
		if e, ok := f.(wire.Event); ok && e.Name == wire.EventChallenge {
			if err := e.Decode(&nonce); err != nil {
				return hello, err
			}
		}
	}
	frame, err := request("connect", wire.MethodConnect, c.params(nonce.Nonce))
	if err != nil {
		return hello, err
	}
	if err := ws.Write(ctx, websocket.MessageText, frame); err != nil {
		return hello, err
	}
	for {
		f, err := next(ctx, ws)
		if err != nil {
			return hello, err
		}
		if r, ok := f.(wire.Response); ok {
			err := result(r, &hello)
			return hello, err
		}
	}
}

// params returns the parameters of connect.
func (c *Client) params(nonce string) wire.Connect {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.o
	p := wire.Connect{
		MinProtocol: wire.Version, MaxProtocol: wire.Version,
		Client: wire.ClientInfo{
			ID:          cmp.Or(o.ID, "cli"),
			DisplayName: o.Name,
			Version:     cmp.Or(o.Version, "dev"),
			Mode:        cmp.Or(o.Mode, wire.ModeCLI),
			Platform:    runtime.GOOS,
			Family:      o.Family,
		},
		Role: cmp.Or(o.Role, wire.RoleOperator), Scopes: o.Scopes, Caps: o.Caps, Commands: o.Commands, Auth: c.auth,
	}
	if p.Scopes == nil && o.URL != "" && p.Role == wire.RoleOperator {
		p.Scopes = []string{wire.ScopeRead, wire.ScopeWrite}
	}
	if !o.Once {
		p.Caps = append(slices.Clip(p.Caps), wire.CapCursor)
	}
	if !o.Once && slices.Contains(c.hello.Features.Capabilities, wire.CapCursor) {
		p.Resume = &wire.Resume{BootID: c.hello.Server.BootID, ConnID: c.hello.Server.ConnID, Cursor: c.cursor}
	}
	if o.Key != nil {
		p.Device = Sign(o.Key, nonce, p, time.Now())
	}
	return p
}

// next reads a frame.
func next(ctx context.Context, ws *websocket.Conn) (any, error) {
	_, b, err := ws.Read(ctx)
	if err != nil {
		return nil, closed(err)
	}
	return wire.Parse(b)
}
