package gateway

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"

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
	pos  int64 // where a client that is told may go on after it; 0: nowhere
}

// out is the queue of what is sent to a connection. A goroutine writes while
// there is something to write; an idle connection has none.
type out struct {
	ws      *websocket.Conn
	nc      *batch // may be nil: nothing is batched
	max     int
	scratch *sync.Pool // of *scratch

	work sync.WaitGroup // the writer, and what waits for the other side
	sent atomic.Int64   // frames that were written

	omu     sync.Mutex
	queue   []item
	bytes   int
	seq     int64
	writing bool // a goroutine writes
	ended   bool // nothing more is taken
	code    int  // to close with, when the queue is empty; 0: none
	reason  string
}

// scratch is memory of a writer.
type scratch struct{ frame, held []byte }

func newScratch() any { return new(scratch) }

// push queues an event. Counted events have a sequence number, also when they
// are left out.
func (o *out) push(f frame, counted bool, pos int64) {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.ended {
		return
	}
	it := item{data: f.head, pos: pos}
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
			o.work.Go(func() { o.ws.Close(wire.ClosePolicy, "slow consumer") }) // the writer cannot
		}
		return
	}
	o.queue = append(o.queue, it)
	o.bytes += len(it.data)
	o.wakeLocked()
}

func (o *out) wakeLocked() {
	if !o.writing {
		o.writing = true
		o.work.Go(o.write)
	}
}

func (o *out) endLocked(code int, reason string) {
	if o.code == 0 {
		o.code, o.reason = code, reason
		o.wakeLocked()
	}
	o.ended = true
}

// close closes the connection when everything that was queued is sent.
func (o *out) close(code int, reason string) {
	o.omu.Lock()
	defer o.omu.Unlock()
	o.endLocked(code, reason[:min(len(reason), 123)])
}

// gone ends the queue of a connection whose reader ended.
func (o *out) gone() { o.close(wire.CloseNormal, "") }

// write sends what is queued, and closes the connection when that is asked
// for.
func (o *out) write() {
	mem := o.scratch.Get().(*scratch)
	defer func() {
		mem.trim()
		o.scratch.Put(mem)
	}()
	for {
		items, code, reason, more := o.take()
		if !more {
			return
		}
		if o.writeAll(mem, items) != nil {
			o.abandon()
			return
		}
		if code != 0 {
			o.ws.Close(websocket.StatusCode(code), reason)
			return
		}
	}
}

// writeAll writes frames together.
func (o *out) writeAll(mem *scratch, items []item) error {
	if o.nc != nil {
		o.nc.hold(mem.held)
	}
	for _, it := range items {
		mem.frame = it.append(mem.frame[:0])
		// The background context: a deadline would cost a timer for each frame,
		// and the queue's bound and the ping end connections that do not read.
		if err := o.ws.Write(context.Background(), websocket.MessageText, mem.frame); err != nil {
			return err
		}
		o.sent.Add(1)
	}
	if o.nc == nil {
		return nil
	}
	var err error
	mem.held, err = o.nc.release()
	return err
}

// take returns what is queued, and with which code to close after it. When
// there is nothing to do the writer ends; another one begins when there is.
func (o *out) take() (items []item, code int, reason string, more bool) {
	o.omu.Lock()
	defer o.omu.Unlock()
	items = o.queue
	o.queue, o.bytes = nil, 0
	if len(items) == 0 && o.code == 0 {
		o.writing = false
		return nil, 0, "", false
	}
	return items, o.code, o.reason, true
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

// trim gives back what is large.
func (m *scratch) trim() {
	if cap(m.frame) > maxScratch {
		m.frame = nil
	}
	if cap(m.held) > maxScratch {
		m.held = nil
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
	if it.pos > 0 {
		b = append(b, `,"cursor":`...)
		b = strconv.AppendInt(b, it.pos, 10)
	}
	return append(b, '}')
}

// batch is a connection whose writes can be held back and sent together.
type batch struct {
	net.Conn

	mu   chan struct{} // cap 1; held while it is written, which may take long
	held bool
	buf  []byte
}

func newBatch(c net.Conn) *batch { return &batch{Conn: c, mu: make(chan struct{}, 1)} }

func (b *batch) lock()   { b.mu <- struct{}{} }
func (b *batch) unlock() { <-b.mu }

const (
	maxHeld    = 64 << 10 // bounds what is held back
	maxWhole   = 8 << 10  // what is longer is not held back
	maxScratch = 64 << 10 // bounds the memory that writers keep
)

// hold begins to hold back what is written, in buf.
func (b *batch) hold(buf []byte) {
	b.lock()
	defer b.unlock()
	b.held, b.buf = true, buf[:0]
}

// release sends what was held back, and returns the memory.
func (b *batch) release() ([]byte, error) {
	b.lock()
	defer b.unlock()
	err := b.flushLocked()
	buf := b.buf
	b.held, b.buf = false, nil
	return buf, err
}

func (b *batch) flushLocked() error {
	if len(b.buf) == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.buf)
	b.buf = b.buf[:0]
	return err
}

// Write sends p, or holds it back.
func (b *batch) Write(p []byte) (int, error) {
	b.lock()
	defer b.unlock()
	if b.held && len(p) <= maxWhole && len(b.buf)+len(p) <= maxHeld {
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
	return newBatch(c), nil
}
