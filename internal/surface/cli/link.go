package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

const (
	// stopTimeout is how long an engine may take to stop.
	stopTimeout = 10 * time.Second
	// detachTimeout is how long an engine may take to stop when a conversation
	// is left. Runs in progress are not waited for: they resume at the next
	// start.
	detachTimeout = time.Second
	// connectTimeout is how long a gateway may take to accept a connection.
	connectTimeout = 5 * time.Second
)

// link is a client and the engine it is connected to. If the process of the
// engine exits, link switches to another engine.
type link struct {
	*client.Client
	c *commands

	mu     sync.Mutex
	engine Engine
}

// connect starts or finds an engine and connects to it.
func (c *commands) connect(ctx context.Context) (*link, error) {
	s, err := c.start()
	if err != nil {
		return nil, err
	}
	warnings := c.warnings()
	e, err := c.launch(ctx, s)
	if err != nil {
		return nil, err
	}
	if _, ok := e.(*away); !ok { // they are about the gateway of this machine
		for _, w := range warnings {
			c.problem(config.Problem{Message: w})
		}
	}
	l := &link{c: c, engine: e}
	o := c.options(l.redial)
	o.Delay = retryDelay
	if l.Client, err = c.open(ctx, e, o); err != nil {
		_ = stop(ctx, l.engine) // err is more useful
		return nil, err
	}
	return l, nil
}

// warnings returns what people should know about the configuration that an engine starts
// with.
func (c *commands) warnings() []string {
	if c.loaded == nil {
		return nil
	}
	if err := c.loaded.Broken(); err != nil {
		return []string{"the last good configuration is in use: " + err.Error()}
	}
	if before := c.loaded.Before(); before != nil {
		if keys := before.Loosened(c.loaded); len(keys) > 0 {
			return []string{"the configuration allows more than before: " + strings.Join(keys, ", ")}
		}
	}
	return nil
}

// launch starts or finds an engine.
func (c *commands) launch(ctx context.Context, s Start) (Engine, error) {
	r, err := c.remote(s)
	switch {
	case err != nil:
		return nil, err
	case r != nil:
		return c.reach(s, r)
	}
	return c.app.Start(ctx, s)
}

// open connects to an engine.
func (c *commands) open(ctx context.Context, e Engine, o client.Options) (*client.Client, error) {
	if a, ok := e.(*away); ok {
		return a.connect(ctx, o)
	}
	cl, err := client.Dial(ctx, o)
	return cl, c.explainTimeout(ctx, err)
}

// redial opens a connection to the engine. If the engine is gone, it finds
// another one or starts one in this process. It holds the lock while an engine starts, so that
// two attempts of the client do not start two.
func (l *link) redial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn, err := l.engine.Dial(ctx)
	if err == nil {
		return conn, nil
	}
	detach(ctx, l.engine)
	s, serr := l.c.start()
	if serr != nil {
		return nil, serr
	}
	next, err := l.c.launch(ctx, s)
	if err != nil {
		return nil, err
	}
	l.engine = next
	return next.Dial(ctx)
}

// retryDelay returns the delay before the next connection attempt. It is short
// because the engine is on this machine.
func retryDelay(attempt int, _ error) time.Duration {
	return min(time.Duration(attempt-1)*500*time.Millisecond, 5*time.Second)
}

// options returns the client options of a command.
func (c *commands) options(dial func(context.Context) (net.Conn, error)) client.Options {
	return client.Options{
		Dial: dial, Name: "chela", Version: c.app.Version, Mode: wire.ModeCLI, Caps: []string{wire.CapToolEvents},
	}
}

// dial connects to a running engine for a single command.
func (c *commands) dial(ctx context.Context, e Engine) (*client.Client, error) {
	o := c.options(e.Dial)
	o.Once = true
	if _, ok := e.(*away); ok {
		return c.open(ctx, e, o)
	}
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	cl, err := client.Dial(limited, o)
	return cl, c.explainTimeout(ctx, err)
}

