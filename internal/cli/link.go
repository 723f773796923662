package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/wire"
)

// How long an engine may take to stop. Who leaves a conversation does not wait
// for what is in progress: it is gone on with at the next start.
const (
	patience = 10 * time.Second
	parting  = time.Second
)

// connectLimit bounds how long a gateway may take to answer who connects.
const connectLimit = 5 * time.Second

// link is a client, and the engine that it speaks with: when that was in a
// process that is gone, another one.
type link struct {
	*client.Client
	c *commands

	mu     sync.Mutex
	engine Engine
}

// connect starts or finds an engine and connects to it.
func (c *commands) connect(ctx context.Context) (*link, error) {
	e, err := c.launch(ctx)
	if err != nil {
		return nil, err
	}
	l := &link{c: c, engine: e}
	o := c.options(l.reach)
	o.Delay = soon
	if l.Client, err = client.Dial(ctx, o); err != nil {
		_ = stop(ctx, l.engine) // err says more
		return nil, c.unanswered(ctx, err)
	}
	return l, nil
}

// launch starts or finds an engine.
func (c *commands) launch(ctx context.Context) (Engine, error) {
	s, err := c.start()
	if err != nil {
		return nil, err
	}
	return c.app.Start(ctx, s)
}

// reach opens a connection to the engine. When it is gone, another one is
// found, or started here.
func (l *link) reach(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn, err := l.engine.Dial(ctx)
	if err == nil {
		return conn, nil
	}
	part(ctx, l.engine)
	next, err := l.c.launch(ctx)
	if err != nil {
		return nil, err
	}
	l.engine = next
	return next.Dial(ctx)
}

// soon is how long to wait before connecting again: the engine is on this
// machine.
func soon(attempt int, _ error) time.Duration {
	return min(time.Duration(attempt-1)*500*time.Millisecond, 5*time.Second)
}

// options is how commands connect.
func (c *commands) options(dial func(context.Context) (net.Conn, error)) client.Options {
	return client.Options{
		Dial: dial, Name: "chela", Version: c.app.Version, Mode: wire.ModeCLI, Caps: []string{wire.CapToolEvents},
	}
}

// dial connects to an engine that runs, for one command.
func (c *commands) dial(ctx context.Context, e Engine) (*client.Client, error) {
	o := c.options(e.Dial)
	o.Once = true
	limited, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	cl, err := client.Dial(limited, o)
	return cl, c.unanswered(ctx, err)
}

// unanswered says of an engine of this machine that did not answer in time what
// can be done.
func (c *commands) unanswered(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return c.Hint(errors.New("a process owns the state directory and does not answer"), "gateway run --force")
	}
	return err
}

// close disconnects and stops the engine when it is in this process.
func (l *link) close(ctx context.Context) error {
	l.Client.Close()
	return stop(ctx, l.engine) // the client has ended: nobody changes it
}

// part disconnects from an engine whose runs may be in progress.
func (l *link) part(ctx context.Context) {
	l.Client.Close()
	part(ctx, l.engine)
}

// part stops an engine whose runs may be in progress.
func part(ctx context.Context, e Engine) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	e.Close(ctx)
}

// stop stops an engine.
func stop(ctx context.Context, e Engine) error { return within(ctx, e.Close) }

// within ends what f ends, and does not wait longer than that may take.
func within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		return nil
	case <-time.After(patience + parting):
		return errors.New("stop: it does not end; what is in progress is gone on with at the next start")
	}
}

// with connects, calls f and disconnects.
func (c *commands) with(ctx context.Context, f func(*link) error) (err error) {
	l, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := l.close(ctx); err == nil {
			err = cerr
		}
	}()
	return f(l)
}
