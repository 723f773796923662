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

// Options says how to connect and as what. Only URL or Dial is required.
type Options struct {
	// URL is where the gateway is: ws://host:port or wss://host:port. "": Dial
	// knows. Without encryption only machines of a private network are
	// connected to: a credential is shown.
	URL string
	// Dial opens the transport, for each connection: a TCP or unix socket, or one
	// end of a pipe. nil: the network.
	Dial func(ctx context.Context) (net.Conn, error)

	ID      string   // kind of client, one that the protocol knows; "": cli
	Name    string   // shown to people
	Version string   // of the client; "": dev
	Mode    string   // wire.ModeCLI, …; "": cli
	Role    string   // "": operator
	Scopes  []string // asked for; nil: read and write, and with Dial alone all that the gateway gives
	Caps    []string // wire.CapToolEvents, …
	Auth    *wire.Auth
	// Key is the device's own: the client signs the challenge with it. nil: the
	// client is no device. The caller keeps it, where only its owner reads.
	Key    ed25519.PrivateKey
	Buffer int // events that may wait to be read; 0: 1024

	// Once says that the client ends with its first connection.
	Once bool
	// NoWait lets calls fail with ErrOffline while there is no connection.
	// Otherwise they wait for one, as long as their context does.
	NoWait bool
	// Delay returns how long to wait before an attempt to connect again, counted
	// from 1, after err; nil: [Backoff].
	Delay func(attempt int, err error) time.Duration
}

// Client speaks with a gateway. It is safe for concurrent use.
type Client struct {
	o      Options
	events chan wire.Event // has room for one more than Options.Buffer: see put
	ctx    context.Context // its cause is what Err gives
	end    context.CancelCauseFunc
	done   chan struct{}
	tasks  sync.WaitGroup // that follow a connect

	emu sync.Mutex // guards what is put into events
	gap bool       // events were left out, and the reader is told

	mu     sync.Mutex
	link   *link         // nil: there is no connection
	up     chan struct{} // closed when there is one
	hello  wire.Hello
	cursor int64 // of the last event that was read
	subs   subscriptions
	auth   *wire.Auth
}

// Dial connects and waits for the hello, also of a gateway that is starting. An
// error of the gateway is a *[wire.Error] in the chain. When the connection is
// lost later, the client connects again.
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
			return nil, err // says more than that time is up
		case <-time.After(wait):
			ws, hello, err = c.dial(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	l := newLink(c.ctx, ws, hello)
	c.know(hello)
	c.attach(l)
	go c.run(l)
	return c, nil
}

// Hello returns what the gateway said at the last connect.
func (c *Client) Hello() wire.Hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hello
}

// Done is closed when the client has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err says why the client ended: nil while it has not, ErrClosed after Close.
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

// run reads from one connection after the other.
func (c *Client) run(l *link) {
	defer close(c.done)
	defer close(c.events)
	defer c.tasks.Wait()
	for l != nil {
		l.read(c.take)
		err := context.Cause(l.ctx)
		c.detach(l)
		if c.ctx.Err() != nil {
			return
		}
		if c.o.Once || final(err) {
			c.end(err)
			return
		}
		c.tell(EventLost, Outage{Reason: err.Error()})
		l = c.again(err)
	}
}

// attach lets calls use a connection.
func (c *Client) attach(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.ctx.Err() == nil {
		c.link = l
		close(c.up)
	}
}

// detach ends a connection: calls that wait for an answer of it fail.
func (c *Client) detach(l *link) {
	c.mu.Lock()
	if c.link == l {
		c.link, c.up = nil, make(chan struct{})
	}
	c.mu.Unlock()
	close(l.done)
}

// know notes what a hello says.
func (c *Client) know(hello wire.Hello) {
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

// connected returns the connection; when there is none it waits for one, or
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
