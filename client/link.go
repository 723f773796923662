package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/wire"
)

// link is one connection after its hello.
type link struct {
	ws           *websocket.Conn
	ctx          context.Context // its cause is why the connection ended
	end          context.CancelCauseFunc
	silenceLimit time.Duration // maximum silence of the gateway
	done         chan struct{} // closed when no more answers can arrive

	mu      sync.Mutex
	next    int
	pending map[string]chan wire.Response
}

func newLink(ctx context.Context, ws *websocket.Conn, hello wire.Hello) *link {
	l := &link{ws: ws, done: make(chan struct{}), pending: map[string]chan wire.Response{}}
	l.ctx, l.end = context.WithCancelCause(ctx)
	l.silenceLimit = max(2*time.Duration(hello.Policy.TickIntervalMs)*time.Millisecond, 2*time.Second)
	return l
}

// read dispatches frames until the connection ends.
func (l *link) read(event func(wire.Event)) {
	silent := time.AfterFunc(l.silenceLimit, func() { l.end(ErrSilent) })
	defer silent.Stop()
	stop := context.AfterFunc(l.ctx, func() {
		if errors.Is(context.Cause(l.ctx), ErrSilent) { // it would not answer a close frame either
			l.ws.CloseNow()
			return
		}
		l.ws.Close(websocket.StatusNormalClosure, "")
	})
	defer stop()
	for {
		_, b, err := l.ws.Read(context.Background())
		if err != nil {
			l.end(closed(err))
			l.ws.CloseNow()
			return
		}
		silent.Reset(l.silenceLimit)
		f, err := wire.Parse(b)
		if err != nil {
			continue // from a later protocol version
		}
		switch f := f.(type) {
		case wire.Response:
			l.answer(f)
		case wire.Event:
			event(f)
		}
	}
}

// answer delivers a response to the call that waits for it.
func (l *link) answer(r wire.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ch := l.pending[r.ID]; ch != nil {
		select {
		case ch <- r:
		default: // more answers than the protocol allows
		}
	}
}

// call sends a request and returns the answer, or the second answer if accepted
// takes the first.
func (l *link) call(ctx context.Context, method string, params any,
	accepted func(wire.Accepted)) (wire.Response, error) {
	id, ch := l.register()
	defer l.unregister(id)
	frame, err := request(id, method, params)
	if err != nil {
		return wire.Response{}, err
	}
	// Not ctx: an interrupted write would end the connection.
	wctx, cancel := context.WithTimeout(l.ctx, handshake)
	defer cancel()
	if l.ws.Write(wctx, websocket.MessageText, frame) != nil {
		l.ws.CloseNow() // the reader reports the cause
		<-l.done
		return wire.Response{}, l.lost()
	}
	for {
		select {
		case r := <-ch:
			if accepted != nil {
				if first, ok := asAccepted(r); ok {
					accepted(first)
					continue
				}
			}
			return r, nil
		case <-ctx.Done():
			return wire.Response{}, context.Cause(ctx)
		case <-l.done:
			return wire.Response{}, l.lost()
		}
	}
}

// lost returns the error for a connection that ended before the answer.
func (l *link) lost() error {
	cause := context.Cause(l.ctx)
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrLost, cause)
}

// asAccepted returns the first of two answers if r is one.
func asAccepted(r wire.Response) (wire.Accepted, bool) {
	var a wire.Accepted
	if !r.OK || json.Unmarshal(r.Payload, &a) != nil {
		return a, false
	}
	return a, a.Status == wire.StatusAccepted
}

// register registers a call and returns its id.
func (l *link) register() (string, chan wire.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	id := strconv.Itoa(l.next)
	ch := make(chan wire.Response, 2)
	l.pending[id] = ch
	return id, ch
}

func (l *link) unregister(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
}

// request returns a request frame.
func request(id, method string, params any) ([]byte, error) {
	r := wire.Request{Type: wire.TypeRequest, ID: id, Method: method}
	if params != nil {
		b, err := wire.Encode(params)
		if err != nil {
			return nil, err
		}
		r.Params = b
	}
	return wire.Encode(r)
}

// result stores the payload of r in v, which may be nil, or returns its error.
func result(r wire.Response, v any) error {
	if !r.OK {
		if r.Error == nil {
			return &wire.Error{Code: wire.Unavailable, Message: "gateway answered with an unspecified error"}
		}
		return r.Error
	}
	if v == nil || len(r.Payload) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.Payload, v); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return nil
}

// closed converts the error of a connection closed by the gateway into a
// *CloseError.
func closed(err error) error {
	if ce, ok := errors.AsType[websocket.CloseError](err); ok {
		return &CloseError{int(ce.Code), ce.Reason}
	}
	return err
}
