package system

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// lanes returns what runs and waits now.
func (m methods) lanes(context.Context, rpc.Peer, wire.None) (wire.Lanes, error) {
	out := wire.Lanes{Time: wire.At(time.Now()), Lanes: []wire.Lane{}}
	if m.o.Lanes == nil {
		return out, nil
	}
	states, keys := m.o.Lanes()
	for _, s := range states {
		out.Lanes = append(out.Lanes, wire.Lane{Lane: s.Lane, Active: s.Active, Queued: s.Queued, Max: s.Width})
	}
	if keys.Keys > 0 {
		out.Sessions = &wire.SessionLanes{Lanes: keys.Keys, Active: keys.Active, Queued: keys.Queued, Behind: keys.Behind}
	}
	return out, nil
}
