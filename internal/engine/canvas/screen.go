package canvas

import (
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
)

// maxWaiting is the number of messages that wait for a slow screen. After more it gets
// everything again.
const maxWaiting = 500

// Screen is a page that draws the surfaces of a session. Its methods belong to one goroutine.
type Screen struct {
	h   *Host
	key chela.SessionKey

	// Ready has a value when Next returns something.
	Ready chan struct{}

	// guarded by h.mu
	all     bool // everything is due
	waiting []canvas.Message
}

// Update is what has changed on a screen.
type Update struct {
	Reset    bool              `json:"reset"` // what was there before is gone
	Messages []json.RawMessage `json:"messages"`
}

// Watch returns a Screen of a session, whose first update is everything. The caller calls stop
// at the end. It returns nil if there are too many.
func (h *Host) Watch(key chela.SessionKey) (s *Screen, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers >= maxWatchers {
		return nil, nil
	}
	h.watchers++
	s = &Screen{h: h, key: key, Ready: make(chan struct{}, 1)}
	h.ofLocked(key).screens[s] = true
	s.renew()
	return s, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.watchers--
		if c := h.canvases[key]; c != nil {
			delete(c.screens, s)
		}
	}
}

// add adds messages. The caller holds the lock of the Host.
func (s *Screen) add(messages []canvas.Message) {
	if s.all {
		return
	}
	if s.waiting = append(s.waiting, messages...); len(s.waiting) > maxWaiting {
		s.renew()
		return
	}
	s.wake()
}

// renew makes everything due. The caller holds the lock of the Host.
func (s *Screen) renew() {
	s.all, s.waiting = true, nil
	s.wake()
}

func (s *Screen) wake() {
	select {
	case s.Ready <- struct{}{}:
	default:
	}
}

// Next returns what has changed since the last call.
func (s *Screen) Next() (Update, bool) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	u := Update{Reset: s.all, Messages: []json.RawMessage{}}
	messages := s.waiting
	if s.all {
		messages = nil
		if c := s.h.canvases[s.key]; c != nil {
			messages = c.board.Messages()
		}
	}
	for _, m := range messages {
		u.Messages = append(u.Messages, m.Raw)
	}
	s.all, s.waiting = false, nil
	return u, u.Reset || len(u.Messages) > 0
}
