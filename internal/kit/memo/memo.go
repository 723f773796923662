// Package memo remembers recent values.
package memo

import "sync"

// Map remembers the Most values whose keys were put last, and forgets the oldest ones. It is
// safe for concurrent use.
type Map[K comparable, V any] struct {
	Most int // at least 1

	mu    sync.Mutex
	m     map[K]V
	order []K
}

// Get returns the value of a key.
func (m *Map[K, V]) Get(k K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.m[k]
	return v, ok
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(k K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[K]V{}
	}
	if _, known := m.m[k]; !known {
		if len(m.order) >= m.Most {
			delete(m.m, m.order[0])
			m.order = m.order[1:]
		}
		m.order = append(m.order, k)
	}
	m.m[k] = v
}
