//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// clientGroup is a number of clients that send messages, each one after the other.
type clientGroup struct {
	dir   string
	mu    sync.Mutex
	acked map[string]string // message by key
}

// groupSession returns the session key of client i.
func groupSession(i int) string { return "agent:main:crowd" + strconv.Itoa(i%groupSessions) }

const groupSessions = 40

// sendMessages sends n messages as client i. Each is acknowledged exactly once, no
// matter what happens to the gateway.
func (w *clientGroup) sendMessages(ctx context.Context, c *client.Client, rnd *rand.Rand, i, messages int) error {
	for k := range messages {
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
		key := fmt.Sprintf("c%d-%d", i, k)
		text := "plain " + strconv.Itoa(1000*i+k)
		_, err := c.Chat(ctx, wire.ChatSend{SessionKey: groupSession(i), Message: text, IdempotencyKey: key})
		if err != nil {
			return fmt.Errorf("client %d, message %d: %w", i, k, err)
		}
		w.mu.Lock()
		w.acked[key] = text
		w.mu.Unlock()
	}
	return nil
}

// TestKillClients kills a gateway several times while 30 clients (with `make kill`,
// 200) send messages, and checks that each acknowledged message is stored.
func TestKillClients(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	const messages = 5
	clients, kills := 30, 4
	switch {
	case raced:
		clients, kills = 20, 3
	case thorough():
		clients, kills = 200, 6
	}
	rnd := rand.New(rand.NewPCG(randomSeed(t), 1))
	dir := t.TempDir()
	writeConfig(t, dir, serveModel(t, new(toolModel)))
	ctx := t.Context()
	p := spawn(t, dir, "")
	w := &clientGroup{dir: dir, acked: map[string]string{}}
	errs := make(chan error, clients)
	all := make([]*client.Client, clients)
	for i := range all {
		c, err := client.Dial(ctx, client.Options{Dial: dial(dir), Delay: func(int, error) time.Duration {
			return time.Duration(5+rand.IntN(20)) * time.Millisecond
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all[i] = c
	}
	for i, c := range all {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		go func() { errs <- w.sendMessages(ctx, c, mine, i, messages) }()
	}
	for range kills {
		time.Sleep(time.Duration(20+rnd.IntN(150)) * time.Millisecond)
		w.mu.Lock()
		t.Logf("killed after %d acknowledged messages", len(w.acked))
		w.mu.Unlock()
		p.kill()
		p = spawn(t, dir, "")
	}
	for range clients {
		if err := waittest.For(t, "the acknowledgements of a client", errs); err != nil {
			t.Error(err)
		}
	}
	t.Run("R23 each acknowledged message is in the history exactly once", func(t *testing.T) { w.check(ctx, t) })
	p.stop(t)
}

// check reads the histories after all messages were answered.
func (w *clientGroup) check(ctx context.Context, t *testing.T) {
	c, err := client.Dial(ctx, client.Options{Dial: dial(w.dir), Once: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for key := range w.acked {
		var done wire.AgentWaited
		err := c.Call(ctx, wire.MethodAgentWait, wire.AgentWait{RunID: key, TimeoutMs: waittest.Limit.Milliseconds()}, &done)
		if err != nil || done.Status == wire.StatusTimeout {
			t.Fatalf("message %s was not answered: %v %s", key, err, done.Status)
		}
	}
	found := map[string]int{}
	for s := range groupSessions {
		for offset := 0; ; {
			var h wire.History
			err := c.Call(ctx, wire.MethodChatHistory,
				wire.ChatHistory{SessionKey: groupSession(s), Limit: 1000, Offset: offset}, &h)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range h.Messages {
				if m.Role == wire.RoleUser {
					found[m.Text()]++
				}
			}
			if !h.HasMore {
				break
			}
			offset = h.NextOffset
		}
	}
	for key, text := range w.acked {
		if found[text] != 1 {
			b, _ := json.Marshal(text)
			t.Errorf("message %s %s is in the history %d times", key, b, found[text])
		}
	}
	if len(found) != len(w.acked) {
		t.Errorf("%d messages in the history, %d acknowledged", len(found), len(w.acked))
	}
}
