package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/wire"
)

// Options says how to connect and as what. Only URL or Dial is required.
type Options struct {
	// URL is where the gateway is: ws://host:port or wss://host:port. "": Dial
	// knows.
	URL string
	// Dial opens the transport: a TCP or unix socket, or one end of a pipe. nil:
	// the network.
	Dial func(ctx context.Context) (net.Conn, error)

	ID      string   // kind of client, one that the protocol knows; "": cli
	Name    string   // shown to people
	Version string   // of the client; "": dev
	Mode    string   // wire.ModeCLI, …; "": cli
	Role    string   // "": operator
	Scopes  []string // asked for; nil: all that the gateway gives
	Caps    []string // wire.CapToolEvents, …
	Auth    *wire.Auth
	Buffer  int // events that may wait to be read; 0: 1024
}

// Errors that Err and Call give.
var (
	// ErrClosed says that Close was called.
	ErrClosed = errors.New("client is closed")
	// ErrSilent says that the gateway was not heard of for two ticks.
	ErrSilent = errors.New("gateway is silent")
)

// CloseError says with which code the gateway closed the connection.
type CloseError struct {
	Code   int // wire.CloseRestart, …
	Reason string
}

// Error names the reason, or the code when there is none.
func (e *CloseError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("gateway closed the connection (code %d)", e.Code)
	}
	return "gateway closed the connection: " + e.Reason
}

// Client is a connection to a gateway. It is safe for concurrent use.
type Client struct {
	ws     *websocket.Conn
	hello  wire.Hello
	events chan wire.Event
	ctx    context.Context // of the connection; its cause is what Err gives
	end    context.CancelCauseFunc
	done   chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	next    int
	pending map[string]chan wire.Response
}

// handshake bounds the time until the hello, when ctx has no deadline.
const handshake = 15 * time.Second

// Dial connects and waits for the hello. An error of the gateway is a
// *[wire.Error] in the chain.
func Dial(ctx context.Context, o Options) (*Client, error) {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	ws, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	hello, err := connect(ctx, ws, o)
	if err != nil {
		ws.CloseNow()
		return nil, fmt.Errorf("connect to gateway: %w", err)
	}
	c := &Client{
		ws:      ws,
		hello:   hello,
		events:  make(chan wire.Event, cmp.Or(o.Buffer, 1024)),
		done:    make(chan struct{}),
		pending: map[string]chan wire.Response{},
	}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	go c.read()
	return c, nil
}

// open makes a WebSocket over the transport.
func open(ctx context.Context, o Options) (*websocket.Conn, error) {
	if o.Dial == nil && o.URL == "" {
		return nil, errors.New("client: neither Options.URL nor Options.Dial is set")
	}
	t := &http.Transport{}
	if o.Dial != nil {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) }
	}
	ws, _, err := websocket.Dial(ctx, cmp.Or(o.URL, "ws://localhost/"), &websocket.DialOptions{HTTPClient: &http.Client{Transport: t}})
	if err != nil {
		return nil, fmt.Errorf("connect to gateway: %w", err)
	}
	ws.SetReadLimit(wire.MaxBuffered)
	return ws, nil
}

// connect answers the challenge and returns the hello.
func connect(ctx context.Context, ws *websocket.Conn, o Options) (wire.Hello, error) {
	var hello wire.Hello
	for {
		f, err := next(ctx, ws)
		if err != nil {
			return hello, err
		}
		if e, ok := f.(wire.Event); ok && e.Name == wire.EventChallenge {
			break
		}
	}
	p := wire.Connect{
		MinProtocol: wire.Version, MaxProtocol: wire.Version,
		Client: wire.ClientInfo{
			ID: cmp.Or(o.ID, "cli"), DisplayName: o.Name, Version: cmp.Or(o.Version, "dev"), Mode: cmp.Or(o.Mode, wire.ModeCLI), Platform: runtime.GOOS,
		},
		Role: cmp.Or(o.Role, wire.RoleOperator), Scopes: o.Scopes, Caps: o.Caps, Auth: o.Auth,
	}
	if err := write(ctx, ws, "connect", wire.MethodConnect, p); err != nil {
		return hello, err
	}
	for {
		f, err := next(ctx, ws)
		if err != nil {
			return hello, err
		}
		r, ok := f.(wire.Response)
		if !ok {
			continue
		}
		return hello, result(r, &hello)
	}
}

// next reads a frame.
func next(ctx context.Context, ws *websocket.Conn) (any, error) {
	_, b, err := ws.Read(ctx)
	if err != nil {
		return nil, closed(err)
	}
	return wire.Parse(b)
}

// closed turns the error of a connection that the gateway closed into a
// *CloseError.
func closed(err error) error {
	if ce, ok := errors.AsType[websocket.CloseError](err); ok {
		return &CloseError{int(ce.Code), ce.Reason}
	}
	return err
}

