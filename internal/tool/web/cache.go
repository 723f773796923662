package web

import (
	"container/list"
	"sync"
	"time"
)

// cache keeps what was fetched for a while, the newest within a number of
// bytes. A nil cache keeps nothing.
type cache[V any] struct {
	ttl   time.Duration
	bytes int

	mu    sync.Mutex
	used  int
	order *list.List // of *kept[V], the newest first
	byKey map[string]*list.Element
}

type kept[V any] struct {
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

// get returns the value of a key that is not too old.
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
	return e.Value.(*kept[V]).value, true
}

// put keeps a value of about that many bytes.
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
	c.byKey[key] = c.order.PushFront(&kept[V]{key, v, size, time.Now().Add(c.ttl)})
	c.used += size
	for c.used > c.bytes {
		c.drop(c.order.Back())
	}
}

// expire drops what is too old: the oldest are at the end.
func (c *cache[V]) expire() {
	now := time.Now()
	for e := c.order.Back(); e != nil && !e.Value.(*kept[V]).until.After(now); e = c.order.Back() {
		c.drop(e)
	}
}

func (c *cache[V]) drop(e *list.Element) {
	k := c.order.Remove(e).(*kept[V])
	delete(c.byKey, k.key)
	c.used -= k.size
}
