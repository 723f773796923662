package wiretest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"sync"
	"time"
)

// Rules of the prompt cache of the Messages API.
const (
	cacheLookback = 20   // blocks before a marker where a stored prefix is looked for
	cacheMinimum  = 1024 // tokens of the shortest prefix that is stored
)

// PromptCache plays the prompt cache of the Messages API. The prefix of a request is its
// tools, its system prompt and its messages, block by block. Each marker stores the
// prefix that ends with its block. A request reads the longest stored prefix that ends
// at a marker or at most 20 blocks before one, which renews it. The zero PromptCache is
// empty. It is safe for concurrent use.
//
// Sources: https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
type PromptCache struct {
	mu       sync.Mutex
	prefixes map[[sha256.Size]byte]*cachedPrefix
}

type cachedPrefix struct {
	ttl     time.Duration
	expires time.Time
}

// CacheUse is how a request used the cache, in tokens of four bytes.
type CacheUse struct{ Input, Read, Write int64 }

// prefixBlock is one block of a request.
type prefixBlock struct {
	sum    [sha256.Size]byte // of the prefix that ends with the block
	tokens int64             // of that prefix
	marker *cacheControl
}

// Use returns how a valid request uses the cache at the time now, and stores what the
// request marks.
func (c *PromptCache) Use(body []byte, now time.Time) CacheUse {
	blocks := prefixBlocks(body)
	if len(blocks) == 0 {
		return CacheUse{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prefixes == nil {
		c.prefixes = make(map[[sha256.Size]byte]*cachedPrefix)
	}
	var read, written int64
	for i := range blocks {
		if blocks[i].marker == nil {
			continue
		}
		for j := i; j >= 0 && j > i-cacheLookback; j-- {
			p := c.prefixes[blocks[j].sum]
			if p == nil || now.After(p.expires) {
				continue
			}
			p.expires = now.Add(p.ttl)
			read = max(read, blocks[j].tokens)
			break
		}
	}
	for i := range blocks {
		m := blocks[i].marker
		if m == nil || blocks[i].tokens < cacheMinimum {
			continue
		}
		ttl := 5 * time.Minute
		if m.TTL == "1h" {
			ttl = time.Hour
		}
		written = max(written, blocks[i].tokens)
		c.prefixes[blocks[i].sum] = &cachedPrefix{ttl, now.Add(ttl)}
	}
	total := blocks[len(blocks)-1].tokens
	written = max(0, written-read)
	return CacheUse{Input: total - read - written, Read: read, Write: written}
}

// prefixBlocks returns the blocks of a request, in the order of the prefix.
func prefixBlocks(body []byte) []prefixBlock {
	var r struct {
		Model      string            `json:"model"`
		Thinking   json.RawMessage   `json:"thinking"`
		ToolChoice json.RawMessage   `json:"tool_choice"`
		Tools      []json.RawMessage `json:"tools"`
		System     []json.RawMessage `json:"system"`
		Messages   []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	h := sha256.New()
	size := 0
	var blocks []prefixBlock
	add := func(kind string, raw json.RawMessage) {
		blocks = append(blocks, newPrefixBlock(h, kind, raw, &size))
	}
	h.Write([]byte(r.Model))
	for _, t := range r.Tools {
		add("tool", t)
	}
	for _, s := range r.System {
		add("system", s)
	}
	h.Write(r.Thinking) // a change of these makes the messages new
	h.Write(r.ToolChoice)
	for _, m := range r.Messages {
		for _, b := range m.Content {
			add(m.Role, b)
		}
	}
	return blocks
}

// newPrefixBlock adds a block to the hash of the prefix. The marker is not part of it.
func newPrefixBlock(h hash.Hash, kind string, raw json.RawMessage, size *int) prefixBlock {
	var b prefixBlock
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil && fields["cache_control"] != nil {
		_ = json.Unmarshal(fields["cache_control"], &b.marker)
		mark := append([]byte(`,"cache_control":`), fields["cache_control"]...)
		raw = bytes.Replace(raw, mark, nil, 1)
	}
	h.Write([]byte(kind))
	h.Write(raw)
	*size += len(raw)
	h.Sum(b.sum[:0])
	b.tokens = int64(*size / 4)
	return b
}