// explainTimeout replaces a timeout error of a local engine by an error with a
// hint.
func (c *commands) explainTimeout(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return c.suggest(errors.New("another process owns the state directory and does not respond"), "gateway run --force")
	}
	return err
}

// close disconnects and stops the engine if it is in this process.
func (l *link) close(ctx context.Context) error {
	l.Client.Close()
	return stop(ctx, l.engine) // no lock: only the closed client changed it
}

// detach disconnects without waiting for runs in progress.
func (l *link) detach(ctx context.Context) {
	l.Client.Close()
	detach(ctx, l.engine)
}

// detach stops an engine without waiting for runs in progress.
func detach(ctx context.Context, e Engine) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachTimeout)
	defer cancel()
	e.Close(ctx)
}

// stop stops an engine.
func stop(ctx context.Context, e Engine) error { return withStopTimeout(ctx, e.Close) }

// withStopTimeout calls f, which stops an engine, and returns an error if f
// does not return in time.
func withStopTimeout(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("stop: %w", err)
		}
		return nil
	case <-time.After(stopTimeout + detachTimeout):
		return errors.New("stop: timed out; unfinished work resumes at the next start")
	}
}

// attached reports whether the engine is in another process.
func (l *link) attached() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, own := l.engine.(Gateway) // only the engine of this process can have a port
	return !own
}

// away reports whether the engine is on another machine.
func (l *link) away() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.engine.(*away)
	return ok
}

// remindOfJobs says that scheduled jobs run only while the gateway runs, if the engine of
// the link is in this process and ends with it, and a job is planned.
func (l *link) remindOfJobs(ctx context.Context) {
	var st wire.CronStatus
	if l.attached() || l.Call(ctx, wire.MethodCronStatus, wire.None{}, &st) != nil || st.NextWakeAt == nil {
		return
	}
	fmt.Fprintln(l.c.stderr, "Scheduled jobs run only while the gateway runs: "+l.c.commandLine("gateway run"))
}

// remindOfCommands says which background commands of a session end now, if the engine of the
// link is in this process and ends with it.
func (l *link) remindOfCommands(ctx context.Context, key string) {
	var page wire.TasksPage
	if l.attached() ||
		l.Call(ctx, wire.MethodTasksList, wire.TasksList{SessionKey: key, Status: wire.Strings{wire.TaskRunning}},
			&page) != nil {
		return
	}
	said := false
	for _, t := range page.Tasks {
		if t.Kind == string(task.Command) {
			fmt.Fprintln(l.c.stderr, "Ended in the background: "+ansi.Line(humanize.Truncate(t.Title, 120)))
			said = true
		}
	}
	if said {
		fmt.Fprintln(l.c.stderr, "Background commands run only as long as the gateway: "+l.c.commandLine("gateway run"))
	}
}

// withLink connects, calls f and disconnects.
func (c *commands) withLink(ctx context.Context, f func(*link) error) (err error) {
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

// call calls one method of the gateway and stores its result.
func (c *commands) call(ctx context.Context, method string, params, result any) error {
	return c.withLink(ctx, func(l *link) error { return l.Call(ctx, method, params, result) })
}

// query calls one method of the gateway and prints its result with text, or as
// JSON.
func query[R any](ctx context.Context, c *commands, method string, params any, text func(R)) error {
	return c.withLink(ctx, func(l *link) error { return queryOn(ctx, l, method, params, text) })
}

// queryOn is [query] on a connection.
func queryOn[R any](ctx context.Context, l *link, method string, params any, text func(R)) error {
	return callOn(ctx, l, method, params, func(r R) error { return l.c.print(r, func() { text(r) }) })
}

// callOn calls a method of the gateway, and f with its result.
func callOn[R any](ctx context.Context, l *link, method string, params any, f func(R) error) error {
	var r R
	if err := l.Call(ctx, method, params, &r); err != nil {
		return err
	}
	return f(r)
}
