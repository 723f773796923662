package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"

	"github.com/chela-ai/chela/wire"
)

// Call calls a method and stores its result in result, which may be nil. An
// error from the gateway is a *[wire.Error]; ErrLost means that the connection
// was lost before the answer. For a method that answers twice Call returns the
// first answer; see [Client.Await].
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, !c.o.NoWait, method, params, nil, result)
}

// Await calls a method that answers twice. If accepted is not nil, it is called
// with the first answer; result holds the second.
func (c *Client) Await(ctx context.Context, method string, params any, accepted func(wire.Accepted), result any) error {
	if accepted == nil {
		accepted = func(wire.Accepted) {}
	}
	return c.call(ctx, !c.o.NoWait, method, params, accepted, result)
}

// Repeat is like Call for methods that are safe to repeat: methods that only
// read, and methods with an idempotency key. If the connection is lost before
// the answer, Repeat calls the method again after reconnecting, until ctx ends.
func (c *Client) Repeat(ctx context.Context, method string, params, result any) error {
	for {
		err := c.call(ctx, true, method, params, nil, result)
		if !errors.Is(err, ErrLost) || ctx.Err() != nil || c.Err() != nil {
			return err
		}
	}
}

func (c *Client) call(ctx context.Context, wait bool, method string, params any,
	accepted func(wire.Accepted), v any) error {
	l, err := c.connected(ctx, wait)
	if err != nil {
		return &CallError{method, err}
	}
	r, err := l.call(ctx, method, params, accepted)
	if err == nil {
		c.recordSubscription(method, params, r)
		err = result(r, v)
	}
	if err != nil {
		return &CallError{method, err}
	}
	return nil
}

// Send sends a message to a session and returns the id of the run that answers
// it. The run's chat events end with exactly one final, aborted or error.
func (c *Client) Send(ctx context.Context, session, text string, files ...wire.Attachment) (run string, err error) {
	sent, err := c.Chat(ctx, wire.ChatSend{SessionKey: session, Message: text, Attachments: files})
	return sent.RunID, err
}

// Chat sends a message. The message is delivered exactly once, even if the
// connection is lost: it is sent again with the same idempotency key. An empty
// key is replaced by a generated one.
func (c *Client) Chat(ctx context.Context, p wire.ChatSend) (wire.ChatSent, error) {
	p.IdempotencyKey = cmp.Or(p.IdempotencyKey, rand.Text())
	var sent wire.ChatSent
	err := c.Repeat(ctx, wire.MethodChatSend, p, &sent)
	return sent, err
}

// History returns the newest messages of a session, at most limit (0: 200),
// with the queue and the active run.
func (c *Client) History(ctx context.Context, session string, limit int) (wire.History, error) {
	var h wire.History
	err := c.Repeat(ctx, wire.MethodChatHistory, wire.ChatHistory{SessionKey: session, Limit: limit}, &h)
	return h, err
}

// Abort stops a run of a session. With an empty run it stops the active run and
// clears the queue.
func (c *Client) Abort(ctx context.Context, session, run string) (wire.ChatAborted, error) {
	var a wire.ChatAborted
	err := c.Call(ctx, wire.MethodChatAbort, wire.ChatAbort{SessionKey: session, RunID: run}, &a)
	return a, err
}
