package cli

import (
	"context"
	"errors"
	"fmt"
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

// link is an engine and a connection to it.
type link struct {
	*client.Client
	engine Engine
}

// connect starts or finds an engine and connects to it.
func (c *console) connect(ctx context.Context) (*link, error) {
	s, err := c.start()
	if err != nil {
		return nil, err
	}
	e, err := c.app.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	l, err := c.dial(ctx, e)
	if err != nil {
		_ = stop(ctx, e) // err says more
		return nil, err
	}
	return l, nil
}

// dial connects to an engine.
func (c *console) dial(ctx context.Context, e Engine) (*link, error) {
	cl, err := client.Dial(ctx, client.Options{
		Dial: e.Dial, Name: "chela", Version: c.app.Version, Mode: wire.ModeCLI, Caps: []string{wire.CapToolEvents},
	})
	if err != nil {
		return nil, err
	}
	return &link{cl, e}, nil
}

// close disconnects and stops the engine when it is in this process.
func (l *link) close(ctx context.Context) error {
	l.Client.Close()
	return stop(ctx, l.engine)
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
func (c *console) with(ctx context.Context, f func(*link) error) (err error) {
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
