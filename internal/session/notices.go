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

// Add queues a line.
func (n *Notices) Add(key chela.SessionKey, line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := append(n.lines[key], line)
	n.lines[key] = lines[max(0, len(lines)-maxNotices):]
}

// Drain returns the lines of a session, oldest first, and forgets them.
func (n *Notices) Drain(key chela.SessionKey) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines[key]
	delete(n.lines, key)
	return lines
}
