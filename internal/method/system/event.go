package system

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// maxEvent bounds a line that a session is told, in bytes.
const maxEvent = 16 << 10

// line returns what a session is to be told, and the session.
func (m methods) line(method, text, agent, session string) (string, chela.SessionKey, error) {
	text = strings.TrimSpace(text)
	id := cmp.Or(chela.AgentID(agent), m.o.Default)
	switch {
	case text == "":
		return "", "", rpc.Invalid(method, "at /text: must NOT have fewer than 1 characters")
	case len(text) > maxEvent:
		return "", "", rpc.Invalid(method, "at /text: must NOT have more than %d characters", maxEvent)
	case !slices.Contains(m.o.Agents(), id):
		return "", "", shape.UnknownAgent(id)
	}
	key, err := chela.ParseSessionKey(session, id)
	if err != nil {
		return "", "", rpc.Invalid(method, "%v", err)
	}
	if !slices.Contains(m.o.Agents(), key.Agent()) {
		return "", "", shape.UnknownAgent(key.Agent())
	}
	return text, key, nil
}

func (m methods) event(_ context.Context, _ rpc.Peer, in wire.SystemEvent) (wire.OK, error) {
	text, key, err := m.line(wire.MethodSystemEvent, in.Text, "", in.SessionKey)
	if err != nil {
		return wire.OK{}, err
	}
	m.o.Notify(key, text)
	return wire.OK{OK: true}, nil
}

// wake tells a session of something: with its next run, or with one that begins
// for it.
func (m methods) wake(ctx context.Context, _ rpc.Peer, in wire.Wake) (wire.OK, error) {
	text, key, err := m.line(wire.MethodWake, in.Text, in.AgentID, in.SessionKey)
	if err != nil {
		return wire.OK{}, err
	}
	switch in.Mode {
	case wire.WakeNext:
		m.o.Notify(key, text)
		return wire.OK{OK: true}, nil
	case wire.WakeNow:
	default:
		return wire.OK{}, rpc.Invalid(wire.MethodWake, "at /mode: must be equal to one of the allowed values")
	}
	id := "wake:" + uuid.NewString()
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		_, err := tx.Queue().Put(queue.Item{
			ID: id, Key: id, Session: key, Kind: queue.System, Principal: chela.PrincipalFrom(ctx), State: queue.Waiting,
			Created: time.Now(), Inbound: chela.Inbound{Text: text},
		})
		tx.Wake(store.Topic{Kind: store.TopicQueue, Session: key})
		return err
	})
	return wire.OK{OK: err == nil}, err
}
