package web

import (
	"container/list"
	"sync"
	"time"
)

// cache holds values for a limited time. When its total size exceeds the
// limit, the oldest values are removed. A nil cache is always empty.
type cache[V any] struct {
	ttl   time.Duration
	bytes int

	mu    sync.Mutex
	used  int
	order *list.List // elements are *entry[V], the newest first
	byKey map[string]*list.Element
}

type entry[V any] struct {
	key   string
	value V
	size  int
	until time.Time
}

func newCache[V any](ttl time.Duration, bytes int) *cache[V] {
	if ttl <= 0 {
		return nil
	}
	return &cache[V]{ttl: ttl, bytes: bytes, order: list.New(), byKey: map[string]*list.Element{}}
}

// get returns the value of a key unless it has expired.
func (c *cache[V]) get(key string) (v V, ok bool) {
	if c == nil {
		return v, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire()
	e := c.byKey[key]
	if e == nil {
		return v, false
	}
	return e.Value.(*entry[V]).value, true
}

// put adds a value of about size bytes.
func (c *cache[V]) put(key string, v V, size int) {
	if c == nil || size > c.bytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire()
	if e := c.byKey[key]; e != nil {
		c.drop(e)
	}
	c.byKey[key] = c.order.PushFront(&entry[V]{key, v, size, time.Now().Add(c.ttl)})
	c.used += size
	for c.used > c.bytes {
		c.drop(c.order.Back())
	}
}

// expire removes expired values. The oldest are at the end of the list.
func (c *cache[V]) expire() {
	now := time.Now()
	for e := c.order.Back(); e != nil && !e.Value.(*entry[V]).until.After(now); e = c.order.Back() {
		c.drop(e)
	}
}

func (c *cache[V]) drop(e *list.Element) {
	k := c.order.Remove(e).(*entry[V])
	delete(c.byKey, k.key)
	c.used -= k.size
}
