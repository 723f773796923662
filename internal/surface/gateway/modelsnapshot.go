package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// capCatalog is a capability in the challenge: clients may request a snapshot
// of the models in connect.
const capCatalog = "model-catalog-snapshot"

// challenge returns the payload of the first frame.
func (s *Server) challenge(nonce string) wire.Challenge {
	c := wire.Challenge{Nonce: nonce, Time: wire.At(time.Now())}
	if s.o.Models != nil {
		c.Capabilities = []string{capCatalog}
	}
	return c
}

// sendModels sends the models that the client requested in connect. It ignores
// an invalid scope: the client gets the error when it calls models.list.
func (c *conn) sendModels(ctx context.Context) {
	if c.catalog == nil || c.s.o.Models == nil || !c.who.May(chela.ScopeRead) {
		return
	}
	var scope wire.ModelsScope
	if json.Unmarshal(c.catalog, &scope) != nil {
		return
	}
	list, err := c.s.o.Models(ctx, scope)
	if err != nil {
		c.s.o.Log.Debug("list models for connect", "err", err)
		return
	}
	c.push(encode(wire.EventModelsSnapshot, wire.ModelsSnapshot{Target: scope, Scope: scope, Catalog: list}), false, 0)
}
