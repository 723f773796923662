package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/chela-ai/chela/wire"
)

// Call asks for a method and stores its result in result, which may be nil. A
// failure that the gateway answered is a *[wire.Error]; ErrLost says that the
// answer was lost. Of a method that answers twice it takes the first answer;
// see [Client.Await].
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, !c.o.NoWait, method, params, nil, result)
}

// Await asks for a method that answers twice: accepted, when it is not nil, is
// called with the first answer, and result holds the last one.
func (c *Client) Await(ctx context.Context, method string, params any, accepted func(wire.Accepted), result any) error {
	if accepted == nil {
		accepted = func(wire.Accepted) {}
	}
	return c.call(ctx, !c.o.NoWait, method, params, accepted, result)
}

// Repeat is Call for what may be asked for more than once: methods that only
// read, and those with an idempotency key in their parameters. When the
// connection is lost before the answer, it asks again as soon as there is
// another one, until ctx ends.
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
		c.note(method, params, r)
		err = result(r, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}
