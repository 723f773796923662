package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Options describes a channel and its program.
type Options struct {
	Name      string   // of the channel
	Abilities []string // see [Abilities]
	Limits    channel.Limits
	Hints     []string
	Revision  string // see channel.Factory

	Command string // absolute path of the program, or its name in PATH
	Args    []string
	Dir     string            // absolute working directory
	Env     map[string]string // variables, in addition to those that all programs get
	Rights  *sandbox.Rights   // what the program may use; nil: everything
	Check   func() error      // returns why the program must not be started; nil: it may be

	Broker  sandbox.Broker      // starts the program; nil: it cannot be confined here
	Environ []string            // variables of this process
	Redact  func(string) string // removes known secrets from what the program prints; nil: there are none
	Version string              // of Chela
}

// Factory returns the factory of a channel, or what is wrong with its description.
func Factory(o Options) (channel.Factory, error) {
	for _, name := range o.Abilities {
		if !slices.Contains(Abilities(), name) {
			return channel.Factory{}, fmt.Errorf("ability %.50q: want some of %s", name, strings.Join(Abilities(), ", "))
		}
	}
	if o.Command == "" {
		return channel.Factory{}, errors.New("there is no command")
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	return channel.Factory{
		Name: o.Name, Limits: o.Limits, Hints: o.Hints, Revision: o.Revision, Can: &bridge{o: o},
		New: func(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
			settings, err := resolve(env, account, raw)
			if err != nil {
				return nil, err
			}
			return &bridge{o: o, env: env, account: chela.AccountID(account), settings: settings}, nil
		},
	}, nil
}

// Time limits.
const (
	startTime  = 30 * time.Second // for the answer to initialize
	sendTime   = time.Minute      // for a message
	callTime   = 30 * time.Second // for other requests
	signalTime = 10 * time.Second // for typing and reactions
	stopTime   = time.Second      // for the program to end after its input was closed
	grace      = time.Second      // between TERM and KILL
	retryTime  = 2 * time.Second  // until a request is worth a retry that was not sent
)

// bridge is an account.
type bridge struct {
	o        Options
	env      channel.Env
	account  chela.AccountID
	settings json.RawMessage

	mu   sync.Mutex
	conn *conn // nil: the program is not running
}

var (
	_ channel.Channel = (*bridge)(nil)
	_ channel.Varied  = (*bridge)(nil)
)

// Run implements channel.Channel.
func (b *bridge) Run(ctx context.Context, sink channel.Sink) error {
	return channel.Reconnect(ctx, b.env, func(ctx context.Context, up func()) error { return b.connect(ctx, sink, up) })
}

// connect runs the program until it ends or has to be ended.
func (b *bridge) connect(ctx context.Context, sink channel.Sink, up func()) error {
	c, err := b.start(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", b.o.Name, err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer c.stop()
	if err := c.initialize(); err != nil {
		return c.explain(err)
	}
	wg.Go(func() { c.deliver(sink) })
	b.use(c)
	defer b.use(nil)
	up()
	c.restate()
	<-c.ctx.Done()
	return c.explain(context.Cause(c.ctx))
}

// use makes c the connection that requests are sent on.
func (b *bridge) use(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = c
}

// call requests something of the program. See conn.call.
func (b *bridge) call(ctx context.Context, r request) error {
	b.mu.Lock()
	c := b.conn
	b.mu.Unlock()
	if c == nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &channel.Error{Err: fmt.Errorf("%s: the program of the channel is not running", b.o.Name),
			RetryAfter: retryTime}
	}
	return c.call(ctx, r)
}

// start starts the program.
func (b *bridge) start(ctx context.Context) (*conn, error) {
	o := b.o
	if o.Broker == nil {
		return nil, &channel.Error{Permanent: true,
			Err: errors.New(
				"this host cannot confine the program; to run it with all rights of yours, set sandbox of the plug-in to false")}
	}
	if o.Check != nil {
		if err := o.Check(); err != nil {
			return nil, err
		}
	}
	env := sandbox.Environment(o.Environ, o.Env)
	path := o.Command
	if !filepath.IsAbs(path) {
		if path = sandbox.Look(env)(o.Command); path == "" {
			return nil, fmt.Errorf("the program %s is not in PATH", o.Command)
		}
	}
	c := newConn(ctx, b)
	// The end of ctx does not kill the program: stop closes its input first and gives it time.
	processCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	process, err := o.Broker.Start(processCtx, sandbox.Plan{
		Path: path, Argv: append([]string{path}, o.Args...), Dir: o.Dir, Env: env, Rights: o.Rights,
		Stdin: c.in, Stderr: c.log, Grace: grace,
	}, &output{c: c})
	if err != nil {
		end()
		c.cancel(nil)
		return nil, err
	}
	c.end = end
	go func() {
		exit, err := process.Wait()
		c.log.flush()
		c.cancel(errors.New(describe(exit, err)))
		c.in.close()
		close(c.exited)
	}()
	return c, nil
}

// describe says how a program ended.
func describe(exit sandbox.Exit, err error) string {
	switch {
	case exit.Signal != "":
		return "the program was ended by " + exit.Signal
	case exit.Code == 0 && err != nil:
		return "the program ended: " + err.Error()
	}
	return fmt.Sprintf("the program ended with exit status %d", exit.Code)
}
