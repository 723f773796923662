package inbound

import (
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Two programs that answer each other would never stop.
const (
	maxBotMessages = 20          // of a program in a chat within botTime
	botTime        = time.Minute // after more, it is not heard as long
	maxBots        = 1000        // programs that are counted
)

// bots counts the messages of programs. The zero value is ready to use. It is safe for
// concurrent use.
type bots struct {
	mu   sync.Mutex
	seen map[botChat]*botCount
}

// botChat is a program in a chat.
type botChat struct {
	chat chela.Address
	id   string
}

type botCount struct {
	begun  time.Time // of the minute that is counted
	n      int
	silent time.Time // it is not heard until then
}

// hears counts a message of a program. It reports false if the program has written so much
// that it is not heard for a while.
func (b *bots) hears(in chela.Inbound, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := botChat{in.Address, in.Sender.ID}
	c := b.seen[k]
	if c == nil {
		if b.seen == nil || len(b.seen) >= maxBots {
			b.seen = map[botChat]*botCount{}
		}
		c = &botCount{begun: now}
		b.seen[k] = c
	}
	if now.Before(c.silent) {
		return false
	}
	if now.Sub(c.begun) >= botTime {
		c.begun, c.n = now, 0
	}
	if c.n++; c.n > maxBotMessages {
		c.silent, c.begun, c.n = now.Add(botTime), now.Add(botTime), 0
		return false
	}
	return true
}
