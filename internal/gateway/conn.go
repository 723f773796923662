package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/line"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// handshake is how long a client may take to connect.
const handshake = 15 * time.Second

// maxRoleErrors is how often a client may ask for methods of another role.
const maxRoleErrors = 10

// patience is how long a client may take to answer a ping, and stalls how many
// ticks may pass in which nothing that waits for it can be sent.
const (
	patience = 15 * time.Second
	stalls   = 3
)

// conn is a client's connection.
type conn struct {
	s  *Server
	ws *websocket.Conn
	*viewer
	out

	from  access.From // until the hello
	info  wire.ClientInfo
	since time.Time
	// catalog says of which session the client wants to be told the models; nil:
	// of none.
	catalog json.RawMessage

	dropped    atomic.Bool // nothing of it is carried out any more
	roleErrors atomic.Int32
	calls      sync.WaitGroup
	inbox      inbox

	heard   atomic.Bool // something was read since the last tick
	stalled int         // ticks in which nothing was sent
	written int64       // frames, at the last tick
}

func newConn(s *Server, ws *websocket.Conn, l *line.Line) *conn {
	c := &conn{s: s, ws: ws, viewer: &viewer{id: rand.Text(), role: wire.RoleOperator, proto: wire.Version}}
	c.out.ws, c.line, c.max, c.scratch = ws, l, s.o.MaxBuffered, &s.scratch
	return c
}

// open does the handshake, calls settled after it, and has the connection
// served by another goroutine: the stack of this one has grown.
func (c *conn) open(auth Authenticator, settled func()) {
	ctx, cancel := context.WithCancel(c.s.ctx)
	in := c.handshake(ctx, auth)
	settled()
	if !in {
		cancel()
		c.gone()
		c.work.Wait()
		return
	}
	c.from = access.From{}
	c.ws.SetReadLimit(wire.MaxPayload)
	ctx = chela.WithPrincipal(ctx, c.who)
	c.s.wg.Go(func() {
		defer c.work.Wait()
		defer c.gone()
		defer c.calls.Wait()
		defer c.s.leave(c)
		defer cancel() // nobody waits for the answers any more
		c.read(ctx)
	})
}

// drop ends a connection whose credential is no longer good: none of its
// frames is looked at any more.
func (c *conn) drop() {
	c.dropped.Store(true)
	c.close(wire.CloseAuth, "gateway auth changed")
}

// frame reads a frame. Room for a large one is made once: of memory that was not
// written to, the system has given none yet.
func (c *conn) frame() ([]byte, error) {
	_, r, err := c.ws.Reader(context.Background())
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, 512)
	for {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case len(b) < cap(b):
		case len(b) < 1<<20:
			b = append(make([]byte, 0, 2*cap(b)), b...)
		default:
			b = append(make([]byte, 0, wire.MaxPayload+1), b...)
		}
	}
}

// read reads frames until the connection ends. It goes on while requests are
// carried out: it is the reader that sees the other side close.
func (c *conn) read(ctx context.Context) {
	for {
		b, err := c.frame()
		if err != nil {
			return
		}
		c.heard.Store(true)
		c.take(ctx, b)
	}
}

// pipelined is how many requests of a connection may wait for the one before.
const pipelined = 32

// inbox is the requests that wait for the one before them.
type inbox struct {
	mu     sync.Mutex
	frames [][]byte
	busy   bool          // a request is carried out, and the next one waits
	room   chan struct{} // closed when the reader may go on; nil: it does not wait
}

// take has a frame carried out, now or after those before it. It waits when
// there are too many.
func (c *conn) take(ctx context.Context, b []byte) {
	in := &c.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.busy {
		in.busy = true
		c.begin(ctx, b)
		return
	}
	for len(in.frames) >= pipelined && ctx.Err() == nil {
		room := make(chan struct{})
		in.room = room
		in.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		in.mu.Lock()
	}
	if in.busy {
		in.frames = append(in.frames, b)
		return
	}
	in.busy = true
	c.begin(ctx, b)
}

// next lets the next request begin.
func (c *conn) next(ctx context.Context) {
	in := &c.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.room != nil {
		close(in.room)
		in.room = nil
	}
	if len(in.frames) == 0 || ctx.Err() != nil {
		in.busy, in.frames = false, nil
		return
	}
	b := in.frames[0]
	in.frames = in.frames[1:]
	c.begin(ctx, b)
}

// begin has a request carried out.
func (c *conn) begin(ctx context.Context, b []byte) {
	c.calls.Add(1)
	c.s.workers.Go(func() {
		defer c.calls.Done()
		c.handle(ctx, b)
	})
}

// handle carries out the request in a frame.
func (c *conn) handle(ctx context.Context, b []byte) {
	req, err := wire.ParseRequest(b)
	switch {
	case c.dropped.Load(), errors.Is(err, wire.ErrNotJSON):
		c.next(ctx)
		return
	case err != nil:
		c.respond(cmp.Or(req.ID, "invalid"), nil, wire.Errorf(wire.InvalidRequest, "invalid request frame: %v", err))
		c.next(ctx)
		return
	}
	call := &call{conn: c, id: req.ID, next: sync.OnceFunc(func() { c.next(ctx) })}
	call.run(ctx, req)
}

// probe looks whether there is somebody at the other end. It is called at each
// tick: who says nothing is asked, and who cannot be written to for several
// ticks is given up.
func (c *conn) probe() {
	c.omu.Lock()
	writing, ended := c.writing, c.ended
	c.omu.Unlock()
	if ended {
		return
	}
	sent := c.sent.Load()
	if writing && sent == c.written {
		if c.stalled++; c.stalled == stalls {
			c.s.wg.Go(c.abandon)
		}
		return
	}
	c.stalled, c.written = 0, sent
	if c.heard.Swap(false) || writing {
		return
	}
	c.s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(c.s.ctx, patience)
		defer cancel()
		if c.ws.Ping(ctx) != nil && c.s.ctx.Err() == nil {
			c.abandon()
		}
	})
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

// call is one request.
type call struct {
	*conn
	id   string
	next func() // lets the next request begin
}

var _ rpc.Peer = (*call)(nil)

// run carries the request out and answers it.
func (c *call) run(ctx context.Context, req wire.Request) {
	c.s.calls.Add(1)
	defer c.s.calls.Add(-1)
	defer c.Yield()
	res, err := c.try(ctx, req.Method, req.Params)
	if err != nil && chela.CodeOf(err) == chela.CodeInternal && !isAnswer(err) && ctx.Err() == nil {
		c.s.o.Log.Warn("method did not succeed", "method", req.Method, "err", err)
	}
	c.respond(req.ID, res, err)
	if _, ok := errors.AsType[*rpc.RoleError](err); ok && c.roleErrors.Add(1) > maxRoleErrors {
		c.dropped.Store(true)
		c.close(wire.ClosePolicy, "repeated unauthorized calls")
	}
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
func (c *call) Yield() { c.next() }

// Owns implements rpc.Peer.
func (c *call) Owns(id chela.RunID) { c.own(id) }

// Watch implements rpc.Peer.
func (c *call) Watch(key chela.SessionKey, on bool) { c.watch(key, on) }
