package message

import (
	"context"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/action"
)

// remembered is the number of outcomes that a memo keeps.
const remembered = 1000

// memo holds the outcomes of requests with keys, so that a repeated request has its effect
// once. It forgets the oldest ones, and all of them when the process ends.
type memo struct {
	mu    sync.Mutex
	calls map[string]*attempt
	order []string
}

// attempt is a request in progress or its outcome.
type attempt struct {
	ended chan struct{}
	res   action.Result
	err   error
}

// do calls f unless it was called with the key before, and returns its outcome. An f that
// failed is called again.
func (m *memo) do(ctx context.Context, key string, f func() (action.Result, error)) (action.Result, error) {
	m.mu.Lock()
	if c := m.calls[key]; c != nil {
		m.mu.Unlock()
		select {
		case <-c.ended:
			return c.res, c.err
		case <-ctx.Done():
			return action.Result{}, ctx.Err()
		}
	}
	if m.calls == nil {
		m.calls = map[string]*attempt{}
	}
	c := &attempt{ended: make(chan struct{})}
	m.calls[key] = c
	if m.order = append(m.order, key); len(m.order) > remembered {
		delete(m.calls, m.order[0])
		m.order = m.order[1:]
	}
	m.mu.Unlock()
	defer close(c.ended)
	if c.res, c.err = f(); c.err != nil {
		m.mu.Lock()
		if m.calls[key] == c {
			delete(m.calls, key)
			m.order = slices.DeleteFunc(m.order, func(k string) bool { return k == key })
		}
		m.mu.Unlock()
	}
	return c.res, c.err
}
