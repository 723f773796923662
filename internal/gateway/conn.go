package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// handshake is how long a client may take to connect.
const handshake = 15 * time.Second

// maxRoleErrors is how often a client may ask for methods of another role.
const maxRoleErrors = 10

// conn is a client's connection.
type conn struct {
	s  *Server
	id string
	ws *websocket.Conn
	out

	from access.From

	// Set by the handshake, and not changed after it.
	who   chela.Principal
	grant access.Grant
	proto int // protocol version
	role  string
	caps  []string
	info  wire.ClientInfo
	since time.Time

	dropped atomic.Bool // the credential is no longer good

	mu      sync.Mutex
	all     bool // watches all sessions
	watched map[chela.SessionKey]bool
	owned   map[chela.RunID]bool
}

func newConn(s *Server, ws *websocket.Conn, nc *batch) *conn {
	c := &conn{
		s: s, id: rand.Text(), ws: ws, role: wire.RoleOperator, proto: wire.Version,
		watched: map[chela.SessionKey]bool{}, owned: map[chela.RunID]bool{},
	}
	c.out.init(ws, nc, s.o.MaxBuffered)
	return c
}

// pipelined is how many requests of a connection may wait for the one before.
const pipelined = 32

// serve does the handshake, calls admitted after it, and carries out requests
// until the connection ends.
func (c *conn) serve(auth Authenticator, admitted func()) {
	ctx, cancel := context.WithCancel(c.s.ctx)
	var calls, ends sync.WaitGroup
	ends.Go(c.write)
	defer c.stuck.Wait()
	defer ends.Wait()
	defer c.gone()
	defer calls.Wait()
	defer cancel()
	if !c.handshake(ctx, auth) {
		return
	}
	defer c.s.leave(c)
	admitted()
	ctx = chela.WithPrincipal(ctx, c.who)
	c.ws.SetReadLimit(wire.MaxPayload)
	frames := make(chan []byte, pipelined)
	ends.Go(func() {
		defer cancel() // nobody waits for the answers any more
		defer close(frames)
		c.read(ctx, frames)
	})
	roleErrors := 0
	for b := range frames {
		if c.dropped.Load() {
			return
		}
		req, err := wire.ParseRequest(b)
		switch {
		case errors.Is(err, wire.ErrNotJSON):
			continue
		case err != nil:
			c.respond(cmp.Or(req.ID, "invalid"), nil, wire.Errorf(wire.InvalidRequest, "invalid request frame: %v", err))
			continue
		}
		call := &call{conn: c, id: req.ID, next: make(chan struct{})}
		calls.Go(func() { call.run(ctx, req) })
		<-call.next
		if call.wrongRole.Load() {
			if roleErrors++; roleErrors > maxRoleErrors {
				c.close(wire.ClosePolicy, "repeated unauthorized calls")
				return
			}
		}
	}
}

// drop ends a connection whose credential is no longer good: none of its
// frames is looked at any more.
func (c *conn) drop() {
	c.dropped.Store(true)
	c.close(wire.CloseAuth, "gateway auth changed")
}

// read reads frames until the connection ends. It goes on when nobody takes
// them any more: it is the reader that sees the other side close.
func (c *conn) read(ctx context.Context, frames chan<- []byte) {
	for {
		_, b, err := c.ws.Read(context.Background())
		if err != nil {
			return
		}
		select {
		case frames <- b:
		case <-ctx.Done():
		}
	}
}

// respond answers a request with a payload or an error.
func (c *conn) respond(id string, payload any, err error) {
	c.send(c.response(id, payload, err))
}

// response returns the frame that answers a request.
func (c *conn) response(id string, payload any, err error) []byte {
	var fault *wire.Error
	if err != nil {
		fault = rpc.Error(err)
		if c.proto < wire.Version {
			fault = olderError(fault)
		}
		payload = nil
		if f, ok := errors.AsType[*rpc.Failed](err); ok {
			payload = f.Payload
		}
	}
	b, err := wire.EncodeResponse(id, payload, fault)
	if err != nil {
		c.s.o.Log.Error("result cannot be encoded", "err", err)
		b, _ = wire.EncodeResponse(id, nil, wire.Errorf(wire.Unavailable, "internal error")) // a literal
	}
	return b
}

// watches reports whether the connection asked for events of the session.
func (c *conn) watches(key chela.SessionKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all || c.watched[key]
}

// watchesAll reports whether the connection asked for events of all sessions.
func (c *conn) watchesAll() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// owns reports whether the connection started the run and wants to see its
// tools.
func (c *conn) owns(id chela.RunID) bool {
	if !slices.Contains(c.caps, wire.CapToolEvents) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owned[id]
}

func (c *conn) disown(id chela.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.owned, id)
}

// call is one request.
type call struct {
	*conn
	id        string
	once      sync.Once
	next      chan struct{} // closed when the next request may begin
	wrongRole atomic.Bool
}

var _ rpc.Peer = (*call)(nil)

// run carries the request out and answers it.
func (c *call) run(ctx context.Context, req wire.Request) {
	c.s.calls.Add(1)
	defer c.s.calls.Add(-1)
	defer c.Yield()
	res, err := c.try(ctx, req.Method, req.Params)
	if _, ok := errors.AsType[*rpc.RoleError](err); ok {
		c.wrongRole.Store(true)
	}
	if err != nil && chela.CodeOf(err) == chela.CodeInternal && !isAnswer(err) && ctx.Err() == nil {
		c.s.o.Log.Warn("method did not succeed", "method", req.Method, "err", err)
	}
	c.respond(req.ID, res, err)
}

// isAnswer reports whether err was made to be answered, so that nobody needs
// to look into it.
func isAnswer(err error) bool {
	_, wired := errors.AsType[*wire.Error](err)
	_, role := errors.AsType[*rpc.RoleError](err)
	return wired || role || errors.Is(err, chela.ErrNotFound)
}

// try calls the method; a panic in it is an error.
func (c *call) try(ctx context.Context, method string, params json.RawMessage) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.s.o.Log.Error("method panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res, err = nil, wire.Errorf(wire.Unavailable, "internal error")
		}
	}()
	return c.s.o.Methods.Call(ctx, c.role, c, method, params)
}

// Accept implements rpc.Peer.
func (c *call) Accept(payload any) {
	c.respond(c.id, payload, nil)
	c.Yield()
}

// Yield implements rpc.Peer.
func (c *call) Yield() { c.once.Do(func() { close(c.next) }) }

// Owns implements rpc.Peer.
func (c *call) Owns(id chela.RunID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned[id] = true
}

// Watch implements rpc.Peer.
func (c *call) Watch(key chela.SessionKey, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case key == "":
		c.all = on
	case on:
		c.watched[key] = true
	default:
		delete(c.watched, key)
	}
}
