package session

import (
	"container/list"
	"sync"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Cache is an LRU cache of compiled transcripts with a limit on their total size in
// bytes. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	limit int
	size  int
	lru   list.List // of *cached, most recently used first
	byID  map[string]*list.Element
}

type cached struct {
	id   string
	mu   sync.Mutex // held while entries are loaded
	t    Transcript
	size int // as included in Cache.size
}

// NewCache returns a Cache that holds about limit bytes.
func NewCache(limit int) *Cache {
	return &Cache{limit: limit, byID: make(map[string]*list.Element)}
}

// Messages returns the compiled message list of the transcript with the id. newest is
// the Seq of its last entry, or 0 if unknown. load returns the entries with Seq >
// after; it is called only for entries that are not cached. A cached transcript
// always includes all entries up to its last one.
func (c *Cache) Messages(id string, newest int64, load func(after int64) ([]Entry, error)) ([]*llm.Message, error) {
	it, err := c.current(id, newest, load)
	if err != nil {
		return nil, err
	}
	return it.t.Messages(), nil
}

// Sent is like Messages, but returns the messages with their entries.
func (c *Cache) Sent(id string, newest int64, load func(after int64) ([]Entry, error)) ([]Sent, error) {
	it, err := c.current(id, newest, load)
	if err != nil {
		return nil, err
	}
	return it.t.Sent(), nil
}

// current returns the transcript with the id after it has loaded the entries that are
// not cached.
func (c *Cache) current(id string, newest int64, load func(after int64) ([]Entry, error)) (*cached, error) {
	it := c.use(id)
	it.mu.Lock()
	defer it.mu.Unlock()
	if last := it.t.Last(); newest == 0 || last < newest {
		entries, err := load(last)
		if err != nil {
			return nil, err
		}
		it.t.Append(entries...)
	}
	c.count(it)
	return it, nil
}

// Append adds committed entries to a cached transcript, so that the next list contains
// the same message pointers. It skips entries that do not directly follow the cached
// ones; the next call of Messages loads them.
func (c *Cache) Append(id string, entries ...*Entry) {
	c.mu.Lock()
	e := c.byID[id]
	c.mu.Unlock()
	if e == nil {
		return
	}
	it := e.Value.(*cached)
	it.mu.Lock()
	defer it.mu.Unlock()
	for _, e := range entries {
		if e.Seq == it.t.Last()+1 {
			it.t.Append(*e)
		}
	}
	c.count(it)
}

// use returns the transcript with the id and marks it as the most recently used.
func (c *Cache) use(id string) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[id]; e != nil {
		c.lru.MoveToFront(e)
		return e.Value.(*cached)
	}
	it := &cached{id: id}
	c.byID[id] = c.lru.PushFront(it)
	return it
}

// count updates the size of a transcript and evicts the least recently used ones
// until the cache is within its limit.
func (c *Cache) count(it *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[it.id]; e == nil || e.Value != it {
		return // evicted in the meantime
	}
	n := it.t.Size()
	c.size += n - it.size
	it.size = n
	for c.size > c.limit && c.lru.Len() > 0 {
		c.removeLocked(c.lru.Back())
	}
}

// Trim forgets the least recently used transcripts until about limit bytes are left. It
// keeps the last one used, whatever its size.
func (c *Cache) Trim(limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.size > limit && c.lru.Len() > 1 {
		c.removeLocked(c.lru.Back())
	}
}

// Clear forgets all transcripts. Lists that were returned stay valid.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.lru.Len() > 0 {
		c.removeLocked(c.lru.Back())
	}
}

func (c *Cache) removeLocked(e *list.Element) {
	it := c.lru.Remove(e).(*cached)
	delete(c.byID, it.id)
	c.size -= it.size
}
