package gateway

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// capCatalog says in the challenge that a client which asks for the models with
// its connect is told of them.
const capCatalog = "model-catalog-snapshot"

// challenge is the first frame of a connection.
func (s *Server) challenge(nonce string) wire.Challenge {
	c := wire.Challenge{Nonce: nonce, Time: wire.At(time.Now())}
	if s.o.Models != nil {
		c.Capabilities = []string{capCatalog}
	}
	return c
}

// snapshot tells a client of the models that it asked for with its connect. A
// scope that there is not is told nothing: the client asks again, and is told
// why.
func (c *conn) snapshot(ctx context.Context) {
	if c.catalog == nil || c.s.o.Models == nil || !c.who.May(chela.ScopeRead) {
		return
	}
	var scope wire.ModelsScope
	if json.Unmarshal(c.catalog, &scope) != nil {
		return
	}
	list, err := c.s.o.Models(ctx, scope)
	if err != nil {
		c.s.o.Log.Debug("models of a connect", "err", err)
		return
	}
	c.push(encode(wire.EventModelsSnapshot, wire.ModelsSnapshot{Target: scope, Scope: scope, Catalog: list}), false, 0)
	c.flush()
}