func write(ctx context.Context, ws *websocket.Conn, id, method string, params any) error {
	b, err := wire.Encode(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if params == nil {
		b = nil
	}
	f, err := wire.Encode(wire.Request{Type: wire.TypeRequest, ID: id, Method: method, Params: b})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return ws.Write(ctx, websocket.MessageText, f)
}

// result stores the payload of r in v, which may be nil, or returns its error.
func result(r wire.Response, v any) error {
	if !r.OK {
		if r.Error == nil {
			return &wire.Error{Code: wire.Unavailable, Message: "gateway answered with an error and did not say which"}
		}
		return r.Error
	}
	if v == nil || len(r.Payload) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Payload, v); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// Hello returns what the gateway said at the connect.
func (c *Client) Hello() wire.Hello { return c.hello }

// Events returns the events, in order. The channel is closed when the
// connection ends.
func (c *Client) Events() <-chan wire.Event { return c.events }

// Done is closed when the connection ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err says why the connection ended: nil while it is open, ErrClosed after
// Close.
func (c *Client) Err() error {
	select {
	case <-c.done:
		return context.Cause(c.ctx)
	default:
		return nil
	}
}

// Close ends the connection and waits until it has ended.
func (c *Client) Close() error {
	c.end(ErrClosed)
	<-c.done
	return nil
}

// read hands out frames until the connection ends.
func (c *Client) read() {
	defer close(c.done)
	defer close(c.events)
	patience := max(2*time.Duration(c.hello.Policy.TickIntervalMs)*time.Millisecond, 2*time.Second)
	silent := time.AfterFunc(patience, func() { c.end(ErrSilent) })
	defer silent.Stop()
	stop := context.AfterFunc(c.ctx, func() {
		if errors.Is(context.Cause(c.ctx), ErrSilent) { // it would not answer a close either
			c.ws.CloseNow()
			return
		}
		c.ws.Close(websocket.StatusNormalClosure, "")
	})
	defer stop()
	for {
		_, b, err := c.ws.Read(context.Background())
		if err != nil {
			c.end(closed(err))
			c.ws.CloseNow()
			return
		}
		silent.Reset(patience)
		f, err := wire.Parse(b)
		if err != nil {
			continue // of a later version of the protocol
		}
		switch f := f.(type) {
		case wire.Response:
			c.answer(f)
		case wire.Event:
			select {
			case c.events <- f:
			default: // the gap in Seq tells
			}
		}
	}
}

// answer gives a response to the call that waits for it.
func (c *Client) answer(r wire.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.pending[r.ID]; ch != nil {
		select {
		case ch <- r:
		default: // more answers than the protocol knows
		}
	}
}

// Call asks for a method and stores its result in result, which may be nil. A
// failure that the gateway answered is a *[wire.Error]. Of a method that
// answers twice it takes the first answer; see [Client.Await].
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, method, params, nil, result)
}

// Await asks for a method that answers twice: accepted, when it is not nil, is
// called with the first answer, and result holds the last one.
func (c *Client) Await(ctx context.Context, method string, params any, accepted func(wire.Accepted), result any) error {
	if accepted == nil {
		accepted = func(wire.Accepted) {}
	}
	return c.call(ctx, method, params, accepted, result)
}

func (c *Client) call(ctx context.Context, method string, params any, accepted func(wire.Accepted), v any) error {
	id, ch := c.expect()
	defer c.forget(id)
	// Not ctx: a write that is cut would end the connection.
	wctx, cancel := context.WithTimeout(c.ctx, handshake)
	defer cancel()
	if err := write(wctx, c.ws, id, method, params); err != nil {
		if cause := context.Cause(c.ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s: %w", method, err)
	}
	for {
		select {
		case r := <-ch:
			if accepted != nil {
				if first, ok := acceptance(r); ok {
					accepted(first)
					continue
				}
			}
			if err := result(r, v); err != nil {
				return fmt.Errorf("%s: %w", method, err)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", method, context.Cause(ctx))
		case <-c.done:
			return fmt.Errorf("%s: %w", method, context.Cause(c.ctx))
		}
	}
}

// acceptance returns the first answer of two, when r is one.
func acceptance(r wire.Response) (wire.Accepted, bool) {
	var a wire.Accepted
	if !r.OK || json.Unmarshal(r.Payload, &a) != nil {
		return a, false
	}
	return a, a.Status == wire.StatusAccepted
}

// expect registers a call and returns its id.
func (c *Client) expect() (string, chan wire.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	id := strconv.Itoa(c.next)
	ch := make(chan wire.Response, 2)
	c.pending[id] = ch
	return id, ch
}

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}
