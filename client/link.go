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

// link is one connection, after its hello.
type link struct {
	ws       *websocket.Conn
	ctx      context.Context // its cause says why the connection ended
	end      context.CancelCauseFunc
	patience time.Duration // how long the gateway may say nothing
	done     chan struct{} // closed when no answer comes any more

	mu      sync.Mutex
	next    int
	pending map[string]chan wire.Response
}

func newLink(ctx context.Context, ws *websocket.Conn, hello wire.Hello) *link {
	l := &link{ws: ws, done: make(chan struct{}), pending: map[string]chan wire.Response{}}
	l.ctx, l.end = context.WithCancelCause(ctx)
	l.patience = max(2*time.Duration(hello.Policy.TickIntervalMs)*time.Millisecond, 2*time.Second)
	return l
}

// read hands out frames until the connection ends.
func (l *link) read(event func(wire.Event)) {
	silent := time.AfterFunc(l.patience, func() { l.end(ErrSilent) })
	defer silent.Stop()
	stop := context.AfterFunc(l.ctx, func() {
		if errors.Is(context.Cause(l.ctx), ErrSilent) { // it would not answer a close either
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
		silent.Reset(l.patience)
		f, err := wire.Parse(b)
		if err != nil {
			continue // of a later version of the protocol
		}
		switch f := f.(type) {
		case wire.Response:
			l.answer(f)
		case wire.Event:
			event(f)
		}
	}
}

// answer gives a response to the call that waits for it.
func (l *link) answer(r wire.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ch := l.pending[r.ID]; ch != nil {
		select {
		case ch <- r:
		default: // more answers than the protocol knows
		}
	}
}

// call asks and returns the answer; the last one when accepted takes the
// first.
func (l *link) call(ctx context.Context, method string, params any, accepted func(wire.Accepted)) (wire.Response, error) {
	id, ch := l.expect()
	defer l.forget(id)
	frame, err := request(id, method, params)
	if err != nil {
		return wire.Response{}, err
	}
	// Not ctx: a write that is cut would end the connection.
	wctx, cancel := context.WithTimeout(l.ctx, handshake)
	defer cancel()
	if l.ws.Write(wctx, websocket.MessageText, frame) != nil {
		l.ws.CloseNow() // the reader says why
		<-l.done
		return wire.Response{}, l.lost()
	}
	for {
		select {
		case r := <-ch:
			if accepted != nil {
				if first, ok := acceptance(r); ok {
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

// lost says that the connection ended before an answer came.
func (l *link) lost() error {
	cause := context.Cause(l.ctx)
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrLost, cause)
}

// acceptance returns the first answer of two, when r is one.
func acceptance(r wire.Response) (wire.Accepted, bool) {
	var a wire.Accepted
	if !r.OK || json.Unmarshal(r.Payload, &a) != nil {
		return a, false
	}
	return a, a.Status == wire.StatusAccepted
}

// expect registers a call and returns its id.
func (l *link) expect() (string, chan wire.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	id := strconv.Itoa(l.next)
	ch := make(chan wire.Response, 2)
	l.pending[id] = ch
	return id, ch
}

func (l *link) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, id)
}

// request returns a frame that asks for a method.
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
			return &wire.Error{Code: wire.Unavailable, Message: "gateway answered with an error and did not say which"}
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

// closed turns the error of a connection that the gateway closed into a
// *CloseError.
func closed(err error) error {
	if ce, ok := errors.AsType[websocket.CloseError](err); ok {
		return &CloseError{int(ce.Code), ce.Reason}
	}
	return err
}
