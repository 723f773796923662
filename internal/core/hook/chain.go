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

// Chain runs the registered hooks. It is safe for concurrent use. The zero Chain
// has no hooks.
type Chain struct {
	log    *slog.Logger
	before []Before
	after  []*listener
}

// New returns a chain of the hooks.
func New(log *slog.Logger, before []Before, after []After) *Chain {
	c := &Chain{log: log, before: slices.Clone(before)}
	slices.SortStableFunc(c.before, func(a, b Before) int { return cmp.Compare(b.Priority, a.Priority) })
	for _, a := range after {
		c.after = append(c.after, &listener{After: a, log: log})
	}
	return c
}

// Ask is the request of one hook for an approval.
type Ask struct {
	Hook   string
	Reason string
}

// Decision is the combined answer of the Before hooks.
type Decision struct {
	Block  string // why the call is blocked; empty: it is not
	By     string // the hook that blocked it
	Asks   []Ask
	Args   json.RawMessage // the arguments to use
	Change []string        // the hooks that changed the arguments
}

// Before calls the Before hooks. valid checks arguments that a hook returned; if
// they are invalid, the call is blocked. The error is that of ctx.
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
			c.log.Warn("hook before a tool call failed; skipped", "hook", b.Name, "tool", call.Tool, "err", err)
			continue
		case v.Block:
			d.refuse(b, cmp.Or(v.Reason, "the hook "+b.Name+" blocked it"))
			return d, nil
		}
		if v.Ask {
			d.Asks = append(d.Asks, Ask{b.Name, v.Reason})
		}
		if v.Args == nil {
			continue
		}
		if err := valid(v.Args); err != nil {
			d.refuse(b, fmt.Sprintf("the hook %s returned invalid arguments: %v", b.Name, err))
			return d, nil
		}
		d.Args, d.Change = v.Args, append(d.Change, b.Name)
	}
	return d, nil
}

func (d *Decision) refuse(b *Before, why string) { d.Block, d.By = why, b.Name }

var errTime = errors.New("the hook exceeded its time limit")

func (b *Before) time() time.Duration { return cmp.Or(b.Timeout, Budget) }

// ask runs the hook within its time limit.
func (b *Before) ask(ctx context.Context, call Call) (Verdict, error) {
	f := func(ctx context.Context) (Verdict, error) { return b.Func(ctx, call) }
	if b.Quick {
		return safely(ctx, f)
	}
	return within(ctx, b.time(), f)
}

// safely runs f and returns a panic as an error.
func safely[T any](ctx context.Context, f func(context.Context) (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f(ctx)
}

// within runs f safely on its own goroutine for at most d. If f ignores the end of
// its context, the goroutine is abandoned.
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

// After passes a call to the After hooks. It does not wait for them.
func (c *Chain) After(ctx context.Context, call Call, d Done) {
	for _, l := range c.after {
		if !l.Failures || d.IsError {
			l.notify(context.WithoutCancel(ctx), call, d)
		}
	}
}

// Wait returns when the After hooks have processed all calls, or when ctx ends.
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

// maxPending is the number of calls that may wait for a listener. Further calls
// are dropped for it.
const maxPending = 256

// listener is an After hook with its pending calls. It has a goroutine only while
// calls are pending.
type listener struct {
	After
	log *slog.Logger

	mu      sync.Mutex
	pending []func()
	idle    chan struct{} // closed when no call is pending any more; nil: none is
}

func (l *listener) notify(ctx context.Context, call Call, d Done) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) >= maxPending {
		l.log.Warn("hook after a tool call is too slow; a call was dropped", "hook", l.Name, "tool", call.Tool)
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
	l.pending = append(l.pending, func() {
		_, err := within(ctx, cmp.Or(l.Timeout, Budget), f)
		failed(err)
	})
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.serve()
	}
}

// serve runs the pending calls.
func (l *listener) serve() {
	for {
		l.mu.Lock()
		if len(l.pending) == 0 {
			close(l.idle)
			l.idle, l.pending = nil, nil
			l.mu.Unlock()
			return
		}
		next := l.pending[0]
		l.pending = l.pending[1:]
		l.mu.Unlock()
		next()
	}
}
