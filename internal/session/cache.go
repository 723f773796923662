package session

import (
	"container/list"
	"sync"

	"github.com/chela-ai/chela/internal/llm"
)

// Cache keeps the transcripts that were used last, compiled, under one byte
// limit for all of them. It only saves work: a transcript that it does not
// have is loaded again. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	limit int
	size  int
	lru   list.List // of *cached; the one used last is in front
	byID  map[string]*list.Element
}

type cached struct {
	id   string
	mu   sync.Mutex // held while entries are loaded
	t    Transcript
	size int // as it is counted in Cache.size
}

// NewCache returns a Cache that keeps about limit bytes.
func NewCache(limit int) *Cache {
	return &Cache{limit: limit, byID: make(map[string]*list.Element)}
}

// Messages returns the compiled list of the transcript with the id. load
// returns its entries with Seq > after, so that only what the cache does not
// have is read: nothing, when it has the entry newest. Entries follow on one
// another and never change, so that a cache with this one has all before it; 0
// says that the newest is not known.
func (c *Cache) Messages(id string, newest int64, load func(after int64) ([]Entry, error)) ([]*llm.Message, error) {
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
	return it.t.Messages(), nil
}

// Append adds entries that were committed to a transcript, so that the next
// list has these pointers and not copies of them. Entries that do not follow
// directly on what the cache has are left for the next Messages to load.
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

// use returns the transcript with the id, which is now the one used last.
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

// count notes the size of it and drops what was not used for the longest time
// until the rest is within the limit.
func (c *Cache) count(it *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byID[it.id]; e == nil || e.Value != it {
		return // dropped meanwhile
	}
	n := it.t.Size()
	c.size += n - it.size
	it.size = n
	for c.size > c.limit && c.lru.Len() > 0 {
		c.removeLocked(c.lru.Back())
	}
}

func (c *Cache) removeLocked(e *list.Element) {
	it := c.lru.Remove(e).(*cached)
	delete(c.byID, it.id)
	c.size -= it.size
}
