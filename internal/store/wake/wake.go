// Package wake hands the wakes of a store's commits to those who listen: what
// any implementation of store.Store needs for its Wakes.
package wake

import (
	"context"
	"sync"

	"github.com/chela-ai/chela/internal/store"
)

// Hub hands wakes to those who listen. The zero value is ready; it is safe for
// concurrent use.
type Hub struct {
	mu        sync.Mutex
	listeners map[*listener]bool
	closed    bool
}

// listener is one reader of wakes. What it has not taken yet stands once per
// topic, so that a slow one costs little and loses no last wake.
type listener struct {
	kind store.TopicKind
	out  chan store.Topic

	mu      sync.Mutex
	pending []store.Topic
	bell    chan struct{} // holds a token when something is pending
	done    chan struct{} // closed with the hub
}

// Listen returns a channel of the wakes of a kind. It is closed when ctx ends or
// the hub is closed.
func (h *Hub) Listen(ctx context.Context, kind store.TopicKind) <-chan store.Topic {
	out := make(chan store.Topic)
	l := &listener{kind: kind, out: out, bell: make(chan struct{}, 1), done: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(out)
		return out
	}
	if h.listeners == nil {
		h.listeners = make(map[*listener]bool)
	}
	h.listeners[l] = true
	go func() {
		defer close(out)
		defer h.leave(l)
		l.run(ctx)
	}()
	return out
}

func (h *Hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

// Wake tells every listener of the kind. It does not wait for them.
func (h *Hub) Wake(t store.Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if l.kind == t.Kind {
			l.add(t)
		}
	}
}

// Close ends all listening.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for l := range h.listeners {
		close(l.done)
	}
	h.listeners = nil
}

// add hands t to the reader when it waits for one, which is the rule, and else
// keeps it for later. The hub is locked: the channel is not closed meanwhile.
func (l *listener) add(t store.Topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.out <- t:
		return
	default:
	}
	for _, p := range l.pending {
		if p == t {
			return
		}
	}
	l.pending = append(l.pending, t)
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// run sends what is pending, oldest first.
func (l *listener) run(ctx context.Context) {
	for {
		select {
		case <-l.bell:
		case <-l.done:
			return
		case <-ctx.Done():
			return
		}
		l.mu.Lock()
		topics := l.pending
		l.pending = nil
		l.mu.Unlock()
		for _, t := range topics {
			select {
			case l.out <- t:
			case <-l.done:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}
