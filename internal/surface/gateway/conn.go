package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// handshakeTimeout limits the time until the hello.
const handshakeTimeout = 15 * time.Second

// maxRoleErrors is the number of calls of another role's methods after which a
// connection is closed.
const maxRoleErrors = 10

// pingTimeout limits the wait for a pong. A connection to which nothing could
// be sent for maxStalledTicks ticks is closed.
const (
	pingTimeout     = 15 * time.Second
	maxStalledTicks = 3
)

// conn is a client's connection.
type conn struct {
	s  *Server
	ws *websocket.Conn
	*subscriber
	out

	from  access.Source // zero after the handshake: it holds the header of the request
	info  wire.ClientInfo
	since time.Time
	// catalog holds the scope of the models snapshot the client requested;
	// nil: none requested.
	catalog json.RawMessage
	base    string // address at which the client reached the gateway by HTTP; "": otherwise
	left    func() // tells the end of a node's connection; nil: it is none

	dropped    atomic.Bool // further requests are ignored
	roleErrors atomic.Int32
	calls      sync.WaitGroup
	inbox      inbox

	received atomic.Bool // a frame was read since the last tick
	stalled  int         // ticks without a frame sent, although one waits; used by probe only
	written  int64       // frames sent at the last tick; used by probe only
}

func newConn(s *Server, ws *websocket.Conn, to *sink, nc net.Conn) *conn {
	c := &conn{s: s, ws: ws, subscriber: &subscriber{id: rand.Text(), role: wire.RoleOperator, proto: wire.Version}}
	c.out.ws, c.sink, c.conn, c.max = ws, to, nc, s.o.MaxBuffered
	return c
}

// open performs the handshake, calls settled, and continues in a new goroutine,
// because the handshake has grown the stack of this one.
func (c *conn) open(auth Authenticator, settled func()) {
	ctx, cancel := context.WithCancel(c.s.ctx)
	in := c.handshake(ctx, auth)
	settled()
	if !in {
		cancel()
		c.s.closePages(c)
		c.end()
		c.work.Wait()
		return
	}
	c.from = access.Source{}
	c.ws.SetReadLimit(wire.MaxPayload)
	ctx = chela.WithPrincipal(ctx, c.who)
	// These run from the last to the first. The connection leaves before its calls have
	// ended, so that no more events are queued for it; the queue ends when no call can
	// answer any more, and the goroutine when the writer has returned.
	c.s.wg.Go(func() {
		defer c.work.Wait()
		defer c.end()
		defer c.calls.Wait()
		defer c.s.closePages(c)
		defer c.s.leave(c)
		defer cancel() // ends the calls in progress
		c.read(ctx)
	})
}

// joined tells that a node has connected.
func (c *conn) joined() {
	device, ok := pairing.DeviceOf(c.who)
	if c.role != wire.RoleNode || !ok || c.s.o.Joined == nil {
		return
	}
	c.left = c.s.o.Joined(device, func(event string, payload any) { c.push(encode(event, payload), false, 0) })
}

// drop closes a connection whose credential was revoked. Further frames are
// ignored.
func (c *conn) drop() {
	c.dropped.Store(true)
	c.close(wire.CloseAuth, "gateway auth changed")
}

// readFrame reads a frame. A large buffer is allocated once at full size: the
// system provides its pages only when they are written.
func (c *conn) readFrame() ([]byte, error) {
	// The library drops a connection without a close frame when the context of a read ends. The
	// end of the send queue ends the read instead, after its frames were written.
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

// read reads frames until the connection ends. It continues to read during
// calls, to notice when the client closes the connection.
func (c *conn) read(ctx context.Context) {
	for {
		b, err := c.readFrame()
		if err != nil {
			return
		}
		c.received.Store(true)
		c.submit(ctx, b)
	}
}

// maxPipelined is the maximum number of requests queued on a connection.
const maxPipelined = 32

// inbox queues requests while one is in progress.
type inbox struct {
	mu     sync.Mutex
	frames [][]byte
	busy   bool          // a call is in progress and has not yielded
	room   chan struct{} // closed when the queue has room; nil: the reader is not waiting
}

// submit handles a frame now or after those before it. It blocks while the
// queue is full. The reader then reads nothing more, so that TCP holds the client back.
func (c *conn) submit(ctx context.Context, b []byte) {
	in := &c.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.busy {
		in.busy = true
		c.start(ctx, b)
		return
	}
	for len(in.frames) >= maxPipelined && ctx.Err() == nil {
		room := make(chan struct{})
		in.room = room
		in.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		}
		in.mu.Lock()
	}
	// While the lock was free, the queue may have been worked off.
	if in.busy {
		in.frames = append(in.frames, b)
		return
	}
	in.busy = true
	c.start(ctx, b)
}

// startNext starts the next queued request.
func (c *conn) startNext(ctx context.Context) {
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
	c.start(ctx, b)
}

