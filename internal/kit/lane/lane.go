// Package lane limits how much work runs at once. A lane is a FIFO queue with a
// limit on concurrency. Besides, work with the same key never overlaps.
package lane

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// SlowAfter is the wait after which [Lanes.Slow] is called.
const SlowAfter = 2 * time.Second

// Lanes is a set of lanes. The zero value is ready to use; the limit of a lane is
// 1 unless it is set. Lanes is safe for concurrent use.
type Lanes struct {
	// Slow is called when work starts after it waited longer than SlowAfter; it
	// may be nil. It is set before the first Do.
	Slow func(lane, key string, waited time.Duration)

	mu    sync.Mutex
	lanes map[string]*gate
	keys  map[string]*gate // of width 1; only those in use
}

// gate is a semaphore with a FIFO queue.
type gate struct {
	width, used int
	wait        []chan struct{} // closed when the waiter may enter
}

// Set sets the limit of a lane; values below 1 mean 1. A lower limit does not stop
// running work.
func (l *Lanes) Set(lane string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := gateOf(&l.lanes, lane)
	g.width = max(n, 1)
	g.grant()
}

// Do calls f when no work with the same key runs and the lane has room, checked in
// this order. Work that waits for its key does not occupy the lane. Work with an
// empty key may overlap with any other. Do returns the error of f, or that of ctx
// if it ends first.
func (l *Lanes) Do(ctx context.Context, lane, key string, f func(context.Context) error) error {
	begun := time.Now()
	if key != "" {
		if err := l.enter(ctx, &l.keys, key); err != nil {
			return err
		}
		defer l.leaveKey(key)
	}
	if err := l.enter(ctx, &l.lanes, lane); err != nil {
		return err
	}
	defer l.leaveLane(lane)
	if waited := time.Since(begun); waited > SlowAfter && l.Slow != nil {
		l.Slow(lane, key, waited)
	}
	return f(ctx)
}

// Try enters the lane with the key if both are free and nothing waits for them.
// The caller must call leave. Try returns nil if it did not enter.
func (l *Lanes) Try(lane, key string) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := gateOf(&l.lanes, lane)
	if g.used >= g.width || len(g.wait) > 0 || key != "" && l.keys[key] != nil {
		return nil
	}
	g.used++
	if key != "" {
		gateOf(&l.keys, key).used++
	}
	return func() {
		l.leaveLane(lane)
		if key != "" {
			l.leaveKey(key)
		}
	}
}

// gateOf returns the gate with the name, and creates it if there is none.
func gateOf(gates *map[string]*gate, name string) *gate {
	if *gates == nil {
		*gates = map[string]*gate{}
	}
	g := (*gates)[name]
	if g == nil {
		g = &gate{width: 1}
		(*gates)[name] = g
	}
	return g
}

// enter waits until the gate with the name lets the caller in.
func (l *Lanes) enter(ctx context.Context, gates *map[string]*gate, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	g := gateOf(gates, name)
	turn := make(chan struct{})
	g.wait = append(g.wait, turn)
	g.grant()
	l.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-turn: // entered at the same time: let the next one in
		g.leave()
	default:
		g.wait = slices.DeleteFunc(g.wait, func(c chan struct{}) bool { return c == turn })
	}
	l.removeUnusedLocked(name, g)
	return ctx.Err()
}

func (l *Lanes) leaveLane(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lanes[name].leave()
}

func (l *Lanes) leaveKey(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.keys[name]
	g.leave()
	l.removeUnusedLocked(name, g)
}

// removeUnusedLocked removes the gate of a key that is not in use.
func (l *Lanes) removeUnusedLocked(name string, g *gate) {
	if l.keys[name] == g && g.used == 0 && len(g.wait) == 0 {
		delete(l.keys, name)
	}
}

// grant lets waiters in as long as there is room.
func (g *gate) grant() {
	for g.used < g.width && len(g.wait) > 0 {
		g.used++
		close(g.wait[0])
		g.wait = g.wait[1:]
	}
}

func (g *gate) leave() {
	g.used--
	g.grant()
}

// State is the state of a lane.
type State struct {
	Lane                  string
	Width, Active, Queued int
}

// Keys is the sum of the work that has a key.
type Keys struct {
	Keys   int // in use
	Active int
	Queued int // waits for other work with its key
	Behind int // keys with waiting work
}

// States returns the lanes that have a limit or were used, sorted by name, and the sum
// of the keys.
func (l *Lanes) States() ([]State, Keys) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []State
	for _, name := range slices.Sorted(maps.Keys(l.lanes)) {
		g := l.lanes[name]
		out = append(out, State{name, g.width, g.used, len(g.wait)})
	}
	k := Keys{Keys: len(l.keys)}
	for _, g := range l.keys {
		k.Active += g.used
		k.Queued += len(g.wait)
		if len(g.wait) > 0 {
			k.Behind++
		}
	}
	return out, k
}
