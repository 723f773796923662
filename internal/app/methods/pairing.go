package methods

import (
	"time"

	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// AnnounceAdmission tells the clients that may decide about devices which
// requests for pairing a connection has made or replaced.
func (g *Gateway) AnnounceAdmission(a pairing.Admission) {
	now := wire.At(time.Now())
	if old := a.Superseded; old != nil {
		g.announce(wire.EventPairResolved,
			wire.PairResolved{ID: old.ID, Device: old.Device, Decision: wire.PairRejected, Time: now})
	}
	if r := a.Requested; r != nil {
		g.announce(wire.EventPairRequested, wireview.PairRequest(*r))
	}
	if old := a.NodeSuperseded; old != nil {
		g.announce(wire.EventNodePairResolved,
			wire.NodePairResolved{ID: old.ID, Node: a.Access.Device, Decision: wire.PairRejected, Time: now})
	}
	if r := a.NodeRequested; r != nil {
		g.announce(wire.EventNodePairRequested, wireview.NodeRequest(a.Device, *r))
	}
}
