package gateway

import (
	"encoding/binary"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/wire"
)

// frame is an event, encoded once for all connections.
type frame struct {
	head []byte // the JSON object without its closing brace
	drop bool   // may be dropped for a slow connection
}

// encode returns an event as a frame. Payloads are types of this program, which
// always encode.
func encode(name string, payload any) frame {
	b, err := wire.EncodeEvent(name, payload)
	if err != nil {
		panic(err)
	}
	return frame{head: b[:len(b)-1]}
}

func mustEncode(payload any) []byte {
	b, err := wire.Encode(payload)
	if err != nil {
		panic(err)
	}
	return b
}

// item is a queued frame.
type item struct {
	data []byte
	seq  int64 // of a broadcast event; -1: data is a complete frame
	pos  int64 // cursor to resume from; 0: none
}

// out is the send queue of a connection. Whoever queues a frame also writes it
// if that does not block. Otherwise a goroutine writes until the queue is
// empty.
type out struct {
	ws      *websocket.Conn
	conn    *frameConn
	max     int
	scratch *sync.Pool // of *[]byte: buffers to join frames

	work sync.WaitGroup // writers and close handshakes
	sent atomic.Int64   // frames written

	omu     sync.Mutex
	queue   []item
	bytes   int
	seq     int64
	writing bool // a writer is active
	ended   bool // no more frames are accepted
	code    int  // close code once the queue is empty; 0: stay open
	reason  string
}

// maxJoined limits the bytes written at once.
const maxJoined = 64 << 10

func newScratch() any { return new([]byte) }

// push queues an event and reports whether the caller must call flush. Counted
// events have a sequence number, even if they are dropped.
func (o *out) push(f frame, counted bool, pos int64) (due bool) {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.ended {
		return false
	}
	it := item{data: f.head, pos: pos}
	if counted {
		o.seq++
		it.seq = o.seq
	}
	due = !o.writing && len(o.queue) == 0
	o.enqueueLocked(it, f.drop)
	return due
}

// send queues a complete frame and flushes.
func (o *out) send(b []byte) {
	o.omu.Lock()
	if !o.ended {
		o.enqueueLocked(item{data: b, seq: -1}, false)
	}
	o.omu.Unlock()
	o.flush()
}

func (o *out) enqueueLocked(it item, drop bool) {
	if o.bytes+len(it.data) > o.max {
		if !drop {
			o.queue, o.bytes = nil, 0
			o.endLocked(wire.ClosePolicy, "slow consumer")
			o.work.Go(func() { o.ws.Close(wire.ClosePolicy, "slow consumer") }) // the writer may be blocked
		}
		return
	}
	if o.queue == nil {
		o.queue = make([]item, 0, 4) // mostly agent and chat
	}
	o.queue = append(o.queue, it)
	o.bytes += len(it.data)
}

// flush writes the queued frames unless another writer is active: directly as
// far as that does not block, then in a goroutine. It never blocks.
func (o *out) flush() {
	if !o.acquire() {
		return
	}
	var rest []byte
	if o.conn.TryLock() {
		var all bool
		if rest, all = o.tryWrite(); all {
			o.work.Done()
			return
		}
	}
	go func() {
		defer o.work.Done()
		o.write(rest)
	}()
}

// acquire reports whether there is something to write and no active writer. The
// caller becomes the writer until a take function reports that nothing is left.
func (o *out) acquire() bool {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.writing || len(o.queue) == 0 && o.code == 0 {
		return false
	}
	o.writing = true
	o.work.Add(1)
	return true
}

// maxTryRounds is how often tryWrite checks the queue for more frames.
const maxTryRounds = 3

