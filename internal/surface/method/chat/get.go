package chat

import (
	"cmp"
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// get returns the newest messages of a session, none if it does not exist.
func (m methods) get(ctx context.Context, _ rpc.Peer, in wire.SessionsGet) (wire.SessionMessages, error) {
	out := wire.SessionMessages{Messages: []wire.Message{}}
	name := cmp.Or(in.Key, in.SessionKey)
	if name == "" {
		return out, rpc.Invalid("must have required property 'key'")
	}
	key, err := m.storedKey(ctx, name, in.AgentID)
	if err != nil {
		return out, err
	}
	limit := defaultLimit
	if in.Limit != 0 {
		limit = min(max(in.Limit, 1), maxLimit)
	}
	entries, err := store.Get(ctx, m.o.Store, func(r store.Reader) ([]session.Entry, error) {
		meta, err := session.Lookup(r.Sessions(), key)
		if err != nil || meta.ID == "" {
			return nil, err
		}
		return r.Sessions().Last(meta.ID, limit)
	})
	if err != nil {
		return out, fmt.Errorf("messages of %s: %w", key, err)
	}
	out.Messages, _ = m.messages(entries, maxBytes, 0)
	out.Messages = out.Messages[max(0, len(out.Messages)-limit):]
	return out, nil
}
