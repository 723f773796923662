package mcpserver

import (
	"context"
	"sync"
	"time"
)

// maxEvents is how many events are kept.
const maxEvents = 1000

// Event is something that happened since the server was started.
type Event struct {
	Cursor     int64       `json:"cursor"`
	Type       string      `json:"type"` // message, exec_approval_requested, exec_approval_resolved, gap
	SessionKey string      `json:"sessionKey,omitempty"`
	Message    *Message    `json:"message,omitempty"`
	Permission *Permission `json:"permission,omitempty"`
	Note       string      `json:"note,omitempty"`
}

// events is the queue of the last events. It is safe for concurrent use.
type events struct {
	mu    sync.Mutex
	list  []Event
	last  int64         // cursor of the newest event
	added chan struct{} // closed at the next event
}

func newEvents() *events { return &events{added: make(chan struct{})} }

// add appends an event.
func (q *events) add(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last++
	e.Cursor = q.last
	if len(q.list) == maxEvents {
		q.list = append(q.list[:0], q.list[1:]...)
	}
	q.list = append(q.list, e)
	close(q.added)
	q.added = make(chan struct{})
}

// page is the events after a cursor.
type page struct {
	events []Event
	next   int64           // the cursor after them
	missed int64           // how many were dropped before them
	more   <-chan struct{} // closed when there may be further ones
}

// after returns at most n events after a cursor, of a conversation unless it is "".
func (q *events) after(cursor int64, session string, n int) page {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := page{next: max(cursor, 0), more: q.added}
	if oldest := q.last - int64(len(q.list)); p.next < oldest {
		p.missed, p.next = oldest-p.next, oldest
	}
	if p.next > q.last { // of another start of the server
		p.missed, p.next = p.next-q.last, q.last
	}
	for _, e := range q.list {
		if e.Cursor <= p.next || len(p.events) == n {
			continue
		}
		p.next = e.Cursor
		if session == "" || e.SessionKey == session || e.Type == "gap" {
			p.events = append(p.events, e)
		}
	}
	return p
}

// wait is after for one event, which it waits for. No event: there was none in time.
func (q *events) wait(ctx context.Context, cursor int64, session string, limit time.Duration) page {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		p := q.after(cursor, session, 1)
		if len(p.events) > 0 || p.missed > 0 {
			return p
		}
		select {
		case <-p.more:
		case <-ctx.Done():
			return p
		}
	}
}
