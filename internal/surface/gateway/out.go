package gateway

import (
	"context"
	"errors"
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

// out is the send queue of a connection. A goroutine writes while the queue is not
// empty.
type out struct {
	ws   *websocket.Conn
	sink *sink
	conn net.Conn
	max  int

	work sync.WaitGroup // writers and close handshakes
	sent atomic.Int64   // frames written

	omu     sync.Mutex // guards what follows; held for no write
	queue   []item
	held    []item // events that follow the answers of calls that start runs
	holds   int    // such calls without an answer
	bytes   int    // of both
	seq     int64  // of the last counted event
	writing bool   // a writer is active
	ended   bool   // no more frames are accepted
	code    int    // close code once the queue is empty; 0: stay open
	reason  string
}

// push queues an event. Counted events have a sequence number, even if they are
// dropped.
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
	o.enqueueLocked(it, f.drop, o.holds > 0)
}

// hold keeps events back until release is called as often as hold.
func (o *out) hold() {
	o.omu.Lock()
	defer o.omu.Unlock()
	o.holds++
}

// release queues the events that were kept back.
func (o *out) release() {
	o.omu.Lock()
	defer o.omu.Unlock()
	if o.holds--; o.holds == 0 && len(o.held) > 0 {
		o.queue, o.held = append(o.queue, o.held...), nil
		o.startLocked()
	}
}

// send queues a complete frame.
func (o *out) send(b []byte) {
	o.omu.Lock()
	defer o.omu.Unlock()
	if !o.ended {
		o.enqueueLocked(item{data: b, seq: -1}, false, false)
	}
}

func (o *out) enqueueLocked(it item, drop, hold bool) {
	if o.bytes+len(it.data) > o.max {
		if !drop {
			o.queue, o.held, o.bytes = nil, nil, 0
			o.endLocked(wire.ClosePolicy, "slow consumer")
			o.work.Go(func() { o.ws.Close(wire.ClosePolicy, "slow consumer") }) // the writer may be blocked
		}
		return
	}
	o.bytes += len(it.data)
	if hold {
		o.held = append(o.held, it)
		return
	}
	o.queue = append(o.queue, it)
	o.startLocked()
}

// startLocked starts a writer unless one is active.
func (o *out) startLocked() {
	if !o.writing {
		o.writing = true
		o.work.Go(o.write)
	}
}

// take returns the queued frames and the close code. If nothing is left, the writer
// must return.
func (o *out) take() (items []item, code int, reason string, more bool) {
	o.omu.Lock()
	defer o.omu.Unlock()
	items = o.queue
	o.queue, o.bytes = nil, 0
	for _, it := range o.held {
		o.bytes += len(it.data)
	}
	o.writing = len(items) > 0 || o.code != 0
	return items, o.code, o.reason, o.writing
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
	defer o.omu.Unlock()
	o.endLocked(code, reason[:min(len(reason), 123)]) // a close frame has 125 bytes, two of them the code
	o.startLocked()
}

// end closes the queue of a connection whose reader has ended.
func (o *out) end() { o.close(wire.CloseNormal, "") }

// write writes the queued frames, and closes the connection if requested.
func (o *out) write() {
	for {
		items, code, reason, more := o.take()
		if !more {
			return
		}
		if o.writeItems(items) != nil {
			o.abandon()
			return
		}
		if code != 0 {
			o.ws.Close(websocket.StatusCode(code), reason)
			return
		}
	}
}

// writeItems writes frames together. The data of an event is shared with the queues of other
// connections, so that the tail is appended to a copy.
func (o *out) writeItems(items []item) (err error) {
	most, all := 0, 0
	for _, it := range items {
		n := len(it.data) + maxTail
		most, all = max(most, n), all+n+maxHeader
	}
	o.sink.hold(all)
	defer func() { err = errors.Join(err, o.sink.flush()) }()
	buf := make([]byte, 0, most)
	for _, it := range items {
		buf = it.tail(append(buf[:0], it.data...))
		// There is no deadline, because each would need a timer. The
		// queue limit and the ping detect clients that do not read.
		if err := o.ws.Write(context.Background(), websocket.MessageText, buf); err != nil {
			return err
		}
		o.sent.Add(1)
	}
	return nil
}

// abandon drops a connection that cannot be written to.
func (o *out) abandon() {
	o.omu.Lock()
	o.queue, o.held, o.bytes, o.ended = nil, nil, 0, true
	o.omu.Unlock()
	o.ws.CloseNow()
}

// cut drops a connection whose close handshake takes too long.
func (o *out) cut() {
	o.conn.Close() // the error does not matter any more
}

// The most bytes that tail appends (two names and two numbers), and those of a frame's
// header.
const (
	maxTail   = 64
	maxHeader = 10
)

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
