package session

import (
	"sync"

	"github.com/chela-ai/chela/internal/chela"
)

// maxNotices bounds the lines that wait for a session.
const maxNotices = 20

// Notices are system events: lines of passing news that wait, in memory, for
// the next run of a session. Of more than 20 the oldest are dropped. What is
// owed to somebody never lives here alone. It is safe for concurrent use.
type Notices struct {
	mu    sync.Mutex
	lines map[chela.SessionKey][]string
}

// NewNotices returns an empty Notices.
func NewNotices() *Notices {
	return &Notices{lines: make(map[chela.SessionKey][]string)}
}

// Add queues lines.
func (n *Notices) Add(key chela.SessionKey, lines ...string) {
	if len(lines) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := append(n.lines[key], lines...)
	n.lines[key] = all[max(0, len(all)-maxNotices):]
}

// Drain returns the lines of a session, oldest first, and forgets them.
func (n *Notices) Drain(key chela.SessionKey) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines[key]
	delete(n.lines, key)
	return lines
}