// start handles a frame in another goroutine.
func (c *conn) start(ctx context.Context, b []byte) {
	c.calls.Go(func() { c.handle(ctx, b) })
}

// handle executes the request in a frame. A frame that is not JSON has no id that could be
// answered, and a dropped connection gets no answer; both are passed over.
func (c *conn) handle(ctx context.Context, b []byte) {
	req, err := wire.ParseRequest(b)
	switch {
	case c.dropped.Load(), errors.Is(err, wire.ErrNotJSON):
		c.startNext(ctx)
		return
	case err != nil:
		c.respond(cmp.Or(req.ID, "invalid"), nil, wire.Errorf(wire.InvalidRequest, "invalid request frame: %v", err))
		c.startNext(ctx)
		return
	}
	call := &call{conn: c, id: req.ID, yield: sync.OnceFunc(func() { c.startNext(ctx) })}
	call.run(ctx, req)
}

// probe checks whether the client is alive. It runs at each tick: it pings a
// silent client and closes a connection that has been stalled for several
// ticks.
func (c *conn) probe() {
	c.omu.Lock()
	writing, ended := c.writing, c.ended
	c.omu.Unlock()
	if ended {
		return
	}
	sent := c.sent.Load()
	if writing && sent == c.written {
		if c.stalled++; c.stalled == maxStalledTicks {
			c.s.wg.Go(c.abandon)
		}
		return
	}
	c.stalled, c.written = 0, sent
	if c.received.Swap(false) || writing {
		return
	}
	c.s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(c.s.ctx, pingTimeout)
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
			fault = downgradeError(fault)
		}
		payload = nil
		if f, ok := errors.AsType[*rpc.PayloadError](err); ok {
			payload = f.Payload
		}
	}
	b, err := wire.EncodeResponse(id, payload, fault)
	if err != nil {
		c.s.o.Log.Error("encode result", "err", err)
		b, _ = wire.EncodeResponse(id, nil, wire.Errorf(wire.Unavailable, "internal error")) // cannot fail
	}
	return b
}

// call is one request.
type call struct {
	*conn
	id    string
	yield func() // starts the next request; only the first call of it has an effect
	holds bool   // events are kept back until the answer
}

var (
	_ rpc.Peer       = (*call)(nil)
	_ rpc.Capable    = (*call)(nil)
	_ rpc.Identified = (*call)(nil)
)

// run executes the request and answers it.
func (c *call) run(ctx context.Context, req wire.Request) {
	c.s.calls.Add(1)
	defer c.s.calls.Add(-1)
	defer c.Yield()
	res, err := c.invoke(ctx, req.Method, req.Params)
	// A call that the end of its connection cancels fails, too; that is not worth an entry.
	if err != nil && chela.CodeOf(err) == chela.CodeInternal && !isExpected(err) && ctx.Err() == nil {
		c.s.o.Log.Warn("method failed", "method", req.Method, "err", err)
	}
	c.answer(res, err)
	if _, ok := errors.AsType[*rpc.RoleError](err); ok && c.roleErrors.Add(1) > maxRoleErrors {
		c.dropped.Store(true)
		c.close(wire.ClosePolicy, "repeated unauthorized calls")
	}
}

// isExpected reports whether err is an ordinary answer that needs no log entry.
func isExpected(err error) bool {
	_, wired := errors.AsType[*wire.Error](err)
	_, role := errors.AsType[*rpc.RoleError](err)
	return wired || role || errors.Is(err, chela.ErrNotFound)
}

// invoke calls the method and converts a panic into an error.
func (c *call) invoke(ctx context.Context, method string, params json.RawMessage) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.s.o.Log.Error("method panicked", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			res, err = nil, wire.Errorf(wire.Unavailable, "internal error")
		}
	}()
	return c.s.o.Methods.Call(ctx, c.role, c, method, params)
}

// Accept implements [rpc.Peer].
func (c *call) Accept(payload any) {
	c.answer(payload, nil)
	c.Yield()
}

// answer answers the request, and sends the events that were kept back for it.
func (c *call) answer(payload any, err error) {
	c.respond(c.id, payload, err)
	if c.holds {
		c.holds = false
		c.release()
	}
}

// Yield implements [rpc.Peer].
func (c *call) Yield() { c.yield() }

// TrackRun implements [rpc.Peer].
func (c *call) TrackRun(id chela.RunID) {
	if !c.holds {
		c.holds = true
		c.hold()
	}
	c.trackRun(id)
}

// Capable implements [rpc.Capable].
func (c *call) Capable(name string) bool { return slices.Contains(c.caps, name) }

// ConnID implements [rpc.Identified].
func (c *call) ConnID() string { return c.conn.id }

// Subscribe implements [rpc.Peer].
func (c *call) Subscribe(key chela.SessionKey, on bool) { c.subscribe(key, on) }
