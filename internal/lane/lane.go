// Package lane bounds how much runs at once. A lane is first in, first out,
// with a cap; beside it, work with the same key never overlaps.
package lane

import (
	"context"
	"sync"
	"time"
)

// SlowAfter is the wait from which on [Lanes.Slow] is told.
const SlowAfter = 2 * time.Second

// Lanes is a set of lanes. The zero value is ready; a lane that was not Set
// runs one at a time. It is safe for concurrent use.
type Lanes struct {
	// Slow is told of work that begins after it waited more than SlowAfter;
	// nil: nobody is. It is set before the first Do.
	Slow func(lane, key string, waited time.Duration)

	mu    sync.Mutex
	lanes map[string]*gate
	keys  map[string]*gate // width 1; only those in use
}

// gate lets width through at a time.
type gate struct {
	width, used int
	wait        []chan struct{} // closed when it is one's turn
}

// Set changes how many of a lane run at once (< 1: one). Lowering it stops
// nothing that runs.
func (l *Lanes) Set(lane string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.laneLocked(lane)
	g.width = max(n, 1)
	g.grant()
}

// Do runs f when nothing with the same key runs and the lane has room, in this
// order; an empty key overlaps with everything. Who waits for its key takes no
// room in the lane. It returns f's error, or ctx's when that ended first.
func (l *Lanes) Do(ctx context.Context, lane, key string, f func(context.Context) error) error {
	begun := time.Now()
	if key != "" {
		if err := l.enter(ctx, l.keyLocked, key); err != nil {
			return err
		}
		defer l.leaveKey(key)
	}
	if err := l.enter(ctx, l.laneLocked, lane); err != nil {
		return err
	}
	defer l.leaveLane(lane)
	if waited := time.Since(begun); waited > SlowAfter && l.Slow != nil {
		l.Slow(lane, key, waited)
	}
	return f(ctx)
}

// Try takes a place in the lane, for work with the key, if both are free and
// nobody waits for them. It is given back with leave; nil: there was none.
func (l *Lanes) Try(lane, key string) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.laneLocked(lane)
	if g.used >= g.width || len(g.wait) > 0 || key != "" && l.keys[key] != nil {
		return nil
	}
	g.used++
	if key != "" {
		l.keyLocked(key).used++
	}
	return func() {
		l.leaveLane(lane)
		if key != "" {
			l.leaveKey(key)
		}
	}
}

// laneLocked returns the lane's gate.
func (l *Lanes) laneLocked(name string) *gate {
	if l.lanes == nil {
		l.lanes = map[string]*gate{}
	}
	g := l.lanes[name]
	if g == nil {
		g = &gate{width: 1}
		l.lanes[name] = g
	}
	return g
}

// keyLocked returns the key's gate.
func (l *Lanes) keyLocked(name string) *gate {
	if l.keys == nil {
		l.keys = map[string]*gate{}
	}
	g := l.keys[name]
	if g == nil {
		g = &gate{width: 1}
		l.keys[name] = g
	}
	return g
}

// enter waits for its turn at the gate.
func (l *Lanes) enter(ctx context.Context, find func(string) *gate, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	g := find(name)
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
	case <-turn: // both at once: it is given on
		g.leave()
	default:
		g.quit(turn)
	}
	l.tidyLocked(name, g)
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
	l.tidyLocked(name, g)
}

// tidyLocked forgets a key that nobody uses.
func (l *Lanes) tidyLocked(name string, g *gate) {
	if l.keys[name] == g && g.used == 0 && len(g.wait) == 0 {
		delete(l.keys, name)
	}
}

// grant lets through who waits, as far as there is room.
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

// quit takes a waiter off.
func (g *gate) quit(turn chan struct{}) {
	for i, c := range g.wait {
		if c == turn {
			g.wait = append(g.wait[:i:i], g.wait[i+1:]...)
			return
		}
	}
}
