package table

import (
	"context"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/store"
)

// Hub sends the wakes of commits to the readers of [store.Store.Wakes]. The zero Hub is
// ready to use. It is safe for concurrent use.
type Hub struct {
	mu        sync.Mutex
	listeners map[*listener]bool
	closed    bool
}

// listener is one reader of wakes. Each topic is pending at most once, so that a
// slow reader costs little and does not lose the last wake of a topic.
type listener struct {
	kind store.TopicKind
	out  chan store.Topic

	mu      sync.Mutex
	pending []store.Topic
	signal  chan struct{} // cap 1: something is pending
	done    chan struct{} // closed with the hub
}

// Listen returns a channel with the wakes of a kind. It is closed when ctx ends or
// the hub is closed.
func (h *Hub) Listen(ctx context.Context, kind store.TopicKind) <-chan store.Topic {
	out := make(chan store.Topic)
	l := &listener{kind: kind, out: out, signal: make(chan struct{}, 1), done: make(chan struct{})}
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
		defer h.remove(l)
		l.run(ctx)
	}()
	return out
}

func (h *Hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
}

// Wake sends t to every listener of its kind. It does not wait for them.
func (h *Hub) Wake(t store.Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		if l.kind == t.Kind {
			l.add(t)
		}
	}
}

// Close ends all listeners.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for l := range h.listeners {
		close(l.done)
	}
	h.listeners = nil
}

// add sends t to the reader if it is receiving, which is the usual case, and else
// stores it as pending. The hub is locked, so that out is not closed concurrently.
func (l *listener) add(t store.Topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.out <- t:
		return
	default:
	}
	if slices.Contains(l.pending, t) {
		return
	}
	l.pending = append(l.pending, t)
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// run sends the pending topics, oldest first.
func (l *listener) run(ctx context.Context) {
	for {
		select {
		case <-l.signal:
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
