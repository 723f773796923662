package session

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// Memo keeps sessions as they were read or written last, beside the JSON that
// they are stored as: a turn reads its session four times, and little else in
// it takes as long to decode. What is kept is taken for the same text only, so
// that it does not matter what became of the transaction that it is from. The
// zero value works; it is safe for concurrent use.
type Memo struct {
	mu   sync.Mutex
	kept map[chela.SessionKey]written
}

type written struct {
	text string
	meta Meta
}

// maxMemo bounds the sessions that are kept. When there are more, all are
// forgotten: those in use are soon back.
const maxMemo = 256

// Read returns the session under key that is stored as text.
func (k *Memo) Read(key chela.SessionKey, text string) (Meta, error) {
	k.mu.Lock()
	w, ok := k.kept[key]
	k.mu.Unlock()
	if ok && w.text == text {
		return w.meta, nil
	}
	var m Meta
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return m, err
	}
	k.Keep(m, text)
	return m, nil
}

// Keep keeps the session that is stored as text.
func (k *Memo) Keep(m Meta, text string) {
	// As it would be read: a reading of the monotonic clock is not stored.
	for _, t := range [...]*time.Time{
		&m.Created, &m.Started, &m.Updated, &m.Active, &m.Answered, &m.Pinned, &m.Archived, &m.Read, &m.Unread,
	} {
		*t = t.Round(0)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= maxMemo {
		k.kept = make(map[chela.SessionKey]written)
	}
	k.kept[m.Key] = written{text, m}
}
