package gateway

import (
	"encoding/binary"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/line"
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

// out is the queue of what is sent to a connection. Who queues something sends
// it, too, when that can be done without waiting; else a goroutine does, which
// is there only while there is something to send.
type out struct {
	ws      *websocket.Conn
	line    *line.Line
	max     int
	scratch *sync.Pool // of *[]byte: frames that are sent together

	work sync.WaitGroup // who writes, and what waits for the other side
	sent atomic.Int64   // frames that were written

	omu     sync.Mutex
	queue   []item
	bytes   int
	seq     int64
	writing bool // somebody writes
	ended   bool // nothing more is taken
	code    int  // to close with, when the queue is empty; 0: none
	reason  string
}

// maxJoined bounds what is sent together.
const maxJoined = 64 << 10

func newScratch() any { return new([]byte) }

// push queues an event, and reports whether somebody must call flush for it.
// Counted events have a sequence number, also when they are left out.
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
	o.putLocked(it, f.drop)
	return due
}

// send queues a whole frame and sends what is queued.
func (o *out) send(b []byte) {
	o.omu.Lock()
	if !o.ended {
		o.putLocked(item{data: b, seq: -1}, false)
	}
	o.omu.Unlock()
	o.flush()
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
	if o.queue == nil {
		o.queue = make([]item, 0, 4) // of an event there are two mostly
	}
	o.queue = append(o.queue, it)
	o.bytes += len(it.data)
}

// flush sends what is queued, when nobody does: itself what the system takes at
// once, by a goroutine what needs to be waited for. It never waits.
func (o *out) flush() {
	if !o.begin() {
		return
	}
	var rest []byte
	if o.line.TryLock() {
		var all bool
		if rest, all = o.try(); all {
			o.work.Done()
			return
		}
	}
	go func() {
		defer o.work.Done()
		o.write(rest)
	}()
}

// begin reports whether there is something to send and nobody who does: it is
// for the caller now, until a take says that there is nothing more.
func (o *out) begin() bool {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.writing || len(o.queue) == 0 && o.code == 0 {
		return false
	}
	o.writing = true
	o.work.Add(1)
	return true
}

// rounds is how often who tries looks whether there is more to send.
const rounds = 3

// try sends what is queued as far as nothing needs to be waited for, and reports
// whether that was all. The line is locked; it stays so for the rest of frames
// that could not be sent whole.
func (o *out) try() (rest []byte, all bool) {
	buf := o.scratch.Get().(*[]byte)
	defer o.scratch.Put(buf)
	for range rounds {
		items, more := o.takeShort()
		if len(items) == 0 {
			o.line.Unlock()
			return nil, !more
		}
		*buf = (*buf)[:0]
		for _, it := range items {
			*buf = it.append(*buf)
		}
		if n := o.line.Try(*buf); n < len(*buf) {
			return slices.Clone((*buf)[n:]), false
		}
		o.sent.Add(int64(len(items)))
	}
	o.line.Unlock()
	return nil, false
}

// takeShort is take for who must not wait: it takes nothing when there is much,
// or the connection is to be closed.
func (o *out) takeShort() (items []item, more bool) {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.code != 0 || o.bytes > maxJoined {
		return nil, true
	}
	return o.takeLocked()
}

// take returns what is queued, and with which code to close after it. When there
// is nothing to do, who called it writes no more.
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

// close closes the connection when everything that was queued is sent.
func (o *out) close(code int, reason string) {
	o.omu.Lock()
	o.endLocked(code, reason[:min(len(reason), 123)])
	o.omu.Unlock()
	o.flush()
}

// gone ends the queue of a connection whose reader ended.
func (o *out) gone() { o.close(wire.CloseNormal, "") }

// write sends what is left of frames, and what is queued, and closes the
// connection when that is asked for.
func (o *out) write(rest []byte) {
	if rest != nil && o.line.Finish(rest) != nil {
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

// writeAll writes frames, as many together as are short.
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
		// No deadline, which would cost a timer for each: the queue's bound and
		// the ping end connections that do not read.
		if _, err := o.line.Write(*buf); err != nil {
			return err
		}
		o.sent.Add(int64(i + 1 - first))
		first, *buf = i+1, (*buf)[:0]
	}
	return nil
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
	o.line.Close() // what it returns says nothing about a connection that is given up
}

// append writes the item as a frame of a WebSocket.
func (it item) append(b []byte) []byte {
	var space [48]byte
	tail := it.tail(space[:0])
	b = appendHeader(b, len(it.data)+len(tail))
	return append(append(b, it.data...), tail...)
}

// appendHeader writes what stands before a text of n bytes in a WebSocket from a
// server. The library writes to the same line what a WebSocket says of itself,
// pings, pongs and the close, each at once.
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

// tail writes what is other for each connection.
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
