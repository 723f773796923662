package app

import (
	"github.com/chela-ai/chela/internal/httpapi"
	"github.com/chela-ai/chela/internal/rpc"
)

// Doors returns the ways into the engine from outside: the methods of the
// gateway, which are asked for after the handshake, and the routes of its port,
// none when there is no port. Both are what is served, not a list of it.
func (e *Engine) Doors() ([]rpc.Door, []httpapi.Route) { return e.gate.Doors(), e.web }
