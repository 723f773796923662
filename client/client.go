package client

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/chela-ai/chela/wire"
)

// Options configures a Client. Only URL or Dial is required.
type Options struct {
	// URL is the address of the gateway: ws://host:port or wss://host:port;
	// "": Dial knows it. A ws:// address must be in a private network,
	// because the client sends a credential.
	URL string
	// Dial opens the transport of each connection: a TCP or unix socket, or
	// one end of a pipe. nil: TCP.
	Dial func(ctx context.Context) (net.Conn, error)

	ID      string   // kind of client, one that the protocol defines; "": cli
	Name    string   // display name
	Version string   // of the client; "": dev
	Mode    string   // wire.ModeCLI, …; "": cli
	Role    string   // "": operator
	Scopes  []string // requested scopes; nil: read and write, or, with Dial and no URL, all that the gateway grants
	Caps    []string // wire.CapToolEvents, …
	// Commands are those that the client carries out in the role of a node.
	Commands []string
	Family   string // of the device, such as Linux
	Auth     *wire.Auth
	// Key is the device key that signs the challenge; nil: the client is
	// not a device. The caller must store it where only its owner can read
	// it.
	Key    ed25519.PrivateKey
	Buffer int // maximum number of unread events; 0: 1024

	// Once ends the client when its first connection ends.
	Once bool
	// NoWait makes calls fail with ErrOffline while there is no connection.
	// Otherwise they wait for one until their context ends.
	NoWait bool
	// Delay returns the delay before a reconnect attempt, counted from 1,
	// after err; nil: [Backoff].
	Delay func(attempt int, err error) time.Duration
}

// Client is a connection to a gateway that reconnects. It is safe for
// concurrent use.
type Client struct {
	o      Options
	events chan wire.Event // one slot more than Options.Buffer: see put
	ctx    context.Context // its cause is the result of Err
	end    context.CancelCauseFunc
	done   chan struct{}
	tasks  sync.WaitGroup // started after each connect

	eventsMu sync.Mutex // guards sending on events
	gap      bool       // events were dropped and the reader was told

	mu     sync.Mutex
	link   *link         // nil: not connected
	up     chan struct{} // closed while connected
	hello  wire.Hello
	cursor int64 // of the last event read
	subs   subscriptions
	auth   *wire.Auth
}

// Dial connects and waits for the hello, also if the gateway is still starting.
// An error from the gateway is a *[wire.Error] in the chain. If the connection
// is lost later, the client reconnects.
func Dial(ctx context.Context, o Options) (*Client, error) {
	o.Buffer = cmp.Or(o.Buffer, 1024)
	c := &Client{
		o: o, events: make(chan wire.Event, o.Buffer+1), done: make(chan struct{}), up: make(chan struct{}),
		subs: subscriptions{sessions: map[string]json.RawMessage{}},
	}
	if o.Auth != nil {
		auth := *o.Auth
		c.auth = &auth
	}
	ws, hello, err := c.dial(ctx)
	for wait := starting(err); wait > 0; wait = starting(err) {
		select {
		case <-ctx.Done():
			return nil, err // more specific than the deadline
		case <-time.After(wait):
			ws, hello, err = c.dial(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	l := newLink(c.ctx, ws, hello)
	c.recordHello(hello)
	c.attach(l)
	go c.run(l)
	return c, nil
}

// Hello returns the hello of the last connect.
func (c *Client) Hello() wire.Hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hello
}

// Done is closed when the client has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the client ended: nil before that, ErrClosed after Close.
func (c *Client) Err() error {
	select {
	case <-c.done:
		return context.Cause(c.ctx)
	default:
		return nil
	}
}

// Close ends the client and waits until it has ended.
func (c *Client) Close() error {
	c.end(ErrClosed)
	<-c.done
	return nil
}

// run reads from one connection after another until the client ends.
func (c *Client) run(l *link) {
	defer close(c.done)
	defer close(c.events)
	defer c.tasks.Wait()
	for l != nil {
		l.read(c.handleEvent)
		err := context.Cause(l.ctx)
		c.detach(l)
		if c.ctx.Err() != nil {
			return
		}
		if c.o.Once || final(err) {
			c.end(err)
			return
		}
		c.notify(EventLost, Outage{Reason: err.Error()})
		l = c.reconnect(err)
	}
}

// attach makes a connection available to calls.
func (c *Client) attach(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.ctx.Err() == nil {
		c.link = l
		close(c.up)
	}
}

// detach ends a connection. Calls that wait for an answer fail.
func (c *Client) detach(l *link) {
	c.mu.Lock()
	if c.link == l {
		c.link, c.up = nil, make(chan struct{})
	}
	c.mu.Unlock()
	close(l.done)
}

// recordHello records the cursor of a hello.
func (c *Client) recordHello(hello wire.Hello) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hello = hello
	if hello.Resumed == nil || hello.Resumed.Reset != "" {
		c.cursor = hello.Cursor
	}
	if t := hello.Auth.DeviceToken; t != "" && c.auth != nil && c.auth.DeviceToken != "" {
		c.auth.DeviceToken = t
	}
}

// connected returns the connection. If there is none, it waits for one or
// fails.
func (c *Client) connected(ctx context.Context, wait bool) (*link, error) {
	for {
		c.mu.Lock()
		l, up := c.link, c.up
		c.mu.Unlock()
		switch {
		case c.ctx.Err() != nil:
			return nil, context.Cause(c.ctx)
		case l != nil:
			return l, nil
		case !wait:
			return nil, ErrOffline
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, errors.Join(ErrOffline, context.Cause(ctx))
		case <-c.ctx.Done():
		}
	}
}
