package hook

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// maxPending is the number of events that may wait for an observer. Further events
// are dropped for it.
const maxPending = 256

// Observing is a point whose hooks learn what happened. Nobody waits for them.
type Observing[E, R any] struct {
	info
	// reply takes the answers of hooks; nil: they have no effect.
	reply     atomic.Pointer[func(context.Context, E, R)]
	observers atomic.Pointer[[]*observer[E, R]]
	ready     <-chan struct{} // closed when the hooks may run; nil: they may
}

// Any reports whether the point has a hook.
func (o *Observing[E, R]) Any() bool { return o.observers.Load() != nil }

// Add adds a hook.
func (o *Observing[E, R]) Add(h Hook[E, R]) {
	ctx, cancel := context.WithCancelCause(context.Background())
	l := &observer[E, R]{Hook: h, point: o, ctx: ctx, cancel: cancel}
	l.Func = func(ctx context.Context, e E) (R, error) {
		l.enter()
		defer l.leave()
		return h.Func(ctx, e)
	}
	o.set(append(o.list(), l))
}

// Reply sets what is done with the answers of hooks. It is called for the hooks of
// all groups, on their goroutines.
func (o *Observing[E, R]) Reply(f func(context.Context, E, R)) { o.reply.Store(&f) }

func (o *Observing[E, R]) list() []*observer[E, R] {
	if p := o.observers.Load(); p != nil {
		return *p
	}
	return nil
}

func (o *Observing[E, R]) set(list []*observer[E, R]) {
	list = byPriority(list, func(l *observer[E, R]) int { return l.Priority })
	if len(list) == 0 {
		o.observers.Store(nil)
		return
	}
	o.observers.Store(&list)
}

// Notify passes an event to the hooks. It does not wait for them.
func (o *Observing[E, R]) Notify(ctx context.Context, e E) {
	if list := o.observers.Load(); list != nil {
		o.notify(ctx, *list, e)
	}
}

func (o *Observing[E, R]) notify(ctx context.Context, list []*observer[E, R], e E) {
	ctx, deep := deeper(context.WithoutCancel(ctx))
	if deep {
		o.log.Warn("hooks caused each other too often; they are not called", "point", o.name, "depth", MaxDepth)
		return
	}
	for _, l := range list {
		l.notify(ctx, e, o)
	}
}

// Wait returns when the hooks have processed all events, or when ctx ends.
func (o *Observing[E, R]) Wait(ctx context.Context) {
	for _, l := range o.list() {
		l.wait(ctx)
	}
}

// observer is a hook with its pending events. It has a goroutine only while events
// are pending.
type observer[E, R any] struct {
	Hook[E, R]
	point  *Observing[E, R] // of the group that added it
	ctx    context.Context  // ends when the group is replaced
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	pending []func()
	idle    chan struct{} // closed when no event is pending any more; nil: none is

	calls   sync.Mutex    // guards the fields below; may be locked while mu is held
	running int           // calls of Func that have not returned, also those that exceeded their time limit
	free    chan struct{} // closed when there is none any more; nil: there is none
}

func (l *observer[E, R]) enter() {
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.running++; l.running == 1 {
		l.free = make(chan struct{})
	}
}

func (l *observer[E, R]) leave() {
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.running--; l.running == 0 {
		close(l.free)
		l.free = nil
	}
}

// drain waits until no call runs any more, or until ctx ends.
func (l *observer[E, R]) drain(ctx context.Context) {
	l.wait(ctx)
	l.calls.Lock()
	free := l.free
	l.calls.Unlock()
	if free == nil {
		return
	}
	select {
	case <-free:
	case <-ctx.Done():
	}
}

// notify passes an event to the hook. at is the point in force.
func (l *observer[E, R]) notify(ctx context.Context, e E, at *Observing[E, R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) >= maxPending {
		at.log.Warn("hook is too slow; an event was dropped", "point", at.name, "hook", l.Name)
		return
	}
	run := func(ctx context.Context) {
		answer, err := l.ask(ctx, e, at.limit)
		if err != nil {
			at.log.Warn("hook failed", "point", at.name, "hook", l.Name, "err", err)
		} else if f := at.reply.Load(); f != nil {
			(*f)(ctx, e, answer)
		}
	}
	if l.Quick {
		run(ctx)
		return
	}
	l.pending = append(l.pending, func() {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })()
		if ctx.Err() == nil && l.ctx.Err() == nil {
			run(ctx)
		}
	})
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.serve()
	}
}

// serve runs the pending events.
func (l *observer[E, R]) serve() {
	if l.point.ready != nil {
		<-l.point.ready
	}
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

// wait returns when no event is pending, or when ctx ends.
func (l *observer[E, R]) wait(ctx context.Context) {
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// byPriority returns the hooks sorted by descending priority, stable.
func byPriority[T any](list []T, priority func(T) int) []T {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(priority(b), priority(a)) })
	return list
}

// discard is a log for points that got none.
func discard(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
