package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Chain is the hooks of a door. It is safe for concurrent use; the zero Chain
// has none.
type Chain struct {
	log    *slog.Logger
	before []Before
	after  []*listener
}

// New returns the chain of the hooks.
func New(log *slog.Logger, before []Before, after []After) *Chain {
	c := &Chain{log: log, before: slices.Clone(before)}
	slices.SortStableFunc(c.before, func(a, b Before) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, a := range after {
		c.after = append(c.after, &listener{After: a, log: log})
	}
	return c
}

// Ask is a hook that wants a person to allow the call, and why.
type Ask struct {
	Hook   string
	Reason string
}

// Decision is what the hooks said together.
type Decision struct {
	Block  string // why the call is refused; empty: it is not
	By     string // the hook that refused it
	Asks   []Ask
	Args   json.RawMessage // to be used
	Change []string        // the hooks that changed them
}

// Before asks the hooks. valid says what is wrong with the arguments that a
// hook gave: such a hook refuses the call. The error is that of ctx.
func (c *Chain) Before(ctx context.Context, call Call, valid func(json.RawMessage) error) (Decision, error) {
	d := Decision{Args: call.Args}
	for i := range c.before {
		b := &c.before[i]
		call.Args = d.Args
		v, err := b.ask(ctx, call)
		switch {
		case ctx.Err() != nil:
			return d, ctx.Err()
		case errors.Is(err, errTime):
			d.refuse(b, fmt.Sprintf("the hook %s did not answer within %v", b.Name, b.time()))
			return d, nil
		case err != nil:
			c.log.Warn("hook before a tool call failed; going on without it", "hook", b.Name, "tool", call.Tool, "err", err)
			continue
		case v.Block:
			d.refuse(b, cmp.Or(v.Reason, "the hook "+b.Name+" does not allow it"))
			return d, nil
		}
		if v.Ask {
			d.Asks = append(d.Asks, Ask{b.Name, v.Reason})
		}
		if v.Args == nil {
			continue
		}
		if err := valid(v.Args); err != nil {
			d.refuse(b, fmt.Sprintf("the hook %s gave arguments that the tool does not take: %v", b.Name, err))
			return d, nil
		}
		d.Args, d.Change = v.Args, append(d.Change, b.Name)
	}
	return d, nil
}

func (d *Decision) refuse(b *Before, why string) { d.Block, d.By = why, b.Name }

var errTime = errors.New("the hook took too long")

func (b *Before) time() time.Duration { return cmp.Or(b.Timeout, Budget) }

// ask runs the hook within its time.
func (b *Before) ask(ctx context.Context, call Call) (Verdict, error) {
	f := func(ctx context.Context) (Verdict, error) { return b.Func(ctx, call) }
	if b.Quick {
		return safely(ctx, f)
	}
	return within(ctx, b.time(), f)
}

// safely runs f. A panic is an error.
func safely[T any](ctx context.Context, f func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f(ctx)
}

// within runs f safely on a goroutine of its own, at most as long as d. One that
// ignores that its time is over is left behind.
func within[T any](ctx context.Context, d time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errTime)
	defer cancel()
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := safely(ctx, f)
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		if a.err != nil && ctx.Err() != nil {
			return a.v, context.Cause(ctx)
		}
		return a.v, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// After tells the hooks of a call. It does not wait for them.
func (c *Chain) After(ctx context.Context, call Call, d Done) {
	for _, l := range c.after {
		if !l.Failures || d.IsError {
			l.tell(context.WithoutCancel(ctx), call, d)
		}
	}
}

// Wait returns when the hooks have been told everything, or with ctx.
func (c *Chain) Wait(ctx context.Context) {
	for _, l := range c.after {
		l.mu.Lock()
		idle := l.idle
		l.mu.Unlock()
		if idle == nil {
			continue
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return
		}
	}
}

// maxBehind is how many calls a listener may be behind before it misses some.
const maxBehind = 256

// listener is an After, and what it is still to be told. It has a goroutine
// only while that is something.
type listener struct {
	After
	log *slog.Logger

	mu     sync.Mutex
	behind []func()
	idle   chan struct{} // closed when nothing is left; nil: nothing is
}

func (l *listener) tell(ctx context.Context, call Call, d Done) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.behind) >= maxBehind {
		l.log.Warn("hook after a tool call is too slow; it is not told of one", "hook", l.Name, "tool", call.Tool)
		return
	}
	f := func(ctx context.Context) (struct{}, error) { return struct{}{}, l.Func(ctx, call, d) }
	failed := func(err error) {
		if err != nil {
			l.log.Warn("hook after a tool call failed", "hook", l.Name, "tool", call.Tool, "err", err)
		}
	}
	if l.Quick {
		_, err := safely(ctx, f)
		failed(err)
		return
	}
	l.behind = append(l.behind, func() {
		_, err := within(ctx, cmp.Or(l.Timeout, Budget), f)
		failed(err)
	})
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.serve()
	}
}

// serve tells what there is to tell.
func (l *listener) serve() {
	for {
		l.mu.Lock()
		if len(l.behind) == 0 {
			close(l.idle)
			l.idle, l.behind = nil, nil
			l.mu.Unlock()
			return
		}
		next := l.behind[0]
		l.behind = l.behind[1:]
		l.mu.Unlock()
		next()
	}
}
