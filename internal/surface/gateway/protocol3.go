package gateway

import (
	"github.com/chela-ai/chela/wire"
)

// Conversions for clients of protocol 3.

// downgrade converts the payload of an event.
func downgrade(payload any) any {
	if p, ok := payload.(wire.Chat); ok {
		p.Delta, p.Replace, p.AgentID = "", false, ""
		return p
	}
	return payload
}

// downgradeError converts an error: protocol 3 reports a missing scope as an
// invalid request.
func downgradeError(e *wire.Error) *wire.Error {
	if e.Detail() != wire.DetailMissingScope {
		return e
	}
	return wire.Errorf(wire.InvalidRequest, "%s", e.Message)
}
