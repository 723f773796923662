package client

import (
	"context"
	"errors"
	"fmt"

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

func (c *Client) call(ctx context.Context, wait bool, method string, params any, accepted func(wire.Accepted), v any) error {
	l, err := c.connected(ctx, wait)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	r, err := l.call(ctx, method, params, accepted)
	if err == nil {
		c.recordSubscription(method, params, r)
		err = result(r, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}