// tryWrite writes queued frames without blocking and reports whether it wrote
// everything. The connection must be locked. It stays locked if a frame was
// written in part; rest is the remainder.
func (o *out) tryWrite() (rest []byte, all bool) {
	buf := o.scratch.Get().(*[]byte)
	defer o.scratch.Put(buf)
	for range maxTryRounds {
		items, more := o.takeSmall()
		if len(items) == 0 {
			o.conn.Unlock()
			return nil, !more
		}
		*buf = (*buf)[:0]
		for _, it := range items {
			*buf = it.append(*buf)
		}
		if n := o.conn.TryWrite(*buf); n < len(*buf) {
			return slices.Clone((*buf)[n:]), false
		}
		o.sent.Add(int64(len(items)))
	}
	o.conn.Unlock()
	return nil, false
}

// takeSmall is like take for a caller that must not block. It takes nothing if
// the queue is large or the connection is to be closed.
func (o *out) takeSmall() (items []item, more bool) {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.code != 0 || o.bytes > maxJoined {
		return nil, true
	}
	return o.takeLocked()
}

// take returns the queued frames and the close code. If nothing is left, the
// caller is no longer the writer.
func (o *out) take() (items []item, code int, reason string, more bool) {
	o.omu.Lock()
	defer o.omu.Unlock()
	items, more = o.takeLocked()
	return items, o.code, o.reason, more
}

func (o *out) takeLocked() (items []item, more bool) {
	items = o.queue
	o.queue, o.bytes = nil, 0
	o.writing = len(items) > 0 || o.code != 0
	return items, o.writing
}

func (o *out) endLocked(code int, reason string) {
	if o.code == 0 {
		o.code, o.reason = code, reason
	}
	o.ended = true
}

// close closes the connection after the queued frames are written.
func (o *out) close(code int, reason string) {
	o.omu.Lock()
	o.endLocked(code, reason[:min(len(reason), 123)])
	o.omu.Unlock()
	o.flush()
}

// end closes the queue of a connection whose reader has ended.
func (o *out) end() { o.close(wire.CloseNormal, "") }

// write writes the rest of a frame and the queued frames, and closes the
// connection if requested.
func (o *out) write(rest []byte) {
	if rest != nil && o.conn.Finish(rest) != nil {
		o.abandon()
		return
	}
	buf := o.scratch.Get().(*[]byte)
	defer o.scratch.Put(buf)
	for {
		items, code, reason, more := o.take()
		if !more {
			return
		}
		if o.writeAll(buf, items) != nil {
			o.abandon()
			return
		}
		if code != 0 {
			o.ws.Close(websocket.StatusCode(code), reason)
			return
		}
	}
}

// writeAll writes frames and joins small ones.
func (o *out) writeAll(buf *[]byte, items []item) error {
	defer func() {
		if cap(*buf) > 2*maxJoined {
			*buf = nil
		}
	}()
	first := 0
	*buf = (*buf)[:0]
	for i, it := range items {
		*buf = it.append(*buf)
		if len(*buf) < maxJoined && i < len(items)-1 {
			continue
		}
		// There is no deadline, because each would need a timer. The
		// queue limit and the ping detect clients that do not read.
		if _, err := o.conn.Write(*buf); err != nil {
			return err
		}
		o.sent.Add(int64(i + 1 - first))
		first, *buf = i+1, (*buf)[:0]
	}
	return nil
}

// abandon drops a connection that cannot be written to.
func (o *out) abandon() {
	o.omu.Lock()
	o.queue, o.bytes, o.ended = nil, 0, true
	o.omu.Unlock()
	o.ws.CloseNow()
}

// cut drops a connection whose close handshake takes too long.
func (o *out) cut() {
	o.conn.Close() // the error does not matter any more
}

// append appends the item as a WebSocket frame.
func (it item) append(b []byte) []byte {
	var space [48]byte
	tail := it.tail(space[:0])
	b = appendHeader(b, len(it.data)+len(tail))
	return append(append(b, it.data...), tail...)
}

// appendHeader appends the header of a WebSocket text frame of n bytes. The
// WebSocket library writes control frames to the same connection, each in one
// write.
func appendHeader(b []byte, n int) []byte {
	const whole, text = 0x80, 0x1
	b = append(b, whole|text)
	switch {
	case n < 126:
		return append(b, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
}

// tail appends the part of an event that differs between connections.
func (it item) tail(b []byte) []byte {
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
