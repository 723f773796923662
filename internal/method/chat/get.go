package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// get returns the newest messages of a session, and nothing else of it; none of
// one that does not exist.
func (m methods) get(ctx context.Context, _ rpc.Peer, in wire.SessionsGet) (wire.SessionMessages, error) {
	out := wire.SessionMessages{Messages: []wire.Message{}}
	name := cmp.Or(in.Key, in.SessionKey)
	if name == "" {
		return out, rpc.Invalid(wire.MethodSessionsGet, "must have required property 'key'")
	}
	key, err := m.key(wire.MethodSessionsGet, name, in.AgentID)
	if err != nil {
		return out, err
	}
	limit := defaultLimit
	if in.Limit != 0 {
		limit = min(max(in.Limit, 1), maxLimit)
	}
	var entries []session.Entry
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := r.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			entries = nil
			return nil
		}
		if err != nil {
			return err
		}
		entries, err = r.Sessions().Last(meta.ID, limit)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("messages of %s: %w", key, err)
	}
	kept := fit(entries, maxBytes)
	m.o.Rows.Show.Entries(kept, maxBytes-sizes(kept))
	for i, e := range kept {
		for _, msg := range shape.Messages(e) {
			out.Messages = append(out.Messages, lighten(msg, i == 0, maxBytes))
		}
	}
	out.Messages = out.Messages[max(0, len(out.Messages)-limit):]
	return out, nil
}
