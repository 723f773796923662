package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Budget is the default time limit of a hook.
const Budget = 15 * time.Second

// MaxDepth is how deep hooks may cause events that call hooks again.
const MaxDepth = 3

// Hook is code that runs at a point whose events have type E. Func is safe for
// concurrent use at a deciding point. At an observing point it is called for one
// event at a time, unless it ignores its time limit and continues to run.
type Hook[E, R any] struct {
	Name     string
	Priority int           // the highest runs first
	Timeout  time.Duration // 0: that of the point
	Quick    bool          // Func returns immediately: it is called directly, without a time limit
	Func     func(context.Context, E) (R, error)
}

// None is the answer of hooks that only observe.
type None struct{}

// Outcome is the combined answer of the hooks at a deciding point.
type Outcome[R any] struct {
	Answer  R
	By      string   // the hook whose answer was final
	Changed []string // the hooks that changed something
}

// effect is what an answer did.
type effect int

const (
	nothing effect = iota
	changed        // later hooks see the change
	final          // later hooks are not called
)

// Deciding is a point at which the caller waits for an answer.
type Deciding[E, R any] struct {
	info
	// fold adds the answer of the hook to the total, and to the event that the next
	// hook gets.
	fold func(e *E, total *R, answer R, by string) effect
	// refuse makes the total a refusal, for hooks whose answer is unknown. nil: they
	// are skipped.
	refuse func(total *R, why string)
	hooks  atomic.Pointer[[]Hook[E, R]]
}

// Any reports whether the point has a hook.
func (d *Deciding[E, R]) Any() bool { return d.hooks.Load() != nil }

// Add adds a hook.
func (d *Deciding[E, R]) Add(h Hook[E, R]) { d.set(append(d.list(), h)) }

func (d *Deciding[E, R]) list() []Hook[E, R] {
	if p := d.hooks.Load(); p != nil {
		return *p
	}
	return nil
}

func (d *Deciding[E, R]) set(list []Hook[E, R]) {
	if list = byPriority(list, func(h Hook[E, R]) int { return h.Priority }); len(list) == 0 {
		d.hooks.Store(nil)
		return
	}
	d.hooks.Store(&list)
}

// Decide calls the hooks. The error is that of ctx.
func (d *Deciding[E, R]) Decide(ctx context.Context, e E) (Outcome[R], error) {
	list := d.hooks.Load()
	if list == nil {
		return Outcome[R]{}, nil
	}
	return d.decide(ctx, *list, e)
}

func (d *Deciding[E, R]) decide(ctx context.Context, list []Hook[E, R], e E) (out Outcome[R], err error) {
	ctx, deep := deeper(ctx)
	if deep {
		d.log.Warn("hooks caused each other too often; they are not called", "point", d.name, "depth", MaxDepth)
		if d.refuse != nil {
			d.refuse(&out.Answer, fmt.Sprintf("hooks caused each other more than %d times", MaxDepth))
			out.By = list[0].Name
		}
		return out, nil
	}
	for i := range list {
		h := &list[i]
		answer, err := h.ask(ctx, e, d.limit)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case errors.Is(err, errTime) && d.refuse != nil:
			d.refuse(&out.Answer, fmt.Sprintf("the hook %s did not answer within %v", h.Name, h.time(d.limit)))
			out.By = h.Name
			d.log.Warn("hook exceeded its time limit; refused", "point", d.name, "hook", h.Name, "limit", h.time(d.limit))
			return out, nil
		case errors.Is(err, ErrUnavailable) && d.refuse != nil:
			d.refuse(&out.Answer, fmt.Sprintf("the hook %s cannot run", h.Name))
			out.By = h.Name
			d.log.Warn("hook cannot run; refused", "point", d.name, "hook", h.Name, "err", err)
			return out, nil
		case err != nil:
			d.log.Warn("hook failed; skipped", "point", d.name, "hook", h.Name, "err", err)
			continue
		}
		switch d.fold(&e, &out.Answer, answer, h.Name) {
		case changed:
			out.Changed = append(out.Changed, h.Name)
		case final:
			out.By = h.Name
			return out, nil
		}
	}
	return out, nil
}

// ErrUnavailable is in the chain of the error of a hook that could not be called at
// all, such as a program that is missing. A policy point then refuses.
var ErrUnavailable = errors.New("the hook cannot run")

var errTime = errors.New("the hook exceeded its time limit")

func (h *Hook[E, R]) time(limit time.Duration) time.Duration {
	return cmp.Or(h.Timeout, limit, Budget)
}

// ask runs the hook within its time limit.
func (h *Hook[E, R]) ask(ctx context.Context, e E, limit time.Duration) (R, error) {
	f := func(ctx context.Context) (R, error) { return h.Func(ctx, e) }
	if h.Quick {
		return safely(ctx, f)
	}
	return within(ctx, h.time(limit), f)
}

// depthKey is the key of the number of hooks that led to a context.
type depthKey struct{}

// Depth returns how many hooks caused what ctx belongs to.
func Depth(ctx context.Context) int {
	n, _ := ctx.Value(depthKey{}).(int)
	return n
}

// WithDepth returns a context of something that so many hooks caused.
func WithDepth(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, depthKey{}, n)
}

// deeper returns the context of a hook that is called because of ctx, and reports
// whether it is too deep.
func deeper(ctx context.Context) (context.Context, bool) {
	n := Depth(ctx) + 1
	return WithDepth(ctx, n), n > MaxDepth
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

// info is what points of both kinds have in common.
type info struct {
	name    string
	limit   time.Duration // of a hook; 0: Budget
	content bool          // its events have the content of conversations
	prompt  bool          // its answers change the system prompt
	log     *slog.Logger
}

// Name returns the name of the point.
func (i *info) Name() string { return i.name }

// Before is a hook before a tool call.
type Before = Hook[Call, Verdict]

// After is a hook after a tool call.
type After = Hook[Done, None]
