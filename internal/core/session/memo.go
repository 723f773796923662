package session

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Memo caches decoded sessions together with their stored JSON, because a turn reads its
// session several times and decoding is slow. A cached session is used only for the same
// JSON, so that a rolled back transaction does no harm. The zero Memo is ready to use. It
// is safe for concurrent use.
type Memo struct {
	mu       sync.Mutex
	sessions map[chela.SessionKey]memoEntry
}

// memoEntry is a decoded session with its JSON.
type memoEntry struct {
	text string
	meta Meta
}

// maxMemo is the maximum number of cached sessions. A full cache is cleared.
const maxMemo = 256

// Read returns the session under key whose stored JSON is text.
func (k *Memo) Read(key chela.SessionKey, text string) (Meta, error) {
	k.mu.Lock()
	w, ok := k.sessions[key]
	k.mu.Unlock()
	if ok && w.text == text {
		return w.meta, nil
	}
	var m Meta
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, err
	}
	k.Store(m, text)
	return m, nil
}

// Store caches the session whose stored JSON is text.
func (k *Memo) Store(m Meta, text string) {
	// Remove the monotonic clock readings, which the stored JSON does not contain.
	for _, t := range [...]*time.Time{
		&m.Created, &m.Started, &m.Updated, &m.Active, &m.Answered, &m.Pinned, &m.Archived, &m.Read, &m.Unread, &m.Flushed,
	} {
		*t = t.Round(0)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sessions == nil || len(k.sessions) >= maxMemo {
		k.sessions = make(map[chela.SessionKey]memoEntry)
	}
	k.sessions[m.Key] = memoEntry{text, m}
}
