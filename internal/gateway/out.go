package gateway

import (
	"context"
	"net"
	"strconv"
	"sync"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/wire"
)

// frame is an event, encoded once for all connections.
type frame struct {
	head []byte // the JSON object without its closing brace
	drop bool   // may be left out for a connection that is slow
}

// encode returns an event. Payloads are our own types, which always encode.
func encode(name string, payload any) frame {
	b, err := wire.EncodeEvent(name, payload)
	if err != nil {
		panic(err)
	}
	return frame{head: b[:len(b)-1]}
}

func raw(payload any) []byte {
	b, err := wire.Encode(payload)
	if err != nil {
		panic(err)
	}
	return b
}

// item is a frame on its way out.
type item struct {
	data []byte
	seq  int64 // of an event to everybody; -1: data is a whole frame
}

// out is the queue of what is sent to a connection.
type out struct {
	ws  *websocket.Conn
	nc  *batch // may be nil: nothing is batched
	max int

	stuck sync.WaitGroup // closing a connection that does not read

	omu    sync.Mutex
	queue  []item
	bytes  int
	seq    int64
	ready  chan struct{} // cap 1: there is something to do
	ended  bool          // nothing more is taken
	code   int           // to close with, when the queue is empty; 0: none
	reason string
}

func (o *out) init(ws *websocket.Conn, nc *batch, limit int) {
	o.ws, o.nc, o.max, o.ready = ws, nc, limit, make(chan struct{}, 1)
}

// push queues an event. Counted events have a sequence number, also when they
// are left out.
func (o *out) push(f frame, counted bool) {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.ended {
		return
	}
	it := item{data: f.head}
	if counted {
		o.seq++
		it.seq = o.seq
	}
	o.putLocked(it, f.drop)
}

// send queues a whole frame.
func (o *out) send(b []byte) {
	o.omu.Lock()
	defer o.omu.Unlock()
	if !o.ended {
		o.putLocked(item{data: b, seq: -1}, false)
	}
}

func (o *out) putLocked(it item, drop bool) {
	if o.bytes+len(it.data) > o.max {
		if !drop {
			o.queue, o.bytes = nil, 0
			o.endLocked(wire.ClosePolicy, "slow consumer")
			o.stuck.Go(func() { o.ws.Close(wire.ClosePolicy, "slow consumer") }) // the writer cannot
		}
		return
	}
	o.queue = append(o.queue, it)
	o.bytes += len(it.data)
	o.wakeLocked()
}

func (o *out) wakeLocked() {
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

func (o *out) endLocked(code int, reason string) {
	if o.code == 0 {
		o.code, o.reason = code, reason
	}
	o.ended = true
	o.wakeLocked()
}

// close closes the connection when everything that was queued is sent.
func (o *out) close(code int, reason string) {
	o.omu.Lock()
	defer o.omu.Unlock()
	o.endLocked(code, reason[:min(len(reason), 123)])
}

// gone ends the queue of a connection whose reader ended.
func (o *out) gone() { o.close(wire.CloseNormal, "") }

// write sends what is queued until the connection ends.
func (o *out) write() {
	var buf []byte
	for range o.ready {
		items, code, reason := o.take()
		if o.nc != nil {
			o.nc.hold()
		}
		for _, it := range items {
			buf = it.append(buf[:0])
			// The background context: a deadline would cost a timer for each
			// frame, and the queue's bound ends connections that do not read.
			if o.ws.Write(context.Background(), websocket.MessageText, buf) != nil {
				o.abandon()
				return
			}
		}
		if o.nc != nil && o.nc.release() != nil {
			o.abandon()
			return
		}
		if cap(buf) > maxKept {
			buf = nil
		}
		if code != 0 {
			o.ws.Close(websocket.StatusCode(code), reason)
			return
		}
	}
}

// take returns what is queued, and with which code to close after it.
func (o *out) take() ([]item, int, string) {
	o.omu.Lock()
	defer o.omu.Unlock()
	items := o.queue
	o.queue, o.bytes = nil, 0
	return items, o.code, o.reason
}

// abandon ends a connection that cannot be written to.
func (o *out) abandon() {
	o.omu.Lock()
	o.queue, o.bytes, o.ended = nil, 0, true
	o.omu.Unlock()
	o.ws.CloseNow()
}

// cut ends a connection whose close handshake takes too long.
func (o *out) cut() {
	if o.nc != nil {
		o.nc.Close() // what it returns says nothing about a connection that is given up
	}
}

// append writes the frame.
func (it item) append(b []byte) []byte {
	b = append(b, it.data...)
	if it.seq < 0 {
		return b
	}
	if it.seq > 0 {
		b = append(b, `,"seq":`...)
		b = strconv.AppendInt(b, it.seq, 10)
	}
	return append(b, '}')
}

// batch is a connection whose writes can be held back and sent together.
type batch struct {
	net.Conn

	mu   sync.Mutex
	held bool
	buf  []byte
}

const (
	maxHeld = 64 << 10 // bounds what is held back
	maxKept = 8 << 10  // bounds the memory that an idle connection keeps
)

func (b *batch) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = true
}

// release sends what was held back.
func (b *batch) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = false
	return b.flushLocked()
}

func (b *batch) flushLocked() error {
	if len(b.buf) == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.buf)
	b.buf = b.buf[:0]
	if cap(b.buf) > maxKept {
		b.buf = nil
	}
	return err
}

// Write sends p, or holds it back.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held && len(p) <= maxKept && len(b.buf)+len(p) <= maxHeld {
		b.buf = append(b.buf, p...)
		return len(p), nil
	}
	if err := b.flushLocked(); err != nil {
		return 0, err
	}
	return b.Conn.Write(p)
}

// batching makes the connections of a listener batches.
type batching struct{ net.Listener }

func (l batching) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &batch{Conn: c}, nil
}
