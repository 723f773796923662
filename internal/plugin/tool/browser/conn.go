package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

const (
	maxMessage = 96 << 20         // bytes of a message from the browser
	writeTime  = 10 * time.Second // for a command to be taken by the browser
)

// conn is a connection to a browser in the Chrome DevTools Protocol. Messages end with
// a zero byte, in both directions. Its Write receives what the browser sends.
type conn struct {
	to io.WriteCloser

	sending sync.Mutex // orders the writes

	mu       sync.Mutex
	next     int64
	calls    map[int64]chan message
	sessions map[string]func(method string, params json.RawMessage) // handlers of events, by session; "": of the browser
	part     []byte                                                 // the beginning of a message
	err      error                                                  // why done is closed
	done     chan struct{}
}

// message is a message in either direction.
type message struct {
	ID      int64           `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *protocolError  `json:"error,omitempty"`
}

// protocolError is the browser's answer to a command that it did not carry out.
type protocolError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error returns the message of the browser.
func (e *protocolError) Error() string { return e.Message }

func newConn(to io.WriteCloser) *conn {
	return &conn{to: to, calls: map[int64]chan message{}, sessions: map[string]func(string, json.RawMessage){},
		done: make(chan struct{})}
}

// on sets the handler of the events of a session; nil removes it. A handler must not
// block and must not call the browser.
func (c *conn) on(session string, f func(method string, params json.RawMessage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f == nil {
		delete(c.sessions, session)
		return
	}
	c.sessions[session] = f
}

// Write implements io.Writer for the output of the browser.
func (c *conn) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		i := bytes.IndexByte(rest, 0)
		if i < 0 {
			if len(c.part)+len(rest) > maxMessage {
				c.close(errors.New("the browser sent a message that is too large"))
				return 0, c.err
			}
			c.part = append(c.part, rest...)
			break
		}
		raw := rest[:i]
		if len(c.part) > 0 {
			raw = append(c.part, raw...)
			c.part = nil
		}
		rest = rest[i+1:]
		c.receive(raw)
	}
	return len(p), nil
}

func (c *conn) receive(raw []byte) {
	var m message
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return // not a message
	}
	c.mu.Lock()
	answer, handler := c.calls[m.ID], c.sessions[m.Session]
	delete(c.calls, m.ID)
	c.mu.Unlock()
	switch {
	case m.ID != 0 && answer != nil:
		answer <- m
	case m.ID == 0 && handler != nil:
		handler(m.Method, m.Params)
	}
}

// close ends the connection; calls in progress and later ones fail with err.
func (c *conn) close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return
	default:
	}
	c.err = err
	close(c.done)
	_ = c.to.Close() // the browser ends when it notices
}

// call carries out a command in a session ("": of the browser) and decodes its result,
// unless result is nil.
func (c *conn) call(ctx context.Context, session, method string, params, result any) error {
	m := message{Session: session, Method: method}
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		m.Params = raw
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	c.next++
	m.ID = c.next
	c.calls[m.ID] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, m.ID)
		c.mu.Unlock()
	}()
	if err := c.send(m); err != nil {
		return err
	}
	select {
	case m = <-answer:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return c.err
	}
	switch {
	case m.Error != nil:
		return m.Error
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// send writes a message.
func (c *conn) send(m message) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Method, err)
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	select {
	case <-c.done:
		return c.err
	default:
	}
	if d, ok := c.to.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = d.SetWriteDeadline(time.Now().Add(writeTime)) // where it is supported
	}
	if _, err := c.to.Write(append(raw, 0)); err != nil {
		err = fmt.Errorf("the browser does not take commands: %w", err)
		if !errors.Is(err, syscall.EPIPE) { // else it has ended: its end, which follows, says why
			c.close(err)
		}
		return err
	}
	return nil
}
