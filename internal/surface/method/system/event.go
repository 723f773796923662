package system

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// maxEvent limits the text of an event, in bytes.
const maxEvent = 16 << 10

// line validates the text of an event and its session, and removes known secrets.
func (m methods) line(text, agent, session string) (string, chela.SessionKey, error) {
	text = strings.TrimSpace(text)
	id := cmp.Or(chela.AgentID(agent), m.o.Default)
	switch {
	case text == "":
		return "", "", rpc.Invalid("at /text: must NOT have fewer than 1 characters")
	case len(text) > maxEvent:
		return "", "", rpc.Invalid("at /text: must NOT have more than %d characters", maxEvent)
	case !slices.Contains(m.o.Agents(), id):
		return "", "", rpc.UnknownAgent(id)
	}
	key, err := rpc.SessionKey(session, "", id)
	if err != nil {
		return "", "", err
	}
	if !slices.Contains(m.o.Agents(), key.Agent()) {
		return "", "", rpc.UnknownAgent(key.Agent())
	}
	if m.o.Redact != nil {
		text = m.o.Redact(text)
	}
	return text, key, nil
}

func (m methods) event(ctx context.Context, _ rpc.Peer, in wire.SystemEvent) (wire.OK, error) {
	text, key, err := m.line(in.Text, "", in.SessionKey)
	if err != nil {
		return wire.OK{}, err
	}
	return wire.OK{OK: true}, m.o.Notify(ctx, key, text)
}

// wake queues a line of text for a session, and requests a heartbeat for it: now, or with
// the next tick.
func (m methods) wake(ctx context.Context, _ rpc.Peer, in wire.Wake) (wire.OK, error) {
	text, key, err := m.line(in.Text, in.AgentID, in.SessionKey)
	if err != nil {
		return wire.OK{}, err
	}
	switch in.Mode {
	case wire.WakeNext:
		return wire.OK{OK: true}, m.put(ctx, key, text, heartbeat.NextTick)
	case wire.WakeNow:
	default:
		return wire.OK{}, rpc.Invalid("at /mode: must be equal to one of the allowed values: %s, %s",
			wire.WakeNow, wire.WakeNext)
	}
	return wire.OK{OK: true}, m.put(ctx, key, text, heartbeat.Now)
}

// put queues an event for the session's next run, and requests a heartbeat for it.
func (m methods) put(ctx context.Context, key chela.SessionKey, text string, mode heartbeat.Mode) error {
	id := "wake:" + uuid.NewString()
	return m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		now := time.Now()
		if err := store.Enqueue(tx, queue.NewEvent(id, key, chela.Origin{Kind: chela.OriginSystem}, text, now)); err != nil {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicHeartbeat})
		return heartbeat.Request(tx.Heartbeats(), heartbeat.Wake{
			Session: key, Reason: heartbeat.ReasonWake, Mode: mode, Principal: chela.PrincipalFrom(ctx), At: now,
		})
	})
}
